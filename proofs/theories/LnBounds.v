(** * Series for the logarithm

    Bounds for ln from the series of artanh.

    Relied on by: LnFix *)
From Coq Require Import Reals QArith Qreals Qreduction List Lra Lia Bool ZArith.
From Coquelicot Require Import Coquelicot.
From ExactGRPO Require Import FinSum KL Cert.
Import ListNotations.
Open Scope R_scope.

Local Opaque Qred.
Fixpoint ath (n : nat) (z : R) : R :=
  match n with O => 0 | S m => ath m z + z ^ (2 * m + 1) / INR (2 * m + 1) end.
Fixpoint geo (n : nat) (z : R) : R := match n with O => 0 | S m => geo m z + z ^ (2 * m) end.
Lemma geo_closed n z : (1 - z * z) * geo n z = 1 - z ^ (2 * n).
Proof. induction n as [|n IH]; [simpl; ring|]. cbn [geo]. rewrite Rmult_plus_distr_l, IH.
  replace (2 * S n)%nat with (2 * n + 2)%nat by lia. rewrite pow_add. simpl (z ^ 2). ring. Qed.
Lemma ath_der n z : is_derive (ath n) z (geo n z).
Proof. induction n as [|n IH]; [apply (is_derive_const (K := R_AbsRing) 0)|]. cbn [ath geo].
  apply (is_derive_plus (K := R_AbsRing) (V := R_NormedModule)); [exact IH|].
  assert (N : INR (2 * n + 1) <> 0) by (apply not_0_INR; lia).
  set (a := (2 * n + 1)%nat) in *.
  assert (D : is_derive (fun z => z ^ a / INR a) z (INR a * 1 * z ^ pred a / INR a)).
  { auto_derive; [exact I|]. field. exact N. }
  replace (z ^ (2 * n)) with (INR a * 1 * z ^ pred a / INR a); [exact D|].
  replace (pred a) with (2 * n)%nat by (unfold a; lia). field. exact N. Qed.
Lemma ath_0 n : ath n 0 = 0.
Proof. induction n as [|n IH]; [auto|]. cbn [ath]. rewrite IH. rewrite pow_i by lia. unfold Rdiv. ring. Qed.
Lemma lnz_der z : -1 < z < 1 -> is_derive (fun z => ln ((1 + z) / (1 - z))) z (2 / (1 - z * z)).
Proof. intros H. assert (0 < 1 - z * z) by nra. auto_derive.
  - split; [lra|]. split; [|exact I]. apply Rdiv_lt_0_compat; lra.
  - field. repeat split; nra. Qed.

