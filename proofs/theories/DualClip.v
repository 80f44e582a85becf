(** * Dual clip: kinks can cancel

    With a constant floor c A for A < 0 the terms also bend the other way: an instance with a gradient although
    both terms bend, where the clip of the source has none.

      dual_term e c A rho  max(term, c A) for A < 0, the term otherwise

    Python: exactgrpo.field.surrogate.dual_clip_term *)
From Coq Require Import Reals List Lra Lia.
From Coquelicot Require Import Coquelicot.
From ExactGRPO Require Import FinSum Advantages Clip KL Kink Objective OneSided Reversal.
Import ListNotations.
Open Scope R_scope.

Definition dual_term (e c A rho : R) : R := if Rlt_dec A 0 then Rmax (cterm e A rho) (c * A) else cterm e A rho.
(** Three responses, old parameter -1, both of the first two drawn, rewards 0 and 1. *)
Definition mass3 (t : R_NormedModule) (_ : unit) (y : nat) : R :=
  match y with 0%nat => 2 / 5 + t / 5 | 1%nat => 5 / 16 + t / 4 + 3 * (t * t) / 16 | _ => 23 / 80 - 9 * t / 20 - 3 * (t * t) / 16 end.
Definition Dmass3 (t : R) (_ : unit) (y : nat) (h : R_NormedModule) : R :=
  match y with 0%nat => / 5 * h | 1%nat => (/ 4 + 3 * t / 8) * h | _ => (- (9 / 20) - 3 * t / 8) * h end.
Definition rew01 (_ : unit) (y : nat) : R := match y with 0%nat => 0 | _ => 1 end.
Definition two (_ : unit) : list nat := [0%nat; 1%nat].
Definition support3 (_ : unit) : list nat := [0%nat; 1%nat; 2%nat].
Definition rho3 (y : nat) (t : R_NormedModule) : R := ratio mass3 (-1 : R) tt y t.
Definition dual_objective (t : R_NormedModule) : R := / 2 * Rsum (two tt) (fun y => dual_term (/ 4) 2 (Adv rew01 two tt y) (rho3 y t)).
Definition clip_objective (t : R_NormedModule) : R := F [tt] support3 mass3 (fun _ _ => 1) rew01 (/ 4) 0 (-1 : R) two t.

Theorem masses3_law t : -5 / 4 < t < / 2 -> pmf (support3 tt) (mass3 t tt) /\ pos_on (support3 tt) (mass3 t tt).
Proof. intros H. assert (P : pos_on (support3 tt) (mass3 t tt)).
  { intros y [<-|[<-|[<-|[]]]]; unfold mass3; nra. }
  split; [split|auto].
  - intros y Hy. left. auto.
  - unfold support3. rewrite !Rsum_cons, Rsum_nil. unfold mass3. field. Qed.
Lemma adv01 y : In y (two tt) -> Adv rew01 two tt y = match y with 0%nat => -1 | _ => 1 end.
Proof. unfold Adv, two. cbn [map]. intros [<-|[<-|[]]]; cbn [rew01]; rewrite (proj1 (adv_pair 0 1 _ ltac:(lra))); field. Qed.
Lemma rho3_0 t : rho3 0 t = 2 + t.
Proof. unfold rho3, ratio, mass3. field. Qed.
Lemma rho3_1 t : rho3 1 t = 5 / 4 + t + 3 * (t * t) / 4.
Proof. unfold rho3, ratio, mass3. field. Qed.
Lemma derive_has_diff (f : R -> R) x d : is_derive f x d -> has_diff (V := R_NormedModule) f x (fun h : R => d * h).
Proof. intros H. apply (has_diff_ext (V := R_NormedModule) f _ x (fun h : R => h * d)); [reflexivity|intros h; apply Rmult_comm|exact H]. Qed.
Lemma mass3_diff y t : has_diff (V := R_NormedModule) (fun s => mass3 s tt y) t (Dmass3 t tt y).
Proof. destruct y as [|[|y]]; unfold mass3, Dmass3; apply derive_has_diff; auto_derive; auto; field. Qed.

(** The floor bends the first term at ratio 2 = c, the clip the second at ratio 5/4 = 1 + e: the terms go down by t from the
    right and up by t from the left, and their sum has derivative 0. *)
