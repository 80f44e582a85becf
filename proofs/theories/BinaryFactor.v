(** * Closed form of c_G(p)

    c_G(p) = E sqrt(k (G - k)) / (G p (1 - p)), k binomial; it is positive.

      binom n k  Pascal's triangle

    Python: exactgrpo.field.expected_gradient.binary_factor
    Python, to come: exactgrpo.update.law *)
From Coq Require Import Reals List Lra Lia Arith Binomial.
From ExactGRPO Require Import FinSum Law.
Import ListNotations.
Open Scope R_scope.

Section Binomial.
Variable p : R.
Lemma Ebin_ext n : forall g h, (forall k, (k <= n)%nat -> g k = h k) -> Ebin p n g = Ebin p n h.
Proof. induction n as [|n IH]; intros g h H; simpl; [apply H; lia|].
  rewrite (IH (fun k => g (S k)) (fun k => h (S k))), (IH g h); auto; intros; apply H; lia. Qed.
Lemma Ebin_plus n : forall g h, Ebin p n (fun k => g k + h k) = Ebin p n g + Ebin p n h.
Proof. induction n as [|n IH]; intros g h; simpl; [auto|]. rewrite (IH g h), (IH (fun k => g (S k)) (fun k => h (S k))). ring. Qed.
Lemma Ebin_scal n c : forall g, Ebin p n (fun k => c * g k) = c * Ebin p n g.
Proof. induction n as [|n IH]; intros g; simpl; [auto|]. rewrite (IH g), (IH (fun k => g (S k))). ring. Qed.
(** size biasing: the two ways to pull one draw out of a binomial count *)
Lemma Ebin_success n : forall h, Ebin p (S n) (fun k => INR k * h k) = INR (S n) * p * Ebin p n (fun k => h (S k)).
Proof. induction n as [|n IH]; intros h; [simpl; ring|].
  change (Ebin p (S (S n)) (fun k => INR k * h k)) with (p * Ebin p (S n) (fun k => INR (S k) * h (S k)) + (1 - p) * Ebin p (S n) (fun k => INR k * h k)).
  rewrite (Ebin_ext (S n) _ (fun k => INR k * h (S k) + h (S k))) by (intros; rewrite S_INR; ring).
  rewrite Ebin_plus, (IH h), (IH (fun k => h (S k))).
  change (Ebin p (S n) (fun k => h (S k))) with (p * Ebin p n (fun k => h (S (S k))) + (1 - p) * Ebin p n (fun k => h (S k))).
  rewrite (S_INR (S n)). ring. Qed.
Lemma Ebin_failure n : forall h, Ebin p (S n) (fun k => (INR (S n) - INR k) * h k) = INR (S n) * (1 - p) * Ebin p n h.
Proof. induction n as [|n IH]; intros h; [simpl; ring|].
  change (Ebin p (S (S n)) (fun k => (INR (S (S n)) - INR k) * h k)) with
    (p * Ebin p (S n) (fun k => (INR (S (S n)) - INR (S k)) * h (S k)) + (1 - p) * Ebin p (S n) (fun k => (INR (S (S n)) - INR k) * h k)).
  rewrite (Ebin_ext (S n) (fun k => (INR (S (S n)) - INR (S k)) * h (S k)) (fun k => (INR (S n) - INR k) * h (S k))) by (intros; rewrite !S_INR; ring).
  rewrite (Ebin_ext (S n) (fun k => (INR (S (S n)) - INR k) * h k) (fun k => (INR (S n) - INR k) * h k + h k)) by (intros; rewrite !S_INR; ring).
  rewrite Ebin_plus, (IH h), (IH (fun k => h (S k))).
  change (Ebin p (S n) h) with (p * Ebin p n (fun k => h (S k)) + (1 - p) * Ebin p n h).
  rewrite (S_INR (S n)). ring. Qed.
Lemma Ebin_nonneg n : 0 < p < 1 -> forall g, (forall k, 0 <= g k) -> 0 <= Ebin p n g.
Proof. intros Hp. induction n as [|n IH]; intros g Hg; simpl; auto.
  pose proof (IH g Hg). pose proof (IH (fun k => g (S k)) (fun k => Hg (S k))). nra. Qed.
Lemma Ebin_pos n : 0 < p < 1 -> forall g, (forall k, 0 <= g k) -> 0 < g 0%nat -> 0 < Ebin p n g.
Proof. intros Hp. induction n as [|n IH]; intros g Hg H0; simpl; auto.
  pose proof (IH g Hg H0). pose proof (Ebin_nonneg n Hp (fun k => g (S k)) (fun k => Hg (S k))). nra. Qed.

