(** * An undefined gradient exists

    Two responses, one prompt: F_t is not differentiable at one point and is everywhere else.

      bern  masses (th, 1 - th)

    Python: exactgrpo.update.oracle.evaluate *)
From Coq Require Import Reals List Lra Lia.
From Coquelicot Require Import Coquelicot.
From ExactGRPO Require Import FinSum Advantages Clip KL Kink Objective.
Import ListNotations.
Open Scope R_scope.

Definition bern (th : R_NormedModule) (_ : unit) (y : bool) : R := if y then th else 1 - th.
Definition Dbern (_ : unit) (y : bool) (h : R_NormedModule) : R := if y then h else - h.
Definition half (_ : unit) (_ : bool) : R := / 2.
Definition rew (_ : unit) (y : bool) : R := if y then 1 else 0.
Definition grp (_ : unit) : list bool := [true; false].
Definition sup (_ : unit) : list bool := [true; false].

Lemma bern_diff y (x : R) : has_diff (V := R_NormedModule) (fun t => bern t tt y) x (Dbern tt y).
Proof. destruct y.
  - apply (filterdiff_id (V := R_NormedModule)).
  - apply (has_diff_ext (V := R_NormedModule) (fun t => 1 + -1 * t) _ x (fun h => 0 + -1 * h)).
    + intros t; unfold bern; ring.
    + intros t; unfold Dbern; ring.
    + apply has_diff_plus; [apply has_diff_const|]. apply (has_diff_scal (V := R_NormedModule) (-1) (fun t => t) x (fun h => h)).
      apply (filterdiff_id (V := R_NormedModule)). Qed.

Lemma sd_val : sd (map (rew tt) (grp tt)) = / 2.
Proof. unfold sd, variance, mean, Rsum; simpl. unfold rew.
  match goal with |- sqrt ?a = _ => replace a with (/ 2 * / 2) by (unfold Rsqr; field) end.
  apply sqrt_square; lra. Qed.
Lemma adv_val y : Adv rew grp tt y = if y then 1 else -1.
Proof. unfold Adv, adv. rewrite sd_val. destruct (Rlt_dec 0 (/2)); [|lra].
  unfold mean, Rsum; simpl. unfold rew. destruct y; field. Qed.

Section At.
Variables (x beta : R).
Hypothesis Hx : 0 < x < 1.
Lemma iff_here : diff_at (F [tt] sup bern half rew (/5) beta (/2 : R) grp) x <->
   smooth_cond [tt] bern rew (/5) (/2 : R) grp x Dbern.
Proof. apply F_diff_iff.
  - lra.
  - discriminate.
  - intros q _; unfold grp; discriminate.
  - intros q _ y Hy; exact Hy.
  - intros q y _ _; unfold bern; destruct y; lra.
  - intros q y _ _; unfold bern; destruct y; lra.
  - intros q y _ _; unfold half; lra.
  - intros [] y _ _; apply bern_diff. Qed.
End At.

Theorem not_differentiable_at_three_fifths beta :
  ~ diff_at (F [tt] sup bern half rew (/5) beta (/2 : R) grp) (3/5 : R).
Proof. rewrite iff_here by lra. intros H.
  specialize (H tt true (or_introl eq_refl) (or_introl eq_refl)).
  rewrite adv_val in H. unfold ratio, bern, kink, Dbern in H. 
  destruct (Rle_dec 0 1); [|lra].
  assert (Z : (1 : R) = 0) by (apply (H ltac:(lra) ltac:(field)  (1 : R))). lra. Qed.

Theorem differentiable_elsewhere beta x : 0 < x < 1 -> x <> 3/5 ->
  diff_at (F [tt] sup bern half rew (/5) beta (/2 : R) grp) x.
Proof. intros Hx N. rewrite iff_here by lra. intros [] y _ _ HA HK h. exfalso.
  rewrite adv_val in HK. unfold ratio, bern, kink in HK. destruct y.
  - destruct (Rle_dec 0 1); [|lra]. apply N. lra.
  - destruct (Rle_dec 0 (-1)); [lra|]. apply N. lra. Qed.