Theorem dual_clip_gradient : has_diff (V := R_NormedModule) dual_objective (0 : R) (fun _ => 0).
Proof. apply has_diff_eps. split; [apply (is_linear_zero (V := R_NormedModule))|]. intros e.
  assert (Hd : 0 < Rmin (/ 4) e) by (apply Rmin_pos; [lra|apply cond_pos]). exists (mkposreal _ Hd). intros y Hy.
  assert (Hy' : Rabs y < Rmin (/ 4) e).
  { unfold ball in Hy; simpl in Hy. unfold AbsRing_ball, abs, minus, plus, opp in Hy; simpl in Hy. rewrite Ropp_0, Rplus_0_r in Hy. exact Hy. }
  assert (B1 : Rabs y < / 4) by (eapply Rlt_le_trans; [exact Hy'|apply Rmin_l]). assert (B2 : Rabs y < e) by (eapply Rlt_le_trans; [exact Hy'|apply Rmin_r]).
  assert (En : norm (minus y (0 : R)) = Rabs y) by (unfold norm, minus, plus, opp; simpl; unfold abs; simpl; rewrite Ropp_0, Rplus_0_r; auto). rewrite En, Rminus_0_r.
  assert (Bq : Rabs (dual_objective y - dual_objective (0 : R)) <= y * y).
  { unfold dual_objective, two. rewrite !Rsum_cons, !Rsum_nil, !adv01, !rho3_0, !rho3_1 by (unfold two; simpl; auto). unfold dual_term.
    destruct (Rlt_dec (-1) 0); [|lra]. destruct (Rlt_dec 1 0); [lra|]. rewrite !(cterm_neg _ (-1)), !(cterm_pos _ 1) by lra.
    apply Rabs_def2 in B1. unfold Rmax, Rmin. assert (Q0 : 0 <= y * y) by apply Rle_0_sqr.
    assert (Q1 : 0 <= y \/ y < 0 /\ y * y <= - y / 4) by (destruct (Rle_dec 0 y); [left; auto|right; split; nra]). set (q := y * y) in *. clearbody q.
    repeat match goal with |- context [Rle_dec ?a ?b] => destruct (Rle_dec a b) | H : context [Rle_dec ?a ?b] |- _ => destruct (Rle_dec a b) end;
      apply Rabs_le; lra. }
  eapply Rle_trans; [exact Bq|]. replace (y * y) with (Rabs y * Rabs y) by (rewrite <- Rabs_mult; apply Rabs_right, Rle_ge, Rle_0_sqr).
  apply Rmult_le_compat_r; [apply Rabs_pos|lra]. Qed.
(** The first term alone has no derivative there. *)
Theorem dual_term_bends : ~ diff_at (V := R_NormedModule) (fun t => dual_term (/ 4) 2 (-1) (rho3 0 t)) (0 : R).
Proof. intros [D HD].
  assert (V : forall t, Rabs t < / 4 -> dual_term (/ 4) 2 (-1) (rho3 0 t) = - Rmin (2 + t) 2).
  { intros t Ht. apply Rabs_def2 in Ht. rewrite rho3_0. unfold dual_term. destruct (Rlt_dec (-1) 0); [|lra]. rewrite cterm_neg by lra.
    unfold Rmax, Rmin.
    repeat match goal with |- context [Rle_dec ?a ?b] => destruct (Rle_dec a b) | H : context [Rle_dec ?a ?b] |- _ => destruct (Rle_dec a b) end; lra. }
  assert (OD : D (opp (1 : R_NormedModule)) = - D (1 : R)) by (apply (linear_opp (D : R_NormedModule -> R_NormedModule)); apply (proj1 HD)).
  destruct (has_diff_one_sided _ _ _ (1 : R_NormedModule) HD (/ 4) ltac:(lra)) as [a [Ha Fa]].
  destruct (has_diff_one_sided _ _ _ (opp (1 : R_NormedModule)) HD (/ 4) ltac:(lra)) as [b [Hb Fb]].
  set (s := Rmin (Rmin a b) (/ 4) / 2). pose proof (Rmin_l (Rmin a b) (/ 4)). pose proof (Rmin_r (Rmin a b) (/ 4)). pose proof (Rmin_l a b). pose proof (Rmin_r a b).
  assert (Hs : 0 < s) by (unfold s; assert (0 < Rmin (Rmin a b) (/ 4)) by (repeat apply Rmin_pos; lra); lra).
  specialize (Fa s ltac:(unfold s in *; lra)). specialize (Fb s ltac:(unfold s in *; lra)).
  assert (E1 : plus (0 : R_NormedModule) (scal (s : R_AbsRing) (1 : R_NormedModule)) = s) by (unfold plus, scal; simpl; unfold mult; simpl; ring).
  assert (E2 : plus (0 : R_NormedModule) (scal (s : R_AbsRing) (opp (1 : R_NormedModule))) = - s) by (unfold plus, scal, opp; simpl; unfold mult; simpl; ring).
  assert (S4 : s < / 4) by (unfold s; lra).
  cbv beta in Fa, Fb. rewrite E1 in Fa. rewrite E2, OD in Fb.
  rewrite !V in Fa by (rewrite ?Rabs_R0; try (rewrite Rabs_right by lra); lra).
  rewrite !V in Fb by (rewrite ?Rabs_R0; try (rewrite Rabs_Ropp, Rabs_right by lra); lra).
  rewrite Rmin_right, Rmin_right in Fa by lra. rewrite (Rmin_left (2 + - s)), Rmin_right in Fb by lra.
  apply Rabs_le_between in Fa. apply Rabs_le_between in Fb. nra. Qed.
(** With the clip of the source the same point has no gradient: there, kinks never cancel. *)
Theorem clip_has_no_gradient : ~ diff_at (V := R_NormedModule) clip_objective (0 : R).
Proof. unfold clip_objective. intros H.
  apply (F_diff_iff (V := R_NormedModule) [tt] support3 mass3 (fun _ _ => 1) rew01 (/ 4) 0 (-1 : R) two (0 : R) (Dmass3 0)) in H.
  - specialize (H tt 1%nat (or_introl eq_refl) ltac:(unfold two; simpl; auto)). rewrite adv01 in H by (unfold two; simpl; auto).
    fold (rho3 1 (0 : R)) in H. rewrite rho3_1 in H. unfold kink in H. destruct (Rle_dec 0 1); [|lra].
    specialize (H ltac:(lra) ltac:(field) (1 : R)). unfold Dmass3 in H. lra.
  - lra.
  - discriminate.
  - intros; discriminate.
  - intros [] _ y [<-|[<-|[]]]; simpl; auto.
  - intros [] y _ Hy. apply (proj2 (masses3_law 0 ltac:(lra))). exact Hy.
  - intros [] y _ Hy. apply (proj2 (masses3_law (-1) ltac:(lra))). exact Hy.
  - intros; lra.
  - intros [] y _ _. apply mass3_diff. Qed.
