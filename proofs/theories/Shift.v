(** * Size of a policy step

    Total variation after an exponential reweighting is at most tanh(osc(h)/4), sharply; a softmax step is one.

      shifted B p h b  p b exp(h b), normalised

    Python: exactgrpo.rac.policy_shift.shifted, exactgrpo.rac.policy_shift.shift_bound, exactgrpo.rac.policy_shift.decide_shift, exactgrpo.rac.policy_shift.extremal_shift
    Python: exactgrpo.rac.policy_shift.decide_corrected_step *)
From Coq Require Import Reals List Lra Lia.
From Coquelicot Require Import Coquelicot.
From ExactGRPO Require Import FinSum Advantages Clip KL Divergence Kink Objective Softmax.
Import ListNotations.
Open Scope R_scope.

(** odds-ratio lemma: if x(1-y) <= c^2 y(1-x) then x - y <= (c-1)/(c+1) *)
Lemma odds_gap x y c : 0 <= x <= 1 -> 0 <= y <= 1 -> 1 <= c ->
  x * (1 - y) <= c * c * (y * (1 - x)) -> x - y <= (c - 1) / (c + 1).
Proof. intros Hx Hy Hc H.
  set (a := x * (1 - y)) in *. set (b := y * (1 - x)) in *.
  assert (Ha : 0 <= a) by (apply Rmult_le_pos; lra). assert (Hb : 0 <= b) by (apply Rmult_le_pos; lra).
  set (u := sqrt a). set (v := sqrt b).
  assert (Hu : 0 <= u) by apply sqrt_pos. assert (Hv : 0 <= v) by apply sqrt_pos.
  assert (Eu : u * u = a) by (apply sqrt_sqrt; auto). assert (Ev : v * v = b) by (apply sqrt_sqrt; auto).
  assert (S1 : u + v <= 1).
  { assert (Q : 4 * (a * b) <= (1 - a - b) * (1 - a - b)).
    { unfold a, b. assert (0 <= (1 - x - y) * (1 - x - y)) by apply Rle_0_sqr. nra. }
    assert (AB : 0 <= 1 - a - b) by (unfold a, b; nra).
    assert (UV : 2 * (u * v) <= 1 - a - b).
    { apply Rsqr_incr_0_var; auto. unfold Rsqr. replace (2 * (u * v) * (2 * (u * v))) with (4 * ((u * u) * (v * v))) by ring. rewrite Eu, Ev. auto. }
    assert ((u + v) * (u + v) <= 1) by nra. nra. }
  assert (S2 : u <= c * v).
  { apply Rsqr_incr_0_var; [|apply Rmult_le_pos; lra]. unfold Rsqr. replace (c * v * (c * v)) with (c * c * (v * v)) by ring. rewrite Eu, Ev. auto. }
  assert (E : x - y = (u - v) * (u + v)) by (replace ((u - v) * (u + v)) with (u * u - v * v) by ring; rewrite Eu, Ev; unfold a, b; ring).
  rewrite E. apply Rmult_le_reg_r with (c + 1); [lra|]. replace ((c - 1) / (c + 1) * (c + 1)) with (c - 1) by (field; lra).
  assert (T1 : (u - v) * (c + 1) <= (c - 1) * (u + v)) by nra.
  assert (T2 : (u - v) * (u + v) * (c + 1) <= (c - 1) * ((u + v) * (u + v))) by nra.
  assert (T3 : (u + v) * (u + v) <= 1) by nra.
  assert (T4 : (c - 1) * ((u + v) * (u + v)) <= (c - 1) * 1) by (apply Rmult_le_compat_l; lra). lra. Qed.

Lemma tanh_half d : (exp (2 * d) - 1) / (exp (2 * d) + 1) = tanh d.
Proof. unfold tanh, sinh, cosh. pose proof (exp_pos d) as P. rewrite exp_Ropp. replace (2 * d) with (d + d) by ring. rewrite exp_plus.
  field. repeat split; nra. Qed.

Section Shift.
Context {Y : Type}.
Variables (B : list Y) (p h : Y -> R) (lo hi : R).
Hypothesis p_nonneg : forall b, In b B -> 0 <= p b.
Hypothesis p_sum : Rsum B p = 1.
Hypothesis h_rng : forall b, In b B -> lo <= h b <= hi.      (* hi - lo = osc h *)
Definition Zh := Rsum B (fun b => p b * exp (h b)).
Definition shifted b := p b * exp (h b) / Zh.
Lemma exp_mono x y : x <= y -> exp x <= exp y.
Proof. intros [H|H]; [left; apply exp_increasing; auto|right; rewrite H; auto]. Qed.
Lemma Zh_pos : 0 < Zh.
Proof. apply Rlt_le_trans with (exp lo); [apply exp_pos|]. unfold Zh.
  replace (exp lo) with (exp lo * Rsum B p) by (rewrite p_sum; ring). rewrite <- Rsum_scal. apply Rsum_le. intros b Hb.
  rewrite Rmult_comm. apply Rmult_le_compat_l; auto. apply exp_mono. apply h_rng; auto. Qed.
