(** * Age weights

    Matched mean delay against matched mean weight; weights of least squared error.

      mse s m n w  variance over n plus squared bias

    Python: exactgrpo.rac.age.mse_optimal, exactgrpo.rac.age.mean_squared_error, exactgrpo.rac.age.decide_ageing_gap *)
From Coq Require Import Reals List Lra Lia.
From Coquelicot Require Import Coquelicot.
From ExactGRPO Require Import FinSum.
Import ListNotations.
Open Scope R_scope.

Lemma exp_ge_tangent x : 1 + x <= exp x.
Proof. destruct (Req_dec x 0) as [->|N]; [rewrite exp_0; lra|]. left. apply exp_ineq1; auto. Qed.
Lemma exp_neg_le_1 x : 0 <= x -> exp (- x) <= 1.
Proof. intros [H|<-]; [|rewrite Ropp_0, exp_0; lra]. rewrite <- exp_0. left. apply exp_increasing. lra. Qed.
Lemma exp_neg_upper u : 0 <= u -> exp (- u) <= 1 - u + u * u / 2.
Proof. intros [H|<-]; [|rewrite Ropp_0, exp_0; lra].
  destruct (MVT_cor2 (fun u => 1 - u + u * u / 2 - exp (- u)) (fun u => -1 + u + exp (- u)) 0 u H) as [c [E Hc]].
  - intros c _. apply is_derive_Reals. auto_derive; [auto|]. field.
  - rewrite Ropp_0, exp_0 in E. pose proof (exp_ge_tangent (- c)).
    assert (0 <= (-1 + c + exp (- c)) * (u - 0)) by (apply Rmult_le_pos; lra). lra. Qed.
Lemma exp_neg_lower v : 0 <= v -> 1 - v * v / 2 <= (1 + v) * exp (- v).
Proof. intros [H|<-]; [|rewrite Ropp_0, exp_0; lra].
  destruct (MVT_cor2 (fun v => v * v / 2 - 1 + (1 + v) * exp (- v)) (fun v => v - v * exp (- v)) 0 v H) as [c [E Hc]].
  - intros c _. apply is_derive_Reals. auto_derive; [auto|]. field.
  - rewrite Ropp_0, exp_0 in E. pose proof (exp_neg_le_1 c ltac:(lra)).
    assert (0 <= (c - c * exp (- c)) * (v - 0)) by (apply Rmult_le_pos; nra). lra. Qed.
Lemma ageing_scalar a b : 0 <= a -> 0 <= b ->
  0 <= exp (- b) - exp (- a) + (b - a) * exp (- a) <= (b - a) * (b - a) / 2.
Proof. intros Ha Hb. pose proof (exp_pos (- a)) as P. pose proof (exp_neg_le_1 a Ha) as P1.
  assert (Eb : exp (- b) = exp (- a) * exp (a - b)) by (rewrite <- exp_plus; f_equal; ring).
  pose proof (exp_ge_tangent (a - b)) as T. split; [rewrite Eb; nra|].
  destruct (Rle_dec a b) as [C|C].
  - pose proof (exp_neg_upper (b - a) ltac:(lra)) as U. replace (- (b - a)) with (a - b) in U by ring. rewrite Eb. nra.
  - pose proof (exp_neg_lower (a - b) ltac:(lra)) as L. replace (- (a - b)) with (b - a) in L by ring.
    assert (Q : exp (- a) <= exp (b - a)) by (destruct Hb as [Hb|<-]; [left; apply exp_increasing; lra|right; f_equal; ring]).
    assert (I : exp (b - a) * exp (a - b) = 1) by (rewrite <- exp_plus, <- exp_0; f_equal; ring).
    rewrite Eb. assert (exp (- a) * (exp (a - b) - 1 - (a - b)) <= exp (b - a) * (exp (a - b) - 1 - (a - b))) by (apply Rmult_le_compat_r; lra). nra. Qed.

Section Laws.
Context {I : Type}.
Variables (l : list I) (p : I -> R).
Hypothesis p_nonneg : forall i, In i l -> 0 <= p i.
(** Matching the mean delay does not match the mean weight; the gap is at most Var / (2 tau^2). *)
Theorem matched_mean_delay (x : I -> R) tau : Rsum l p = 1 -> 0 < tau -> (forall i, In i l -> 0 <= x i) ->
  let m := Rsum l (fun i => p i * x i) in
  0 <= Rsum l (fun i => p i * exp (- (x i / tau))) - exp (- (m / tau)) <= Rsum l (fun i => p i * ((x i - m) * (x i - m))) / (2 * (tau * tau)).
