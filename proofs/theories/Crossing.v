(** * Where the two divergence bounds cross

    Pinsker's bound is the smaller one up to KL = 1.59362..., Bretagnolle-Huber's beyond.

      excess x  1 - exp(-x) - x/2, whose sign compares the two

    Python: exactgrpo.rac.crossing.crossing *)
From Coq Require Import Reals Ranalysis5 List Lra Lia ZArith.
From Coquelicot Require Import Coquelicot.
From ExactGRPO Require Import LnFix.
Open Scope R_scope.

Definition excess (x : R) : R := 1 - exp (- x) - x / 2.
Lemma excess_der x : derivable_pt_lim excess x (exp (- x) - / 2).
Proof. apply is_derive_Reals. unfold excess. auto_derive; [auto|]. field. Qed.
Lemma slope_decreases x y : x < y -> exp (- y) - / 2 < exp (- x) - / 2.
Proof. intros H. assert (exp (- y) < exp (- x)) by (apply exp_increasing; lra). lra. Qed.
Lemma excess_0 : excess 0 = 0.
Proof. unfold excess. rewrite Ropp_0, exp_0. field. Qed.
Lemma excess_mvt a b : a < b -> exists c, a < c < b /\ excess b - excess a = (exp (- c) - / 2) * (b - a).
Proof. intros H. destruct (MVT_cor2 excess (fun c => exp (- c) - / 2) a b H) as [c [E Hc]]; [intros; apply excess_der|]. exists c. auto. Qed.
(** a positive root is the only one, with a positive excess before it and a negative one after it *)
Lemma excess_before k x : excess k = 0 -> 0 < x < k -> 0 < excess x.
Proof. intros Hk Hx. destruct (excess_mvt 0 x) as [c [Hc E]]; [lra|]. destruct (excess_mvt x k) as [d [Hd F]]; [lra|].
  rewrite excess_0 in E. rewrite Hk in F. pose proof (slope_decreases c d ltac:(lra)).
  destruct (Rlt_dec 0 (excess x)); auto. exfalso. assert (exp (- c) - / 2 <= 0) by nra. nra. Qed.
Lemma excess_after k x : excess k = 0 -> 0 < k < x -> excess x < 0.
Proof. intros Hk Hx. destruct (excess_mvt 0 k) as [c [Hc E]]; [lra|]. destruct (excess_mvt k x) as [d [Hd F]]; [lra|].
  rewrite excess_0, Hk in E. rewrite Hk in F. pose proof (slope_decreases c d ltac:(lra)). assert (exp (- c) - / 2 = 0) by nra. nra. Qed.
Lemma exp_side x q : 0 < q -> (- ln q < x -> exp (- x) < q) /\ (x < - ln q -> q < exp (- x)).
Proof. intros Hq. split; intros H.
  - rewrite <- (exp_ln q) by auto. apply exp_increasing. lra.
  - rewrite <- (exp_ln q) at 1 by auto. apply exp_increasing. lra. Qed.
Lemma excess_signs : 0 < excess (1593624 / 1000000) /\ excess (1593625 / 1000000) < 0.
Proof.
  assert (H1 : check_lnz 40 20 1000000 203188 15936236 15936237 10000000 = true) by (vm_compute; reflexivity).
  assert (H2 : check_lnz 40 20 10000000 2031875 15936260 15936261 10000000 = true) by (vm_compute; reflexivity).
  apply check_lnz_sound in H1. apply check_lnz_sound in H2. unfold excess. split.
  - destruct (exp_side (1593624 / 1000000) (203188 / 1000000)) as [H _]; [lra|].
    assert (E : - ln (203188 / 1000000) = ln (1000000 / 203188)) by (rewrite <- ln_Rinv by lra; f_equal; field).
    rewrite E in H. lra.
  - destruct (exp_side (1593625 / 1000000) (2031875 / 10000000)) as [_ H]; [lra|].
    assert (E : - ln (2031875 / 10000000) = ln (10000000 / 2031875)) by (rewrite <- ln_Rinv by lra; f_equal; field).
    rewrite E in H. lra. Qed.

(** Both bounds as functions of KL: equal at 0 and at one positive number, Pinsker's smaller between. *)
Theorem bounds_cross_once : exists k, 1593624 / 1000000 < k < 1593625 / 1000000 /\ sqrt (k / 2) = sqrt (1 - exp (- k)) /\
  (forall x, 0 < x < k -> sqrt (x / 2) < sqrt (1 - exp (- x))) /\ (forall x, k < x -> sqrt (1 - exp (- x)) < sqrt (x / 2)).
Proof. destruct excess_signs as [P N].
  destruct (IVT_interv (fun x => - excess x) (1593624 / 1000000) (1593625 / 1000000)) as [k [Hk E]]; try lra.
  - intros a _. apply continuity_pt_opp, derivable_continuous_pt. eexists. apply excess_der.
  - assert (Z : excess k = 0) by lra. assert (K1 : k <> 1593624 / 1000000) by (intros ->; lra). assert (K2 : k <> 1593625 / 1000000) by (intros ->; lra).
    exists k. split; [lra|]. split; [f_equal; unfold excess in Z; lra|]. split; intros x Hx.
    + pose proof (excess_before k x Z Hx). apply sqrt_lt_1_alt. unfold excess in *. lra.
    + pose proof (excess_after k x Z ltac:(lra)) as A. apply sqrt_lt_1_alt. unfold excess in A.
      assert (exp (- x) < exp 0) by (apply exp_increasing; lra). rewrite exp_0 in *. lra. Qed.
