(** From the objective to the law: the first inner gradient of F_t (beta = 0) is the
    group estimator of Law.v with the score s_h = D_h pi / pi; the score has mean
    zero and E[r s_h] is the derivative of the expected reward. *)
From Coq Require Import Reals List Lra Lia Arith.
From Coquelicot Require Import Coquelicot.
From ExactGRPO Require Import FinSum Advantages Clip KL Kink Objective Law.
Import ListNotations.
Open Scope R_scope.
Section FirstStep.
Context {V : NormedModule R_AbsRing} {Q Y : Type}.
Variables (prompts : list Q) (B : Q -> list Y) (U : V -> Prop) (pi : V -> Q -> Y -> R) (pref rew : Q -> Y -> R) (eps : R).
Variables (th0 : V) (Ys : Q -> list Y) (Dpi : Q -> Y -> V -> R).
Hypothesis eps_pos : 0 < eps.
Hypothesis pi_pos : forall q y, In q prompts -> In y (B q) -> 0 < pi th0 q y.
Definition score q h y := Dpi q y h / pi th0 q y.
Theorem first_step_gradient h : (forall q, In q prompts -> incl (Ys q) (B q)) ->
  gradF prompts B pi pref rew eps 0 th0 Ys th0 Dpi h =
  / INR (length prompts) * Rsum prompts (fun q => / INR (length (Ys q)) * Rsum (Ys q) (fun y => adv (map (rew q) (Ys q)) (rew q y) * score q h y)).
Proof. intros Hs. unfold gradF. f_equal. apply Rsum_ext. intros q Hq. rewrite Rmult_0_l, Rminus_0_r. f_equal. apply Rsum_ext. intros y Hy.
  pose proof (pi_pos q y Hq (Hs q Hq y Hy)) as P. unfold ratio. replace (pi th0 q y / pi th0 q y) with 1 by (field; lra).
  unfold score, Rdiv. change (Adv rew Ys q y) with (adv (map (rew q) (Ys q)) (rew q y)). set (A := adv _ _).
  unfold gate. destruct (Rlt_dec 0 A); [destruct (Rlt_dec 1 (1 + eps)); [ring|lra]|].
  destruct (Rlt_dec A 0); [destruct (Rlt_dec (1 - eps) 1); [ring|lra]|]. replace A with 0 by lra. ring. Qed.
Hypothesis U_open : open U.
Hypothesis U0 : U th0.
Hypothesis pi_sum : forall th q, U th -> In q prompts -> Rsum (B q) (pi th q) = 1.
Hypothesis pi_diff : forall q y, In q prompts -> In y (B q) -> has_diff (fun t => pi t q y) th0 (Dpi q y).
Theorem score_mean0 q h : In q prompts -> E1 (B q, pi th0 q) (score q h) = 0.
Proof. intros Hq. unfold E1, score. simpl. rewrite (Rsum_ext (B q) _ (fun y => Dpi q y h)).
  2: { intros y Hy. pose proof (pi_pos q y Hq Hy). field. lra. }
  pose proof (has_diff_Rsum (B q) (fun y t => pi t q y) (fun y h => Dpi q y h) th0 (fun y Hy => pi_diff q y Hq Hy)) as H1.
  assert (H2 : has_diff (fun t => Rsum (B q) (fun y => pi t q y)) th0 (fun _ => 0)).
  { apply (has_diff_local (fun _ => 1)); [|apply has_diff_const]. generalize (U_open th0 U0). apply filter_imp. intros t Ht. symmetry. apply (pi_sum t q Ht Hq). }
  exact (has_diff_unique _ _ _ _ H1 H2 h). Qed.
Theorem score_reward_is_gradient q : In q prompts ->
  has_diff (fun t => Rsum (B q) (fun y => pi t q y * rew q y)) th0 (fun h => E1 (B q, pi th0 q) (fun y => rew q y * score q h y)).
Proof. intros Hq. apply (has_diff_ext (fun t => Rsum (B q) (fun y => rew q y * pi t q y)) _ th0 (fun h => Rsum (B q) (fun y => rew q y * Dpi q y h))).
  - intros t. apply Rsum_ext. intros; ring.
  - intros k. unfold E1, score. simpl. apply Rsum_ext. intros y Hy. pose proof (pi_pos q y Hq Hy). field. lra.
  - apply (has_diff_Rsum (B q) (fun y t => rew q y * pi t q y) (fun y h => rew q y * Dpi q y h)). intros y Hy. apply has_diff_scal. apply pi_diff; auto. Qed.
End FirstStep.