(** Pascal's triangle; [C n k] is Coq's binomial coefficient n! / (k! (n-k)!) *)
Fixpoint binom (n k : nat) : nat :=
  match n, k with O, O => 1 | O, S _ => 0 | S _, O => 1 | S n', S k' => binom n' k' + binom n' (S k') end.
Lemma binom_out n : forall k, (n < k)%nat -> binom n k = 0%nat.
Proof. induction n as [|n IH]; intros [|k] H; simpl; try lia. rewrite !IH by lia. auto. Qed.
Lemma binom_full n : binom n n = 1%nat.
Proof. induction n as [|n IH]; simpl; auto. rewrite IH, binom_out by lia. auto. Qed.
Lemma binom_zero n : binom n 0 = 1%nat. Proof. destruct n; auto. Qed.
Lemma C_ends n : C n 0 = 1 /\ C n n = 1.
Proof. unfold C. rewrite Nat.sub_0_r, Nat.sub_diag. pose proof (INR_fact_neq_0 n). simpl (fact 0). simpl (INR 1). split; field; auto. Qed.
Theorem binom_C n : forall k, (k <= n)%nat -> INR (binom n k) = C n k.
Proof. induction n as [|n IH]; intros k Hk.
  - replace k with 0%nat by lia. rewrite (proj1 (C_ends 0)). reflexivity.
  - destruct k as [|k]; [rewrite (proj1 (C_ends (S n))); reflexivity|].
    destruct (Nat.eq_dec k n) as [->|N].
    + rewrite binom_full, (proj2 (C_ends (S n))). reflexivity.
    + simpl binom. rewrite plus_INR, !IH by lia. apply pascal. lia. Qed.
(** the expectation by Pascal recursion is the binomial sum *)
Theorem Ebin_sum n : forall g, Ebin p n g = Rsum (seq 0 (S n)) (fun k => INR (binom n k) * p ^ k * (1 - p) ^ (n - k) * g k).
Proof. induction n as [|n IH]; intros g; [simpl seq; rewrite Rsum_cons, Rsum_nil; simpl; ring|].
  change (Ebin p (S n) g) with (p * Ebin p n (fun k => g (S k)) + (1 - p) * Ebin p n g). rewrite !IH.
  assert (E2 : (1 - p) * Rsum (seq 0 (S n)) (fun k => INR (binom n k) * p ^ k * (1 - p) ^ (n - k) * g k)
     = (1 - p) ^ S n * g 0%nat + Rsum (seq 0 (S n)) (fun k => INR (binom n (S k)) * p ^ S k * (1 - p) ^ (n - k) * g (S k))).
  { assert (A : Rsum (seq 0 (S n)) (fun k => INR (binom n (S k)) * p ^ S k * (1 - p) ^ (n - k) * g (S k))
       = Rsum (seq 0 n) (fun k => INR (binom n (S k)) * p ^ S k * (1 - p) ^ (n - k) * g (S k))).
    { rewrite (seq_S n 0), Rsum_app, Rsum_cons, Rsum_nil, (binom_out n (S (0 + n))) by lia. simpl (INR 0). ring. }
    rewrite A. change (seq 0 (S n)) with (0%nat :: seq 1 n). rewrite Rsum_cons, <- seq_shift, Rsum_map, Rmult_plus_distr_l, <- Rsum_scal.
    rewrite (Rsum_ext (seq 0 n) _ (fun k => INR (binom n (S k)) * p ^ S k * (1 - p) ^ (n - k) * g (S k))).
    - rewrite binom_zero, Nat.sub_0_r. simpl. ring.
    - intros k Hk. apply in_seq in Hk. replace (n - k)%nat with (S (n - S k)) by lia. simpl pow. ring. }
  rewrite E2, <- Rsum_scal. change (seq 0 (S (S n))) with (0%nat :: seq 1 (S n)). rewrite Rsum_cons, <- seq_shift, Rsum_map.
  rewrite <- Rplus_assoc, (Rplus_comm _ ((1 - p) ^ S n * g 0%nat)), Rplus_assoc, <- Rsum_plus. f_equal.
  - rewrite Nat.sub_0_r. simpl binom. simpl INR. simpl pow. ring.
  - apply Rsum_ext. intros k _. simpl binom. rewrite plus_INR. simpl Nat.sub. simpl pow. ring. Qed.
End Binomial.

Lemma success_root G k : (k <= G)%nat -> INR k * aS G k = sqrt (INR k * INR (G - k)).
Proof. intros H. unfold aS. destruct (Nat.eqb_spec k G) as [->|N].
  - rewrite Nat.sub_diag. simpl (INR 0). rewrite !Rmult_0_r, sqrt_0. auto.
  - destruct (Nat.eq_dec k 0) as [->|K]; [simpl (INR 0); rewrite !Rmult_0_l, sqrt_0; auto|].
    assert (0 < INR k) by (apply lt_0_INR; lia). assert (0 < INR (G - k)) by (apply lt_0_INR; lia).
    rewrite <- (sqrt_square (INR k)) at 1 by lra. rewrite <- sqrt_mult_alt by nra. f_equal. field. lra. Qed.
