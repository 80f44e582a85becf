(** * One-sided derivatives at kinks

    What an undefined gradient looks like: derivatives along v and -v, and that kinks bend one way.

      one_sided f x v d  d is the derivative of f at x along v from the right

    Python: exactgrpo.update.trace.Evidence *)
From Coq Require Import Reals List Lra Lia.
From Coquelicot Require Import Coquelicot.
From ExactGRPO Require Import FinSum Clip Kink Objective.
Import ListNotations.
Open Scope R_scope.

Section OneSided.
Context {V : NormedModule R_AbsRing}.
Implicit Types (f g : V -> R) (x v : V).
(** the derivative of f at x along v from the right *)
Definition one_sided f x v (d : R) := forall eps, 0 < eps -> exists delta, 0 < delta /\
  forall s : R, 0 < s < delta -> Rabs (f (plus x (scal (s : R_AbsRing) v)) - f x - s * d) <= eps * s.
Lemma one_sided_ext f g x v d d' : (forall y, f y = g y) -> d = d' -> one_sided f x v d -> one_sided g x v d'.
Proof. intros E <- H e He. destruct (H e He) as [dl [Hd Hs]]. exists dl. split; auto. intros s Hs'. rewrite <- !E. auto. Qed.
Lemma one_sided_plus f g x v d d' : one_sided f x v d -> one_sided g x v d' -> one_sided (fun y => f y + g y) x v (d + d').
Proof. intros H1 H2 e He. destruct (H1 (e / 2) ltac:(lra)) as [a [Ha Fa]]. destruct (H2 (e / 2) ltac:(lra)) as [b [Hb Fb]].
  exists (Rmin a b). split; [apply Rmin_pos; auto|]. intros s Hs. pose proof (Rmin_l a b). pose proof (Rmin_r a b).
  specialize (Fa s ltac:(lra)). specialize (Fb s ltac:(lra)). 
  match goal with |- Rabs ?z <= _ => replace z with ((f (plus x (scal (s : R_AbsRing) v)) - f x - s * d) + (g (plus x (scal (s : R_AbsRing) v)) - g x - s * d')) by ring end.
  eapply Rle_trans; [apply Rabs_triang|]. lra. Qed.
Lemma one_sided_scal c f x v d : one_sided f x v d -> one_sided (fun y => c * f y) x v (c * d).
Proof. intros H e He. pose proof (Rabs_pos c) as C0. assert (Hc : 0 < e / (Rabs c + 1)) by (apply Rdiv_lt_0_compat; lra).
  destruct (H _ Hc) as [a [Ha Fa]]. exists a. split; auto. intros s Hs. specialize (Fa s Hs).
  match goal with |- Rabs ?z <= _ => replace z with (c * (f (plus x (scal (s : R_AbsRing) v)) - f x - s * d)) by ring end. rewrite Rabs_mult.
  assert (0 <= e / (Rabs c + 1) * s) by (apply Rmult_le_pos; lra).
  apply Rle_trans with ((Rabs c + 1) * (e / (Rabs c + 1) * s)); [apply Rmult_le_compat; try apply Rabs_pos; lra|]. right. field. lra. Qed.
Lemma one_sided_Rsum {I} (l : list I) (f : I -> V -> R) (d : I -> R) x v :
  (forall i, In i l -> one_sided (f i) x v (d i)) -> one_sided (fun y => Rsum l (fun i => f i y)) x v (Rsum l d).
Proof. induction l as [|i l IH]; intros H.
  - intros e He. exists 1. split; [lra|]. intros s Hs. rewrite !Rsum_nil. replace (0 - 0 - s * 0) with 0 by ring. rewrite Rabs_R0. apply Rmult_le_pos; lra.
  - apply (one_sided_plus (f i) (fun y => Rsum l (fun i => f i y)) x v (d i) (Rsum l d)); [apply H; left; auto|apply IH; intros; apply H; right; auto]. Qed.
(** a total derivative gives the one along v *)
Lemma has_diff_one_sided f x l v : has_diff f x l -> one_sided f x v (l v).
Proof. intros Hd e He. apply has_diff_eps in Hd. destruct Hd as [Hl Hd].
  assert (Hn : 0 <= norm v) by apply norm_ge_0. assert (Hc : 0 < e / (norm v + 1)) by (apply Rdiv_lt_0_compat; lra).
  specialize (Hd (mkposreal _ Hc)). simpl in Hd.
  assert (L0 : filterlim (fun s : R => plus x (scal (s : R_AbsRing) v)) (locally (0 : R)) (locally x)).
  { assert (L1 : filterlim (fun s : R => plus x (scal (s : R_AbsRing) v)) (locally (0:R)) (locally (plus x (scal (0 : R_AbsRing) v)))).
    { apply (filterlim_comp_2 (G := locally x) (H := locally (scal (0 : R_AbsRing) v))).
      - apply filterlim_const.
      - apply (filterlim_comp_2 (G := locally (0:R)) (H := locally v)); [apply filterlim_id|apply filterlim_const|apply (filterlim_scal (0 : R_AbsRing) v)].
      - apply filterlim_plus. }
    replace (plus x (scal (0 : R_AbsRing) v)) with x in L1; auto.
    assert (Z0 : scal (0 : R_AbsRing) v = zero) by exact (scal_zero_l (K := R_AbsRing) v). rewrite Z0, plus_zero_r; auto. }
  destruct (L0 _ Hd) as [dl Hdl]. exists dl. split; [apply cond_pos|]. intros s Hs.
  assert (Hb : ball (0:R) dl s).
  { unfold ball; simpl. unfold AbsRing_ball, abs, minus, plus, opp; simpl. rewrite Rabs_right; lra. }
  specialize (Hdl s Hb). simpl in Hdl.
  assert (Em : minus (plus x (scal (s : R_AbsRing) v)) x = scal (s : R_AbsRing) v).
  { unfold minus. rewrite (plus_comm x), <- plus_assoc, plus_opp_r, plus_zero_r; auto. }
  rewrite Em in Hdl. destruct Hl as [_ Hsc _]. assert (El : l (scal (s : R_AbsRing) v) = s * l v) by exact (Hsc s v). rewrite El in Hdl.
  eapply Rle_trans; [exact Hdl|]. apply Rle_trans with (e / (norm v + 1) * (s * norm v)).
  - apply Rmult_le_compat_l; [lra|]. eapply Rle_trans; [apply (norm_scal (K := R_AbsRing))|]. unfold abs; simpl. rewrite Rabs_right; lra.
  - replace (e * s) with (e / (norm v + 1) * (s * (norm v + 1))) by (field; lra). apply Rmult_le_compat_l; [lra|]. apply Rmult_le_compat_l; lra. Qed.
Lemma one_sided_abs g x v d : one_sided g x v d -> g x = 0 -> one_sided (fun y => Rabs (g y)) x v (Rabs d).
Proof. intros H Z e He. destruct (H e He) as [a [Ha Fa]]. exists a. split; auto. intros s Hs. specialize (Fa s Hs). rewrite Z, Rminus_0_r in Fa.
  rewrite Z, Rabs_R0, Rminus_0_r. replace (s * Rabs d) with (Rabs (s * d)) by (rewrite Rabs_mult, (Rabs_right s); lra).
  eapply Rle_trans; [apply Rabs_triang_inv2|]. auto. Qed.

(** At a true kink a clipped term has the one-sided derivative min(A <grad rho, v>, 0). *)
Theorem one_sided_kink el eh A rho L x v : 0 <= el -> 0 <= eh -> has_diff rho x L -> rho x = kink2 el eh A ->
  one_sided (fun y => cterm2 el eh A (rho y)) x v (Rmin (A * L v) 0).
Proof. intros Hl Hh HL HK. set (k := kink2 el eh A) in *.
  apply (one_sided_ext (fun y => A / 2 * (rho y + k) + - (Rabs A / 2) * Rabs (rho y + - k)) _ x v (A / 2 * (L v + 0) + - (Rabs A / 2) * Rabs (L v + 0))).
  - intros y. rewrite cterm2_abs by auto. fold k. change (rho y + - k) with (rho y - k). field.
  - rewrite !Rplus_0_r. replace (A / 2 * L v + - (Rabs A / 2) * Rabs (L v)) with ((A * L v - Rabs (A * L v)) / 2) by (rewrite Rabs_mult; field).
    set (z := A * L v). unfold Rmin, Rabs. destruct (Rcase_abs z), (Rle_dec z 0); lra.
  - apply one_sided_plus; apply one_sided_scal.
    + apply one_sided_plus; [apply has_diff_one_sided; auto|apply (has_diff_one_sided (fun _ => k) x (fun _ => 0)), has_diff_const].
    + apply (one_sided_abs (fun y => rho y + - k) x v (L v + 0)); [|lra].
      apply one_sided_plus; [apply has_diff_one_sided; auto|apply (has_diff_one_sided (fun _ => - k) x (fun _ => 0)), has_diff_const]. Qed.
(** All kinks bend the same way: the two one-sided derivatives along v and -v add up to
    minus the weighted sum of |A_i| |<grad rho_i, v>| over the terms at a true kink. *)
Theorem kinks_bend_one_way {I} (kinks : list I) (rest : V -> R) (c A : I -> R) (rho : I -> V -> R) (L : I -> V -> R) (D : V -> R) el eh x v :
  0 <= el -> 0 <= eh -> has_diff rest x D -> (forall i, In i kinks -> has_diff (rho i) x (L i) /\ rho i x = kink2 el eh (A i)) ->
  let f := fun y => Rsum kinks (fun i => c i * cterm2 el eh (A i) (rho i y)) + rest y in
  exists d d', one_sided f x v d /\ one_sided f x (opp v) d' /\ d = Rsum kinks (fun i => c i * Rmin (A i * L i v) 0) + D v
    /\ d + d' = - Rsum kinks (fun i => c i * (Rabs (A i) * Rabs (L i v))).
Proof. intros Hl Hh HD HK f.
  assert (S : forall u, one_sided f x u (Rsum kinks (fun i => c i * Rmin (A i * L i u) 0) + D u)).
  { intros u. apply one_sided_plus; [|apply has_diff_one_sided; auto].
    apply (one_sided_Rsum kinks (fun i y => c i * cterm2 el eh (A i) (rho i y)) (fun i => c i * Rmin (A i * L i u) 0)).
    intros i Hi. destruct (HK i Hi) as [H1 H2]. apply one_sided_scal. apply (one_sided_kink el eh (A i) (rho i) (L i)); auto. }
  exists (Rsum kinks (fun i => c i * Rmin (A i * L i v) 0) + D v), (Rsum kinks (fun i => c i * Rmin (A i * L i (opp v)) 0) + D (opp v)).
  split; [apply S|]. split; [apply S|]. split; [reflexivity|].
  assert (OD : D (opp v) = - D v) by (apply (linear_opp (D : V -> R_NormedModule)); apply (proj1 HD)).
  rewrite OD. rewrite (Rsum_ext kinks (fun i => c i * Rmin (A i * L i (opp v)) 0) (fun i => c i * Rmin (- (A i * L i v)) 0)).
  2: { intros i Hi. destruct (HK i Hi) as [H1 _]. assert (OL : L i (opp v) = - L i v) by (apply (linear_opp (L i : V -> R_NormedModule)); apply (proj1 H1)).
       rewrite OL. do 2 f_equal. ring. }
  replace (Rsum kinks (fun i => c i * Rmin (A i * L i v) 0) + D v + (Rsum kinks (fun i => c i * Rmin (- (A i * L i v)) 0) + - D v))
    with (Rsum kinks (fun i => c i * Rmin (A i * L i v) 0) + Rsum kinks (fun i => c i * Rmin (- (A i * L i v)) 0)) by ring.
  rewrite <- Rsum_plus, <- Rsum_opp. apply Rsum_ext. intros i _. rewrite <- Rabs_mult, <- Rmult_plus_distr_l.
  replace (Rmin (A i * L i v) 0 + Rmin (- (A i * L i v)) 0) with (- Rabs (A i * L i v)); [ring|]. set (z := A i * L i v).
  unfold Rmin, Rabs. destruct (Rcase_abs z), (Rle_dec z 0), (Rle_dec (- z) 0); lra. Qed.
End OneSided.
