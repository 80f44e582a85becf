(** * The Clarke set at kinks

    At a point where clipped terms bend, the generalised gradients of the objective are exactly the gradient of the rest plus,
    for each such term, any fraction of its own gradient.

      strict f x L        L is the strict derivative of f at x, along every direction
      clarke_dir f x v d  d is Clarke's directional derivative of f at x along v
      clarke f x l        the linear form l is below it: l is in Clarke's set

    Python: exactgrpo.update.trace.Evidence *)
From Coq Require Import Reals List Lra Lia.
From Coquelicot Require Import Coquelicot.
From ExactGRPO Require Import FinSum Clip Kink Objective OneSided.
Import ListNotations.
Open Scope R_scope.

Section Hull.
Context {V : NormedModule R_AbsRing}.
Definition linear_form (l : V -> R) := (forall u v, l (plus u v) = l u + l v) /\ (forall (s : R) v, l (scal (s : R_AbsRing) v) = s * l v).
Lemma form_opp l v : linear_form l -> l (opp v) = - l v.
Proof. intros [Hp Hs]. assert (E : opp v = scal (-1 : R_AbsRing) v).
  { symmetry. etransitivity; [|apply (scal_opp_one (K := R_AbsRing) v)]. reflexivity. }
  rewrite E, Hs. ring. Qed.
Definition hull_dir {I} (l : list I) (a : I -> V -> R) (v : V) := Rsum l (fun i => Rmax (a i v) 0).
Lemma max_sub (a : V -> R) u v : linear_form a -> Rmax (a (plus u v)) 0 <= Rmax (a u) 0 + Rmax (a v) 0.
Proof. intros [Hp _]. rewrite Hp. unfold Rmax. repeat destruct (Rle_dec _ _); lra. Qed.
Lemma max_scal (a : V -> R) s v : linear_form a -> 0 <= s -> Rmax (a (scal (s : R_AbsRing) v)) 0 = s * Rmax (a v) 0.
Proof. intros [_ Hs] H. rewrite Hs. unfold Rmax. repeat destruct (Rle_dec _ _); nra. Qed.
Lemma hull_sub {I} (l : list I) a u v : (forall i, In i l -> linear_form (a i)) -> hull_dir l a (plus u v) <= hull_dir l a u + hull_dir l a v.
Proof. intros H. unfold hull_dir. rewrite <- Rsum_plus. apply Rsum_le. intros i Hi. apply max_sub; auto. Qed.
Lemma hull_scal {I} (l : list I) a s v : (forall i, In i l -> linear_form (a i)) -> 0 <= s -> hull_dir l a (scal (s : R_AbsRing) v) = s * hull_dir l a v.
Proof. intros H Hs. unfold hull_dir. rewrite <- Rsum_scal. apply Rsum_ext. intros i Hi. apply max_scal; auto. Qed.

(** A linear form below a sublinear function plus max(a, 0) splits off a fraction of a: one step of Hahn and Banach. *)
Lemma split_off (q : V -> R) (a l : V -> R) : linear_form a -> linear_form l ->
  (forall u v, q (plus u v) <= q u + q v) -> (forall s v, 0 <= s -> q (scal (s : R_AbsRing) v) = s * q v) ->
  (forall v, l v <= q v + Rmax (a v) 0) -> exists t, 0 <= t <= 1 /\ forall v, l v - t * a v <= q v.
