(** * The first inner step

    The first gradient is the group estimator with the score; its expectation.

      score q h y  derivative of log pi(y|q) along h

    Python: exactgrpo.field.expected_gradient.reward_gradient, exactgrpo.field.expected_gradient.expected_group_gradient, exactgrpo.field.expected_gradient.binary_factor
    Python: exactgrpo.rac.clip.injected_gradient
    Python, to come: exactgrpo.update.law *)
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
  unfold gate, gate2. destruct (Rlt_dec 0 A); [destruct (Rlt_dec 1 (1 + eps)); [ring|lra]|].
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

(** One prompt, success or failure: the expected first gradient is c_G(p) times the
    gradient of the success probability, in every direction. *)
Section Binary.
Context {V : NormedModule R_AbsRing} {Q Y : Type}.
Variables (q : Q) (B : Q -> list Y) (U : V -> Prop) (pi : V -> Q -> Y -> R) (pref rew : Q -> Y -> R) (eps : R).
Variables (th0 : V) (Dpi : Q -> Y -> V -> R) (succ : Y -> bool).
Hypothesis eps_pos : 0 < eps.
Hypothesis U_open : open U.
Hypothesis U0 : U th0.
Hypothesis pi_pos : forall y, In y (B q) -> 0 < pi th0 q y.
Hypothesis pi_sum : forall th, U th -> Rsum (B q) (pi th q) = 1.
Hypothesis pi_diff : forall y, In y (B q) -> has_diff (fun t => pi t q y) th0 (Dpi q y).
Hypothesis binary : forall y, rew q y = ind succ true y.
Theorem binary_expected_gradient G h : (1 <= G)%nat ->
  has_diff (fun t => psucc (B q, pi t q) succ) th0 (fun k => E1 (B q, pi th0 q) (fun y => rew q y * score pi th0 Dpi q k y)) /\
  E (repeat (B q, pi th0 q) G) (fun w => gradF [q] B pi pref rew eps 0 th0 (fun _ => w) th0 Dpi h)
  = cG (psucc (B q, pi th0 q) succ) G * E1 (B q, pi th0 q) (fun y => rew q y * score pi th0 Dpi q h y).
Proof. intros HG.
  assert (S1 : forall q' th, U th -> In q' [q] -> Rsum (B q') (pi th q') = 1) by (intros q' th Ht [<-|[]]; auto).
  assert (P1 : forall q' y, In q' [q] -> In y (B q') -> 0 < pi th0 q' y) by (intros q' y [<-|[]]; auto).
  assert (D1 : forall q' y, In q' [q] -> In y (B q') -> has_diff (fun t => pi t q' y) th0 (Dpi q' y)) by (intros q' y [<-|[]]; auto).
  assert (M0 : E1 (B q, pi th0 q) (score pi th0 Dpi q h) = 0).
  { apply (score_mean0 [q] B U pi th0 Dpi P1 U_open U0 (fun th q' => S1 q' th) D1 q h). left; auto. }
  assert (Hc : ispmf (B q, pi th0 q)) by (split; simpl; [intros; left; auto|apply S1; [exact U0|left; auto]]).
  split.
  - eapply has_diff_ext; [| |apply (score_reward_is_gradient [q] B pi rew th0 Dpi P1 D1 q (or_introl eq_refl))].
    + intros t. unfold psucc, E1. simpl. apply Rsum_ext. intros y _. rewrite binary. reflexivity.
    + reflexivity.
  - rewrite (E1_ext _ _ (fun y => ind succ true y * score pi th0 Dpi q h y)) by (intros; rewrite binary; auto).
    rewrite <- (grpo_binary_first_step (B q, pi th0 q) Hc succ G (score pi th0 Dpi q h) HG M0).
    apply E_ext. intros w Hw.
    assert (Hs : incl w (B q)).
    { clear - Hw. revert w Hw. induction G as [|G IH]; intros w Hw; [destruct Hw as [<-|[]]; intros y []|].
      simpl in Hw. apply in_flat_map in Hw. destruct Hw as [y [Hy Hw]]. apply in_map_iff in Hw. destruct Hw as [w' [<- Hw]].
      intros z [<-|Hz]; auto. apply (IH w' Hw z Hz). }
    assert (Lw : length w = G) by (rewrite (tuples_length _ _ Hw), repeat_length; auto).
    rewrite (first_step_gradient [q] B pi pref rew eps th0 (fun _ => w) Dpi eps_pos P1 h) by (intros q' [<-|[]]; auto).
    rewrite Rsum_cons, Rsum_nil, Lw, Rplus_0_r. simpl (INR (length [q])). rewrite Rinv_1, Rmult_1_l. f_equal. apply Rsum_ext. intros y Hy.
    rewrite binary. do 2 f_equal. apply map_ext. intros; apply binary. Qed.
End Binary.
