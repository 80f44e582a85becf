(** * Ceiling of the objective

    F_t <= eps * mean |A| - beta * mean KL <= eps.

    Python: exactgrpo.update.objective.value *)
From Coq Require Import Reals List Lra Lia.
From Coquelicot Require Import Coquelicot.
From ExactGRPO Require Import FinSum Advantages Clip KL Kink Objective.
Import ListNotations.
Open Scope R_scope.

(** The mean absolute advantage of a group is at most one. *)
Theorem mean_abs_adv_le_1 rs : rs <> [] -> / INR (length rs) * Rsum (advantages rs) Rabs <= 1.
Proof. intros Hne. pose proof (len_pos rs Hne) as L.
  assert (S2 : Rsum (advantages rs) Rsqr <= INR (length rs)).
  { pose proof (sd_nonneg rs). destruct (Rlt_dec 0 (sd rs)) as [H1|H1]; [right; apply advantages_sumsq; auto|].
    rewrite Rsum_0; [lra|]. intros a Ha. pose proof (advantages_degenerate rs ltac:(lra)) as F. rewrite List.Forall_forall in F. rewrite (F a Ha). unfold Rsqr; ring. }
  pose proof (Rsum_CS (advantages rs) Rabs (fun _ => 1) Rsqr) as CS.
  assert (CS' : Rsum (advantages rs) Rabs * Rsum (advantages rs) Rabs <= Rsum (advantages rs) (fun _ => 1) * Rsum (advantages rs) Rsqr).
  { apply CS; intros; try lra; [apply Rle_0_sqr|]. rewrite <- Rabs_mult, Rabs_right; [unfold Rsqr; lra|apply Rle_ge, Rle_0_sqr]. }
  rewrite Rsum_const in CS'. replace (length (advantages rs)) with (length rs) in CS' by (symmetry; apply advantages_length).
  assert (N : 0 <= Rsum (advantages rs) Rabs) by (apply Rsum_nonneg; intros; apply Rabs_pos).
  assert (Rsum (advantages rs) Rabs <= INR (length rs)).
  { apply Rsqr_incr_0_var; [|lra]. unfold Rsqr. nra. }
  apply Rmult_le_reg_l with (INR (length rs)); auto. rewrite <- Rmult_assoc, Rinv_r by lra. lra. Qed.

Section Ceiling.
Context {V : NormedModule R_AbsRing} {Q Y : Type}.
Variables (prompts : list Q) (B : Q -> list Y) (pi : V -> Q -> Y -> R) (pref rew : Q -> Y -> R) (eps beta : R) (th0 th : V) (Ys : Q -> list Y).
Hypothesis eps_nonneg : 0 <= eps.
Hypothesis beta_nonneg : 0 <= beta.
Hypothesis prompts_ne : prompts <> [].
Hypothesis Ys_ne : forall q, In q prompts -> Ys q <> [].
Lemma group_ceiling q : In q prompts ->
  / INR (length (Ys q)) * Rsum (Ys q) (fun y => cterm eps (Adv rew Ys q y) (ratio pi th0 q y th))
  <= eps * (/ INR (length (Ys q)) * Rsum (Ys q) (fun y => Rabs (Adv rew Ys q y))).
Proof. intros Hq. pose proof (INR_length_pos (Ys q) (Ys_ne q Hq)) as L.
  assert (Z : Rsum (Ys q) (Adv rew Ys q) = 0).
  { pose proof (advantages_sum0 (map (rew q) (Ys q))) as S. unfold advantages in S. rewrite !Rsum_map in S. apply S. destruct (Ys q) eqn:E; [exfalso; apply (Ys_ne q Hq); auto|discriminate]. }
  replace (eps * (/ INR (length (Ys q)) * Rsum (Ys q) (fun y => Rabs (Adv rew Ys q y)))) with
    (/ INR (length (Ys q)) * (Rsum (Ys q) (Adv rew Ys q) + eps * Rsum (Ys q) (fun y => Rabs (Adv rew Ys q y)))) by (rewrite Z; ring).
  apply Rmult_le_compat_l; [left; apply Rinv_0_lt_compat; auto|]. rewrite <- Rsum_scal, <- Rsum_plus. apply Rsum_le. intros y _.
  rewrite <- cterm2_same. eapply Rle_trans; [apply cterm2_ceiling; auto|]. rewrite Rmax_left by lra. lra. Qed.
(** F_t is at most eps times the mean absolute advantage, less the penalty ... *)
Theorem objective_ceiling : F prompts B pi pref rew eps beta th0 Ys th <=
  / INR (length prompts) * Rsum prompts (fun q => eps * (/ INR (length (Ys q)) * Rsum (Ys q) (fun y => Rabs (Adv rew Ys q y))) - beta * KL (B q) (pi th q) (pref q)).
Proof. unfold F. apply Rmult_le_compat_l; [left; apply Rinv_0_lt_compat, INR_length_pos; auto|]. apply Rsum_le. intros q Hq.
  pose proof (group_ceiling q Hq). unfold cterm in *. lra. Qed.
(** ... hence at most eps. *)
Theorem objective_le_eps : (forall q, In q prompts -> pmf (B q) (pi th q) /\ pmf (B q) (pref q) /\ pos_on (B q) (pref q)) ->
  F prompts B pi pref rew eps beta th0 Ys th <= eps.
Proof. intros H. eapply Rle_trans; [apply objective_ceiling|]. pose proof (INR_length_pos prompts prompts_ne) as L.
  apply Rle_trans with (/ INR (length prompts) * Rsum prompts (fun _ => eps)).
  - apply Rmult_le_compat_l; [left; apply Rinv_0_lt_compat; auto|]. apply Rsum_le. intros q Hq. destruct (H q Hq) as [P1 [P2 P3]].
    pose proof (KL_nonneg (B q) (pi th q) (pref q) P1 P2 P3) as K0.
    assert (M1 : / INR (length (Ys q)) * Rsum (Ys q) (fun y => Rabs (Adv rew Ys q y)) <= 1).
    { pose proof (mean_abs_adv_le_1 (map (rew q) (Ys q))) as M. unfold advantages in M. rewrite !Rsum_map, map_length in M. apply M.
      destruct (Ys q) eqn:E; [exfalso; apply (Ys_ne q Hq); auto|discriminate]. }
    nra.
  - rewrite Rsum_const. right. field. lra. Qed.
End Ceiling.