Lemma failure_root G k : (k <= G)%nat -> (INR G - INR k) * aF G k = - sqrt (INR k * INR (G - k)).
Proof. intros H. rewrite <- minus_INR by auto. unfold aF. destruct (Nat.eqb_spec k 0) as [->|N].
  - simpl (INR 0). rewrite Rmult_0_l, Rmult_0_r, sqrt_0. ring.
  - destruct (Nat.eq_dec k G) as [->|K]; [rewrite Nat.sub_diag; simpl (INR 0); rewrite Rmult_0_l, Rmult_0_r, sqrt_0; ring|].
    assert (0 < INR k) by (apply lt_0_INR; lia). assert (0 < INR (G - k)) by (apply lt_0_INR; lia).
    rewrite <- Ropp_mult_distr_r. f_equal. rewrite <- (sqrt_square (INR (G - k))) at 1 by lra. rewrite <- sqrt_mult_alt by nra. f_equal. field. lra. Qed.

(** Closed form: c_G(p) = E sqrt(k (G - k)) / (G p (1 - p)), k binomial(G, p). *)
Theorem cG_closed p G : (1 <= G)%nat -> 0 < p < 1 ->
  cG p G = Ebin p G (fun k => sqrt (INR k * INR (G - k))) / (INR G * p * (1 - p)).
Proof. intros HG Hp. destruct G as [|n]; [lia|]. pose proof (lt_0_INR (S n) ltac:(lia)) as L.
  pose proof (Ebin_success p n (aS (S n))) as H1. pose proof (Ebin_failure p n (aF (S n))) as H2.
  rewrite (Ebin_ext p (S n) _ (fun k => sqrt (INR k * INR (S n - k)))) in H1 by (intros; apply success_root; auto).
  rewrite (Ebin_ext p (S n) _ (fun k => -1 * sqrt (INR k * INR (S n - k)))) in H2 by (intros k Hk; rewrite failure_root by auto; ring).
  rewrite Ebin_scal in H2. set (r := Ebin p (S n) (fun k => sqrt (INR k * INR (S n - k)))) in *.
  unfold cG. simpl pred. set (a := Ebin p n (fun k => aS (S n) (S k))) in *.
  change (Ebin p n (fun k => aF (S n) k)) with (Ebin p n (aF (S n))). set (b := Ebin p n (aF (S n))) in *.
  assert (Ha : a = r / (INR (S n) * p)) by (rewrite H1; field; lra).
  assert (Hb : b = - r / (INR (S n) * (1 - p))).
  { apply Rmult_eq_reg_l with (INR (S n) * (1 - p)); [|apply Rmult_integral_contrapositive; lra]. rewrite <- H2. field. lra. }
  rewrite Ha, Hb. field. lra. Qed.
(** the same, as the explicit binomial sum *)
Corollary cG_sum p G : (1 <= G)%nat -> 0 < p < 1 ->
  cG p G = Rsum (seq 0 (S G)) (fun k => C G k * p ^ k * (1 - p) ^ (G - k) * sqrt (INR k * INR (G - k))) / (INR G * p * (1 - p)).
Proof. intros HG Hp. rewrite cG_closed, Ebin_sum by auto. f_equal. apply Rsum_ext. intros k Hk. apply in_seq in Hk. rewrite binom_C by lia. auto. Qed.
(** Standardised binary groups keep the direction of the true gradient. *)
Theorem cG_pos p G : (2 <= G)%nat -> 0 < p < 1 -> 0 < cG p G.
Proof. intros HG Hp. rewrite cG_closed by (auto; lia). pose proof (lt_0_INR G ltac:(lia)).
  apply Rdiv_lt_0_compat; [|apply Rmult_lt_0_compat; [apply Rmult_lt_0_compat|]; lra].
  destruct G as [|n]; [lia|].
  set (g := fun k => sqrt (INR k * INR (S n - k))).
  assert (Hg : forall k, 0 <= g k) by (intros; apply sqrt_pos).
  change (0 < p * Ebin p n (fun k => g (S k)) + (1 - p) * Ebin p n g).
  assert (0 < Ebin p n (fun k => g (S k))).
  { apply Ebin_pos; auto. unfold g. apply sqrt_lt_R0, Rmult_lt_0_compat; apply lt_0_INR; lia. }
  pose proof (Ebin_nonneg p n Hp g Hg). nra. Qed.