Proof. intros Ha Hl Qs Qh H.
  set (S := fun r => r = 0 \/ exists v, a v = 1 /\ r = l v - q v).
  assert (B1 : is_upper_bound S 1).
  { intros r [->|[v [Av ->]]]; [lra|]. specialize (H v). rewrite Av, Rmax_left in H; lra. }
  destruct (completeness S) as [t [T1 T2]]; [exists 1; auto|exists 0; left; auto|].
  assert (T0 : 0 <= t) by (apply T1; left; auto). assert (T3 : t <= 1) by (apply T2; auto).
  assert (B2 : forall w, a w = -1 -> t <= q w - l w).
  { intros w Aw. apply T2. intros r [->|[v [Av ->]]].
    - specialize (H w). rewrite Aw, Rmax_right in H; lra.
    - specialize (H (plus v w)). specialize (Qs v w). rewrite (proj1 Ha), (proj1 Hl), Av, Aw in H.
      rewrite Rmax_right in H by lra. lra. }
  exists t. split; [lra|]. intros v. destruct (Rtotal_order (a v) 0) as [N|[Z|P]].
  - assert (Hs : 0 < / - a v) by (apply Rinv_0_lt_compat; lra).
    specialize (B2 (scal (/ - a v : R_AbsRing) v)). rewrite (proj2 Ha), (proj2 Hl), Qh in B2 by lra.
    assert (E : / - a v * a v = -1) by (field; lra). specialize (B2 E).
    assert (- a v * t <= - a v * (/ - a v * q v - / - a v * l v)) by (apply Rmult_le_compat_l; lra).
    assert (- a v * (/ - a v * q v - / - a v * l v) = q v - l v) by (field; lra). lra.
  - specialize (H v). rewrite Z, Rmax_right in H by lra. rewrite Z. lra.
  - assert (Hs : 0 < / a v) by (apply Rinv_0_lt_compat; lra).
    assert (M : / a v * l v - / a v * q v <= t).
    { apply T1. right. exists (scal (/ a v : R_AbsRing) v). rewrite (proj2 Ha), (proj2 Hl), Qh by lra. split; [field; lra|auto]. }
    assert (a v * (/ a v * l v - / a v * q v) <= a v * t) by (apply Rmult_le_compat_l; lra).
    assert (a v * (/ a v * l v - / a v * q v) = l v - q v) by (field; lra). lra. Qed.
(** The linear forms below D + sum of max(a_i, 0) are D plus fractions of the a_i, one for each, and no others. *)
Definition fractions {I} (ks : list I) (ts : list R) := length ts = length ks /\ forall t, In t ts -> 0 <= t <= 1.
Definition mixed {I} (ks : list I) (ts : list R) (a : I -> V -> R) (v : V) := Rsum (combine ks ts) (fun p => snd p * a (fst p) v).
Theorem hull_forms {I} (ks : list I) (a : I -> V -> R) (D l : V -> R) : linear_form D -> (forall i, In i ks -> linear_form (a i)) -> linear_form l ->
  ((forall v, l v <= hull_dir ks a v + D v) <-> exists ts, fractions ks ts /\ forall v, l v = mixed ks ts a v + D v).
Proof. intros HD Ha Hl. split.
  - revert l Hl Ha. induction ks as [|k ks IH]; intros l Hl Ha H.
    + exists []. split; [split; [auto|intros t []]|]. intros v. pose proof (H v) as H1. pose proof (H (opp v)) as H2. unfold hull_dir, mixed in *.
      simpl combine. rewrite !Rsum_nil in *. rewrite (form_opp l), (form_opp D) in H2 by auto. lra.
    + destruct (split_off (fun v => hull_dir ks a v + D v) (a k) l) as [t [Ht Hs]].
      * apply Ha; left; auto.
      * auto.
      * intros u v. pose proof (hull_sub ks a u v (fun i Hi => Ha i (or_intror Hi))). rewrite (proj1 HD). lra.
      * intros s v Hs. rewrite (hull_scal ks a s v (fun i Hi => Ha i (or_intror Hi)) Hs), (proj2 HD). ring.
      * intros v. specialize (H v). unfold hull_dir in *. rewrite Rsum_cons in H. lra.
      * assert (Hl' : linear_form (fun v => l v - t * a k v)).
        { destruct Hl as [L1 L2], (Ha k (or_introl eq_refl)) as [A1 A2]. split; intros; rewrite ?L1, ?L2, ?A1, ?A2; ring. }
        destruct (IH _ Hl' (fun i Hi => Ha i (or_intror Hi)) Hs) as [ts [[Hn Ht'] E]]. exists (t :: ts). split; [split|].
        -- simpl. congruence.
        -- intros u [<-|Hu]; auto.
        -- intros v. specialize (E v). unfold mixed in *. simpl combine. rewrite Rsum_cons. simpl fst; simpl snd. lra.
  - intros [ts [[Hn Ht] E]] v. rewrite E. apply Rplus_le_compat_r. unfold mixed, hull_dir. clear - Hn Ht.
    revert ts Hn Ht. induction ks as [|k ks IH]; intros [|t ts] Hn Ht; try discriminate; simpl combine; rewrite ?Rsum_nil, ?Rsum_cons; [lra|].
    simpl fst; simpl snd. specialize (IH ts ltac:(simpl in Hn; lia) (fun u Hu => Ht u (or_intror Hu))). specialize (Ht t (or_introl eq_refl)).
    apply Rplus_le_compat; auto. unfold Rmax. destruct (Rle_dec (a k v) 0); nra. Qed.