Lemma incr_from0 (f f' : R -> R) z : 0 <= z -> (forall u, 0 <= u <= z -> is_derive f u (f' u)) ->
  (forall u, 0 <= u <= z -> 0 <= f' u) -> f 0 <= f z.
Proof. intros Hz D P. destruct (Req_dec z 0) as [->|N]; [lra|].
  destruct (MVT_cor2 f f' 0 z ltac:(lra)) as [c [E Hc]].
  - intros c Hc. apply is_derive_Reals, D, Hc.
  - pose proof (P c ltac:(lra)). nra. Qed.

Theorem ln_lower n z : 0 <= z < 1 -> 2 * ath n z <= ln ((1 + z) / (1 - z)).
Proof. intros Hz.
  pose proof (incr_from0 (fun z => ln ((1 + z) / (1 - z)) - 2 * ath n z)
    (fun z => 2 / (1 - z * z) - 2 * geo n z) z ltac:(lra)) as H.
  cbv beta in H. rewrite ath_0 in H. replace ((1 + 0) / (1 - 0)) with 1 in H by field. rewrite ln_1 in H.
  apply Rplus_le_reg_r with (- (2 * ath n z)). replace (2 * ath n z + - (2 * ath n z)) with (0 - 2 * 0) by ring.
  apply H.
  - intros u Hu. apply (is_derive_minus (K := R_AbsRing) (V := R_NormedModule)); [apply lnz_der; lra|].
    apply (is_derive_scal (ath n) u 2 (geo n u)), ath_der.
  - intros u Hu. assert (P : 0 < 1 - u * u) by nra. pose proof (geo_closed n u).
    replace (2 / (1 - u * u) - 2 * geo n u) with (2 * u ^ (2 * n) / (1 - u * u)).
    + apply Rmult_le_pos; [|left; apply Rinv_0_lt_compat; auto]. assert (0 <= u ^ (2 * n)) by (apply pow_le; lra). lra.
    + replace (u ^ (2 * n)) with (1 - (1 - u * u) * geo n u) by lra. field. lra. Qed.

Theorem ln_upper n z : 0 <= z < 1 ->
  ln ((1 + z) / (1 - z)) <= 2 * (ath n z + z ^ (2 * n + 1) / INR (2 * n + 1) / (1 - z * z)).
Proof. intros Hz. set (c := / (1 - z * z)). assert (Pz : 0 < 1 - z * z) by nra.
  assert (Hc : 0 < c) by (apply Rinv_0_lt_compat; auto).
  assert (N : INR (2 * n + 1) <> 0) by (apply not_0_INR; lia).
  pose proof (incr_from0 (fun u => 2 * (ath n u + c * (u ^ (2 * n + 1) / INR (2 * n + 1))) - ln ((1 + u) / (1 - u)))
    (fun u => 2 * (geo n u + c * u ^ (2 * n)) - 2 / (1 - u * u)) z ltac:(lra)) as H.
  cbv beta in H. rewrite ath_0 in H. replace ((1 + 0) / (1 - 0)) with 1 in H by field. rewrite ln_1 in H.
  rewrite pow_i in H by lia.
  replace (2 * (0 + c * (0 / INR (2 * n + 1))) - 0) with 0 in H by (field; auto).
  replace (z ^ (2 * n + 1) / INR (2 * n + 1) / (1 - z * z)) with (c * (z ^ (2 * n + 1) / INR (2 * n + 1))) by (unfold c, Rdiv; ring).
  assert (0 <= 2 * (ath n z + c * (z ^ (2 * n + 1) / INR (2 * n + 1))) - ln ((1 + z) / (1 - z))); [|lra].
  apply H.
  - intros u Hu. apply (is_derive_minus (K := R_AbsRing) (V := R_NormedModule)); [|apply lnz_der; lra].
    apply (is_derive_scal (fun u => ath n u + c * (u ^ (2 * n + 1) / INR (2 * n + 1))) u 2).
    apply (is_derive_plus (K := R_AbsRing) (V := R_NormedModule)); [apply ath_der|].
    apply (is_derive_scal (fun u => u ^ (2 * n + 1) / INR (2 * n + 1)) u c).
    set (a := (2 * n + 1)%nat) in *.
    assert (D : is_derive (fun z => z ^ a / INR a) u (INR a * 1 * u ^ pred a / INR a)) by (auto_derive; [exact I|field; exact N]).
    replace (u ^ (2 * n)) with (INR a * 1 * u ^ pred a / INR a); [exact D|].
    replace (pred a) with (2 * n)%nat by (unfold a; lia). field. exact N.
  - intros u Hu. assert (P : 0 < 1 - u * u) by nra. pose proof (geo_closed n u).
    replace (2 * (geo n u + c * u ^ (2 * n)) - 2 / (1 - u * u)) with (2 * u ^ (2 * n) * (c - / (1 - u * u))).
    + apply Rmult_le_pos; [assert (0 <= u ^ (2 * n)) by (apply pow_le; lra); lra|].
      assert (/ (1 - u * u) <= c); [|lra]. unfold c. apply Rinv_le_contravar; [auto|nra].
    + replace (u ^ (2 * n)) with (1 - (1 - u * u) * geo n u) by lra. field. lra. Qed.