Proof. intros Sp Ht Hx m.
  assert (Hm : 0 <= m) by (apply Rsum_nonneg; intros; apply Rmult_le_pos; auto).
  assert (div : forall z, 0 <= z -> 0 <= z / tau) by (intros; apply Rmult_le_pos; [auto|left; apply Rinv_0_lt_compat; auto]).
  assert (E : Rsum l (fun i => p i * exp (- (x i / tau))) - exp (- (m / tau)) =
    Rsum l (fun i => p i * (exp (- (x i / tau)) - exp (- (m / tau)) + (x i / tau - m / tau) * exp (- (m / tau))))).
  { rewrite (Rsum_ext l (fun i => p i * (exp (- (x i / tau)) - exp (- (m / tau)) + (x i / tau - m / tau) * exp (- (m / tau))))
      (fun i => (p i * exp (- (x i / tau)) - (1 + m / tau) * exp (- (m / tau)) * p i) + / tau * exp (- (m / tau)) * (p i * x i))) by (intros; unfold Rdiv; ring).
    rewrite Rsum_plus, Rsum_minus, !Rsum_scal. fold m. change (Rsum l (fun a => p a)) with (Rsum l p). rewrite Sp. field. lra. }
  rewrite E. split.
  - apply Rsum_nonneg. intros i Hi. apply Rmult_le_pos; auto. apply ageing_scalar; auto.
  - replace (Rsum l (fun i => p i * ((x i - m) * (x i - m))) / (2 * (tau * tau))) with (/ (2 * (tau * tau)) * Rsum l (fun i => p i * ((x i - m) * (x i - m)))) by (unfold Rdiv; ring).
    rewrite <- Rsum_scal. apply Rsum_le. intros i Hi. destruct (ageing_scalar (m / tau) (x i / tau) (div m Hm) (div _ (Hx i Hi))) as [_ U].
    replace (/ (2 * (tau * tau)) * (p i * ((x i - m) * (x i - m)))) with (p i * ((x i / tau - m / tau) * (x i / tau - m / tau) / 2)) by (field; lra).
    apply Rmult_le_compat_l; auto. Qed.

(** Mean squared error of n averaged injections with weights w, when E X = m and
    s i = E[rho^2 X^2 | delay i]: variance over n plus squared bias. *)
Definition mse (s : I -> R) (m n : R) (w : I -> R) : R :=
  (Rsum l (fun i => p i * (w i * w i * s i)) - (m * Rsum l (fun i => p i * w i)) * (m * Rsum l (fun i => p i * w i))) / n
  + (m * Rsum l (fun i => p i * w i) - m) * (m * Rsum l (fun i => p i * w i) - m).
(** It is least at weights inversely proportional to s: ageing pays only when s grows with the delay. *)
Theorem best_age_weights (s : I -> R) m n : 1 <= n -> (forall i, In i l -> 0 < s i) -> let H := Rsum l (fun i => p i / s i) in 0 < H ->
  let lam := n * (m * m) / (1 + (n - 1) * (m * m) * H) in forall w, mse s m n (fun i => lam / s i) <= mse s m n w.
Proof. intros Hn Hs H HP lam w.
  assert (Dp : 0 < 1 + (n - 1) * (m * m) * H) by (assert (0 <= m * m) by apply Rle_0_sqr; assert (0 <= (n - 1) * (m * m)) by (apply Rmult_le_pos; lra); nra).
  set (a := Rsum l (fun i => p i * w i)). set (q := Rsum l (fun i => p i * (w i * w i * s i))).
  assert (CS : a * a <= q * H).
  { apply (Rsum_CS l (fun i => p i * w i) (fun i => p i * (w i * w i * s i)) (fun i => p i / s i)); intros i Hi; specialize (Hs i Hi); specialize (p_nonneg i Hi).
    - apply Rmult_le_pos; auto. apply Rmult_le_pos; [apply Rle_0_sqr|lra].
    - apply Rmult_le_pos; auto. left; apply Rinv_0_lt_compat; auto.
    - right. field. lra. }
  assert (E1 : Rsum l (fun i => p i * (lam / s i)) = lam * H).
  { unfold H. rewrite <- Rsum_scal. apply Rsum_ext. intros i Hi. specialize (Hs i Hi). field. lra. }
  assert (E2 : Rsum l (fun i => p i * (lam / s i * (lam / s i) * s i)) = lam * lam * H).
  { unfold H. rewrite <- Rsum_scal. apply Rsum_ext. intros i Hi. specialize (Hs i Hi). field. lra. }
  unfold mse. rewrite E1, E2. fold a. fold q.
  assert (Q : a * a / H <= q) by (apply Rmult_le_reg_r with H; [auto|]; unfold Rdiv; rewrite Rmult_assoc, Rinv_l by lra; lra).
  apply Rle_trans with ((a * a / H - m * a * (m * a)) / n + (m * a - m) * (m * a - m)).
  - set (c := (1 + (n - 1) * (m * m) * H) / (n * H)).
    assert (Cp : 0 < c) by (apply Rdiv_lt_0_compat; [auto|apply Rmult_lt_0_compat; lra]).
    assert (SQ : 0 <= c * ((a - lam * H) * (a - lam * H))) by (apply Rmult_le_pos; [lra|apply Rle_0_sqr]).
    assert (ID : (a * a / H - m * a * (m * a)) / n + (m * a - m) * (m * a - m)
      - ((lam * lam * H - m * (lam * H) * (m * (lam * H))) / n + (m * (lam * H) - m) * (m * (lam * H) - m)) = c * ((a - lam * H) * (a - lam * H))).
    { unfold c, lam. field. repeat split; lra. }
    lra.
  - apply Rplus_le_compat_r. unfold Rdiv. apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; lra|]. unfold Rdiv in Q. lra. Qed.
End Laws.