End Hull.

Section Clarke.
Context {V : NormedModule R_AbsRing}.
Implicit Types (f g : V -> R) (x v : V).
Definition quotients f x v (d e delta : R) := forall y (s : R), norm (minus y x) < delta -> 0 < s < delta -> f (plus y (scal (s : R_AbsRing) v)) - f y <= s * (d + e).
Definition above f x v d := forall e, 0 < e -> exists delta, 0 < delta /\ quotients f x v d e delta.
Definition attained f x v d := forall e delta, 0 < e -> 0 < delta -> exists y (s : R), norm (minus y x) < delta /\ 0 < s < delta /\
  s * (d - e) <= f (plus y (scal (s : R_AbsRing) v)) - f y.
(** d is the upper limit of the difference quotients (f (y + s v) - f y) / s as y goes to x and s to 0 from the right *)
Definition clarke_dir f x v d := above f x v d /\ attained f x v d.
Definition clarke f x (l : V -> R) := linear_form l /\ forall v d, clarke_dir f x v d -> l v <= d.
Definition strict f x (L : V -> R) := linear_form L /\ forall v e, 0 < e -> exists delta, 0 < delta /\
  forall y (s : R), norm (minus y x) < delta -> 0 < s < delta -> Rabs (f (plus y (scal (s : R_AbsRing) v)) - f y - s * L v) <= e * s.