Lemma shifted_sum : Rsum B shifted = 1.
Proof. unfold shifted, Rdiv. rewrite Rsum_scal_r. apply Rinv_r. pose proof Zh_pos. unfold Zh in *. lra. Qed.
Lemma shifted_nonneg b : In b B -> 0 <= shifted b.
Proof. intros Hb. pose proof Zh_pos. unfold shifted, Rdiv. apply Rmult_le_pos; [|left; apply Rinv_0_lt_compat; auto].
  apply Rmult_le_pos; auto. left; apply exp_pos. Qed.
Definition up b : bool := if Rle_dec (shifted b) (p b) then false else true.
Definition rs (s : bool) (f : Y -> R) := Rsum B (fun b => if Bool.eqb (up b) s then f b else 0).
Lemma rs_split f : Rsum B f = rs true f + rs false f.
Proof. unfold rs. rewrite <- Rsum_plus. apply Rsum_ext. intros b _. destruct (up b); simpl; ring. Qed.
Lemma TV_up : TV B shifted p = rs true shifted - rs true p.
Proof. unfold TV. assert (E : Rsum B (fun b => Rabs (shifted b - p b)) = (rs true shifted - rs true p) - (rs false shifted - rs false p)).
  { unfold rs. rewrite <- !Rsum_minus. apply Rsum_ext. intros b _. unfold up. destruct (Rle_dec (shifted b) (p b)); simpl.
    - rewrite Rabs_left1 by lra. ring.
    - rewrite Rabs_right by lra. ring. }
  pose proof (rs_split shifted) as S1. pose proof (rs_split p) as S2. rewrite shifted_sum in S1. rewrite p_sum in S2. rewrite E. lra. Qed.
Lemma lohi : lo <= hi.
Proof. destruct B as [|b l] eqn:E; [rewrite Rsum_nil in p_sum; lra|]. destruct (h_rng b (or_introl eq_refl)). lra. Qed.
Theorem TV_shift_tanh : TV B shifted p <= tanh ((hi - lo) / 4).
Proof. rewrite <- tanh_half. replace (2 * ((hi - lo) / 4)) with ((hi - lo) / 2) by field.
  pose proof Zh_pos as ZP. pose proof lohi as LH.
  assert (NN : forall s f, (forall b, In b B -> 0 <= f b) -> 0 <= rs s f).
  { intros s f Hf. apply Rsum_nonneg. intros b Hb. destruct (Bool.eqb _ _); [auto|lra]. }
  pose proof (NN true shifted shifted_nonneg). pose proof (NN false shifted shifted_nonneg).
  pose proof (NN true p p_nonneg). pose proof (NN false p p_nonneg).
  pose proof (rs_split shifted) as S1. pose proof (rs_split p) as S2. rewrite shifted_sum in S1. rewrite p_sum in S2.
  rewrite TV_up. apply odds_gap; try lra.
  - rewrite <- exp_0. apply exp_mono. lra.
  - rewrite <- exp_plus. replace ((hi - lo) / 2 + (hi - lo) / 2) with (hi + - lo) by field. rewrite exp_plus.
    replace (1 - rs true p) with (rs false p) by lra. replace (1 - rs true shifted) with (rs false shifted) by lra.
    assert (U1 : rs true shifted <= exp hi / Zh * rs true p).
    { unfold rs. rewrite <- Rsum_scal. apply Rsum_le. intros b Hb. destruct (Bool.eqb _ _); [|lra]. unfold shifted.
      replace (exp hi / Zh * p b) with (p b * exp hi / Zh) by (unfold Rdiv; ring). unfold Rdiv.
      apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; auto|]. apply Rmult_le_compat_l; auto. apply exp_mono, h_rng; auto. }
    assert (U2 : exp lo / Zh * rs false p <= rs false shifted).
    { unfold rs. rewrite <- Rsum_scal. apply Rsum_le. intros b Hb. destruct (Bool.eqb _ _); [|lra]. unfold shifted.
      replace (exp lo / Zh * p b) with (p b * exp lo / Zh) by (unfold Rdiv; ring). unfold Rdiv.
      apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; auto|]. apply Rmult_le_compat_l; auto. apply exp_mono, h_rng; auto. }
    assert (U3 : rs false p <= exp (- lo) * Zh * rs false shifted).
    { rewrite exp_Ropp. pose proof (exp_pos lo) as EL. apply Rmult_le_reg_l with (exp lo / Zh); [apply Rdiv_lt_0_compat; auto|].
      replace (exp lo / Zh * (/ exp lo * Zh * rs false shifted)) with (rs false shifted) by (field; lra). auto. }
    pose proof (exp_pos hi) as EH. pose proof (exp_pos (- lo)) as EN.
    apply Rle_trans with (exp hi / Zh * rs true p * (exp (- lo) * Zh * rs false shifted)).
    + apply Rmult_le_compat; auto.
    + right. field. lra. Qed.
End Shift.

(** sharp: two outcomes, h = (lo, hi), p chosen at the optimum *)
Theorem TV_shift_sharp d : 0 <= d -> let p (b : bool) := if b then / (exp (d / 2) + 1) else exp (d / 2) / (exp (d / 2) + 1) in
  let h (b : bool) := if b then d else 0 in TV [true; false] (shifted [true; false] p h) p = tanh (d / 4).
Proof. intros Hd p h. rewrite <- tanh_half. replace (2 * (d / 4)) with (d / 2) by field. set (c := exp (d / 2)) in *.
  assert (C1 : 1 <= c) by (unfold c; rewrite <- exp_0; apply exp_mono; lra).
  assert (ED : exp d = c * c) by (unfold c; rewrite <- exp_plus; f_equal; field).
  assert (Z : Zh [true; false] p h = c). { unfold Zh. rewrite !Rsum_cons, Rsum_nil. unfold p, h. rewrite ED, exp_0. field. lra. }
  unfold TV. rewrite !Rsum_cons, Rsum_nil. unfold shifted. rewrite Z. unfold p, h. rewrite ED, exp_0.
  replace (/ (c + 1) * (c * c) / c - / (c + 1)) with ((c - 1) / (c + 1)) by (field; lra).
  replace (c / (c + 1) * 1 / c - c / (c + 1)) with (- ((c - 1) / (c + 1))) by (field; lra).
  rewrite Rabs_Ropp. assert (0 <= (c - 1) / (c + 1)) by (apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat; lra]).
  rewrite Rabs_right by lra. field. lra. Qed.


(** A step of a softmax policy is such a reweighting: h is the change of the scores
    (for a flat softmax, phi_y . (theta' - theta)), so the bound applies to the step. *)
Theorem softmax_step_is_shift {V : NormedModule R_AbsRing} {Y : Type} (B : list Y) (s : Y -> V -> R) (h : Y -> R) x x' :
  B <> [] -> (forall b, In b B -> s b x' = s b x + h b) -> forall b, In b B -> softmax B s x' b = shifted B (softmax B s x) h b.
Proof. intros Hne Hs b Hb. pose proof (Zs_pos B s Hne x) as Z. pose proof (Zs_pos B s Hne x') as Z'.
  assert (E : Zs B s x' = Zs B s x * Zh B (softmax B s x) h).
  { unfold Zh. rewrite <- Rsum_scal. apply Rsum_ext. intros c Hc. rewrite (Hs c Hc), exp_plus. unfold softmax. field. lra. }
  unfold shifted, softmax at 1. rewrite E, (Hs b Hb), exp_plus. assert (Zh B (softmax B s x) h <> 0) by (intros Q; rewrite Q in E; lra).
  unfold softmax. field. repeat split; auto; lra. Qed.
Corollary softmax_step_TV {V : NormedModule R_AbsRing} {Y : Type} (B : list Y) (s : Y -> V -> R) (h : Y -> R) x x' lo hi :
  B <> [] -> (forall b, In b B -> s b x' = s b x + h b) -> (forall b, In b B -> lo <= h b <= hi) ->
  TV B (softmax B s x') (softmax B s x) <= tanh ((hi - lo) / 4).
Proof. intros Hne Hs Hh. replace (TV B (softmax B s x') (softmax B s x)) with (TV B (shifted B (softmax B s x) h) (softmax B s x)).
  - apply TV_shift_tanh; auto; [intros; left; apply softmax_pos; auto|apply softmax_sum; auto].
  - unfold TV. f_equal. apply Rsum_ext. intros b Hb. rewrite (softmax_step_is_shift B s h x x') by auto. reflexivity. Qed.