Lemma above_attained f x v d d' : above f x v d -> attained f x v d' -> d' <= d.
Proof. intros H1 H2. destruct (Rle_dec d' d) as [|N]; auto. exfalso. destruct (H1 ((d' - d) / 3) ltac:(lra)) as [a [Ha Q]].
  destruct (H2 ((d' - d) / 3) a ltac:(lra) Ha) as [y [s [Hy [Hs L]]]]. specialize (Q y s Hy Hs). nra. Qed.
Lemma above_plus f g x v d d' : above f x v d -> above g x v d' -> above (fun y => f y + g y) x v (d + d').
Proof. intros H1 H2 e He. destruct (H1 (e / 2) ltac:(lra)) as [a [Ha Fa]]. destruct (H2 (e / 2) ltac:(lra)) as [b [Hb Fb]].
  exists (Rmin a b). split; [apply Rmin_pos; auto|]. intros y s Hy Hs. pose proof (Rmin_l a b). pose proof (Rmin_r a b).
  specialize (Fa y s ltac:(lra) ltac:(lra)). specialize (Fb y s ltac:(lra) ltac:(lra)). lra. Qed.
Lemma above_scal c f x v d : 0 <= c -> above f x v d -> above (fun y => c * f y) x v (c * d).
Proof. intros Hc H e He. assert (He' : 0 < e / (c + 1)) by (apply Rdiv_lt_0_compat; lra). destruct (H _ He') as [a [Ha Fa]].
  exists a. split; auto. intros y s Hy Hs. specialize (Fa y s Hy Hs).
  assert (E : c * (e / (c + 1)) <= e). { apply Rle_trans with ((c + 1) * (e / (c + 1))); [apply Rmult_le_compat_r; lra|right; field; lra]. }
  rewrite <- Rmult_minus_distr_l. apply Rle_trans with (c * (s * (d + e / (c + 1)))); [apply Rmult_le_compat_l; auto|].
  replace (c * (s * (d + e / (c + 1)))) with (s * (c * d + c * (e / (c + 1)))) by ring. apply Rmult_le_compat_l; lra. Qed.
Lemma above_Rsum {I} (l : list I) (f : I -> V -> R) (d : I -> R) x v : (forall i, In i l -> above (f i) x v (d i)) ->
  above (fun y => Rsum l (fun i => f i y)) x v (Rsum l d).
Proof. induction l as [|i l IH]; intros H.
  - intros e He. exists 1. split; [lra|]. intros y s _ Hs. rewrite !Rsum_nil. nra.
  - apply (above_plus (f i) (fun y => Rsum l (fun i => f i y)) x v (d i) (Rsum l d)); [apply H; left; auto|apply IH; intros; apply H; right; auto]. Qed.
Lemma strict_above f x L v : strict f x L -> above f x v (L v).
Proof. intros [_ H] e He. destruct (H v e He) as [a [Ha Fa]]. exists a. split; auto. intros y s Hy Hs. specialize (Fa y s Hy Hs).
  apply Rabs_le_between in Fa. lra. Qed.
Lemma strict_one_sided f x L v : strict f x L -> one_sided f x v (L v).
Proof. intros [_ H] e He. destruct (H v e He) as [a [Ha Fa]]. exists a. split; auto. intros s Hs. apply Fa; auto.
  unfold minus. rewrite plus_opp_r. rewrite norm_zero. auto. Qed.
(** a clipped term grows at most by the growth of A rho, or not at all *)
Lemma cterm2_growth el eh A r r' : 0 <= el -> 0 <= eh -> cterm2 el eh A r' - cterm2 el eh A r <= Rmax (A * (r' - r)) 0.
Proof. intros Hl Hh. destruct (Rle_dec 0 A) as [P|N].
  - rewrite !cterm2_pos by auto. unfold Rmin, Rmax. repeat destruct (Rle_dec _ _); nra.
  - rewrite !cterm2_neg by lra. unfold Rmax. repeat destruct (Rle_dec _ _); nra. Qed.
Lemma above_term el eh A rho L x v : 0 <= el -> 0 <= eh -> strict rho x L -> above (fun y => cterm2 el eh A (rho y)) x v (Rmax (A * L v) 0).
Proof. intros Hl Hh [_ H] e He. pose proof (Rabs_pos A). assert (He' : 0 < e / (Rabs A + 1)) by (apply Rdiv_lt_0_compat; lra).
  destruct (H v _ He') as [a [Ha Fa]]. exists a. split; auto. intros y s Hy Hs. specialize (Fa y s Hy Hs).
  set (r' := rho (plus y (scal (s : R_AbsRing) v))) in *. set (r := rho y) in *.
  eapply Rle_trans; [apply cterm2_growth; auto|].
  assert (B : Rabs (A * (r' - r) - s * (A * L v)) <= s * e).
  { replace (A * (r' - r) - s * (A * L v)) with (A * (r' - r - s * L v)) by ring. rewrite Rabs_mult.
    apply Rle_trans with ((Rabs A + 1) * (e / (Rabs A + 1) * s)); [apply Rmult_le_compat; try apply Rabs_pos; lra|right; field; lra]. }
  apply Rabs_le_between in B. assert (s * (Rmax (A * L v) 0 + e) = Rmax (s * (A * L v)) 0 + s * e).
  { rewrite Rmult_plus_distr_l. f_equal. unfold Rmax. repeat destruct (Rle_dec _ _); nra. }
  unfold Rmax in *. repeat destruct (Rle_dec _ _); nra. Qed.
Lemma one_sided_term el eh A rho L x v : 0 <= el -> 0 <= eh -> strict rho x L -> rho x = kink2 el eh A ->
  one_sided (fun y => cterm2 el eh A (rho y)) x v (Rmin (A * L v) 0).
Proof. intros Hl Hh HL HK. set (k := kink2 el eh A) in *. pose proof (strict_one_sided rho x L v HL) as HO.
  assert (HC : forall c, one_sided (fun _ => c) x v 0).
  { intros c e He. exists 1. split; [lra|]. intros s Hs. replace (c - c - s * 0) with 0 by ring. rewrite Rabs_R0. nra. }
  apply (one_sided_ext (fun y => A / 2 * (rho y + k) + - (Rabs A / 2) * Rabs (rho y + - k)) _ x v (A / 2 * (L v + 0) + - (Rabs A / 2) * Rabs (L v + 0))).
  - intros y. rewrite cterm2_abs by auto. fold k. change (rho y + - k) with (rho y - k). field.
  - rewrite !Rplus_0_r. replace (A / 2 * L v + - (Rabs A / 2) * Rabs (L v)) with ((A * L v - Rabs (A * L v)) / 2) by (rewrite Rabs_mult; field).
    set (z := A * L v). unfold Rmin, Rabs. destruct (Rcase_abs z), (Rle_dec z 0); lra.
  - apply one_sided_plus; apply one_sided_scal; [apply one_sided_plus; auto|].
    apply (one_sided_abs (fun y => rho y + - k) x v (L v + 0)); [apply one_sided_plus; auto|lra]. Qed.
(** the quotients from x - s v to x have the limit minus the one-sided derivative along -v *)
Lemma attained_backwards f x v d : one_sided f x (opp v) (- d) -> attained f x v d.
Proof. intros H e delta He Hd. destruct (H e He) as [a [Ha Fa]]. pose proof (norm_ge_0 v) as Nv.
  set (s := Rmin (Rmin a delta) (delta / (norm v + 1)) / 2).
  assert (H0 : 0 < delta / (norm v + 1)) by (apply Rdiv_lt_0_compat; lra).
  assert (Hs : 0 < s) by (unfold s; assert (0 < Rmin (Rmin a delta) (delta / (norm v + 1))) by (repeat apply Rmin_pos; auto); lra).
  pose proof (Rmin_l (Rmin a delta) (delta / (norm v + 1))). pose proof (Rmin_r (Rmin a delta) (delta / (norm v + 1))). pose proof (Rmin_l a delta). pose proof (Rmin_r a delta).
  exists (plus x (scal (s : R_AbsRing) (opp v))), s. split; [|split].
  - assert (E : minus (plus x (scal (s : R_AbsRing) (opp v))) x = scal (s : R_AbsRing) (opp v)).
    { unfold minus. rewrite (plus_comm x), <- plus_assoc, plus_opp_r, plus_zero_r; auto. }
    rewrite E. eapply Rle_lt_trans; [apply (norm_scal (K := R_AbsRing))|]. rewrite norm_opp. unfold abs; simpl. rewrite Rabs_right by lra.
    apply Rle_lt_trans with (s * (norm v + 1)); [apply Rmult_le_compat_l; lra|]. apply Rlt_le_trans with (delta / (norm v + 1) * (norm v + 1)).
    + apply Rmult_lt_compat_r; [lra|]. unfold s. lra.
    + right. field. lra.
  - unfold s in *. lra.
  - assert (E : plus (plus x (scal (s : R_AbsRing) (opp v))) (scal (s : R_AbsRing) v) = x).
    { rewrite <- plus_assoc. etransitivity; [apply f_equal; symmetry; apply (scal_distr_l (K := R_AbsRing) s (opp v) v)|].
      rewrite plus_opp_l. etransitivity; [apply f_equal, (scal_zero_r (K := R_AbsRing) (V := V) s)|apply plus_zero_r]. }
    rewrite E. specialize (Fa s ltac:(unfold s in *; lra)). apply Rabs_le_between in Fa. nra. Qed.

Section Kinks.
Context {I : Type}.
Variables (kinks : list I) (rest : V -> R) (c A : I -> R) (rho : I -> V -> R) (L : I -> V -> R) (D : V -> R) (el eh : R) (x : V).
Hypothesis el_nonneg : 0 <= el.
Hypothesis eh_nonneg : 0 <= eh.
Hypothesis c_nonneg : forall i, In i kinks -> 0 <= c i.
Hypothesis rest_strict : strict rest x D.
Hypothesis rho_strict : forall i, In i kinks -> strict (rho i) x (L i).
Hypothesis at_kink : forall i, In i kinks -> rho i x = kink2 el eh (A i).
Definition kinked (y : V) := Rsum kinks (fun i => c i * cterm2 el eh (A i) (rho i y)) + rest y.
Definition own (i : I) (v : V) := c i * (A i * L i v).
Lemma own_form i : In i kinks -> linear_form (own i).
Proof. intros Hi. destruct (rho_strict i Hi) as [[H1 H2] _]. split; intros; unfold own; rewrite ?H1, ?H2; ring. Qed.
Lemma own_max v : hull_dir kinks own v = Rsum kinks (fun i => c i * Rmax (A i * L i v) 0).
Proof. apply Rsum_ext. intros i Hi. specialize (c_nonneg i Hi). unfold own, Rmax. repeat destruct (Rle_dec _ _); nra. Qed.
(** Clarke's directional derivative: every bent term gives max(A <grad rho, v>, 0). *)
Theorem kinked_clarke_dir v : clarke_dir kinked x v (hull_dir kinks own v + D v).
Proof. rewrite own_max. split.
  - apply above_plus; [|apply strict_above; auto].
    apply (above_Rsum kinks (fun i y => c i * cterm2 el eh (A i) (rho i y)) (fun i => c i * Rmax (A i * L i v) 0)).
    intros i Hi. apply above_scal; [auto|]. apply above_term; auto.
  - apply attained_backwards. replace (- (Rsum kinks (fun i => c i * Rmax (A i * L i v) 0) + D v))
      with (Rsum kinks (fun i => c i * Rmin (A i * L i (opp v)) 0) + D (opp v)).
    + apply one_sided_plus; [|apply strict_one_sided; auto].
      apply (one_sided_Rsum kinks (fun i y => c i * cterm2 el eh (A i) (rho i y)) (fun i => c i * Rmin (A i * L i (opp v)) 0)).
      intros i Hi. apply one_sided_scal. apply one_sided_term; auto.
    + rewrite (form_opp D) by apply rest_strict. rewrite Ropp_plus_distr, <- Rsum_opp. f_equal. apply Rsum_ext. intros i Hi.
      rewrite (form_opp (L i)) by (apply rho_strict; auto). replace (A i * - L i v) with (- (A i * L i v)) by ring. set (z := A i * L i v).
      replace (Rmin (- z) 0) with (- Rmax z 0) by (unfold Rmin, Rmax; repeat destruct (Rle_dec _ _); lra). ring. Qed.
(** Clarke's set: the gradient of the rest plus fractions of the gradients of the bent terms. *)
Theorem clarke_set l : clarke kinked x l <-> linear_form l /\ exists ts, fractions kinks ts /\ forall v, l v = mixed kinks ts own v + D v.
Proof. assert (HD : linear_form D) by apply rest_strict. split.
  - intros [Hl H]. split; auto. apply (hull_forms kinks own D l); auto; [apply own_form|]. intros v. apply H, kinked_clarke_dir.
  - intros [Hl H]. split; auto. intros v d [Hd _]. apply Rle_trans with (hull_dir kinks own v + D v).
    + apply (hull_forms kinks own D l); auto. apply own_form.
    + apply (above_attained kinked x v); auto. apply kinked_clarke_dir. Qed.
End Kinks.

(** Continuously differentiable functions have strict derivatives: the mean value on short segments. *)
Lemma derive_along f y v (t : R) l : has_diff f (plus y (scal (t : R_AbsRing) v)) l -> is_derive (fun r : R => f (plus y (scal (r : R_AbsRing) v))) t (l v).
Proof. intros H.
  apply (filterdiff_ext_lin (V := R_NormedModule) (fun r : R_NormedModule => f (plus y (scal (r : R_AbsRing) v))) (fun r : R_NormedModule => l (scal (r : R_AbsRing) v))).
  - apply (filterdiff_comp' (U := R_NormedModule) (V := V) (W := R_NormedModule) (fun r : R_NormedModule => plus y (scal (r : R_AbsRing) v)) f t (fun r : R_NormedModule => scal (r : R_AbsRing) v) l); auto.
    apply (filterdiff_ext_lin (V := V) (fun r : R_NormedModule => plus y (scal (r : R_AbsRing) v)) (fun r : R_NormedModule => plus zero (scal (r : R_AbsRing) v))).
    + apply (filterdiff_plus_fct (V := V) (fun _ : R_NormedModule => y) (fun r : R_NormedModule => scal (r : R_AbsRing) v)).
      * apply (filterdiff_const (V := V) y).
      * apply (filterdiff_scal_l (V := V) v).
    + intros r. apply plus_zero_l.
  - intros r. destruct H as [[_ Hs _] _]. exact (Hs r v). Qed.
Theorem strict_of_C1 f x (L : V -> V -> R) : locally x (fun y => has_diff f y (L y)) ->
  (forall v, continuous (fun y => L y v : R_UniformSpace) x) -> strict f x (L x).
Proof. intros HD HC. split.
  - destruct (locally_singleton _ _ HD) as [[Hp Hs _] _]. split; [exact Hp|exact Hs].
  - intros v e He.
    assert (HL : locally x (fun y => Rabs (L y v - L x v) < e)).
    { apply (HC v (fun r => Rabs (r - L x v) < e)). exists (mkposreal e He). intros r Hr. exact Hr. }
    destruct (filter_and _ _ HD HL) as [r Hr].
    assert (BN : exists eps, 0 < eps /\ forall y, norm (minus y x) < eps -> has_diff f y (L y) /\ Rabs (L y v - L x v) < e).
    { exists r. split; [apply cond_pos|]. intros y Hy. apply Hr. apply (norm_compat1 x y r). exact Hy. }
    destruct BN as [eps [Heps BN]]. pose proof (norm_ge_0 v) as Nv.
    assert (Hq : 0 < eps / (norm v + 1) / 2) by (repeat apply Rdiv_lt_0_compat; lra).
    exists (Rmin (eps / 2) (eps / (norm v + 1) / 2)). split; [apply Rmin_pos; lra|]. intros y s Hy Hs.
    pose proof (Rmin_l (eps / 2) (eps / (norm v + 1) / 2)). pose proof (Rmin_r (eps / 2) (eps / (norm v + 1) / 2)).
    assert (Near : forall t, 0 <= t <= s -> norm (minus (plus y (scal (t : R_AbsRing) v)) x) < eps).
    { intros t Ht. assert (E : minus (plus y (scal (t : R_AbsRing) v)) x = plus (minus y x) (scal (t : R_AbsRing) v)).
      { unfold minus. rewrite <- !plus_assoc. f_equal. apply plus_comm. }
      rewrite E. eapply Rle_lt_trans; [apply norm_triangle|].
      assert (Et : norm (scal (t : R_AbsRing) v) <= t * norm v).
      { eapply Rle_trans; [apply (norm_scal (K := R_AbsRing))|]. unfold abs; simpl. rewrite Rabs_right; lra. }
      assert (t * norm v <= eps / (norm v + 1) / 2 * (norm v + 1)) by (apply Rmult_le_compat; lra).
      assert (eps / (norm v + 1) / 2 * (norm v + 1) = eps / 2) by (field; lra). lra. }
    destruct (MVT_cor2 (fun t => f (plus y (scal (t : R_AbsRing) v))) (fun t => L (plus y (scal (t : R_AbsRing) v)) v) 0 s) as [t [E Ht]]; [lra| |].
    + intros t Ht. apply is_derive_Reals, derive_along. apply BN, Near. auto.
    + assert (Z : plus y (scal (0 : R_AbsRing) v) = y).
      { etransitivity; [apply f_equal, (scal_zero_l (K := R_AbsRing) v)|apply plus_zero_r]. }
      rewrite Z, Rminus_0_r in E. rewrite E. destruct (BN _ (Near t ltac:(lra))) as [_ Bt].
      replace (L (plus y (scal (t : R_AbsRing) v)) v * s - s * L x v) with ((L (plus y (scal (t : R_AbsRing) v)) v - L x v) * s) by ring.
      rewrite Rabs_mult, (Rabs_right s) by lra. apply Rmult_le_compat_r; lra. Qed.
End Clarke.
