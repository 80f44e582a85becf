(** * Geometric-mean ratios

    Responses of L tokens each, compared by the L-th root of their sequence ratio: its mean under the old policy is below one.

      is_root L p q y  y b > 0 and y b ^ L = p b / q b on the support

    Python: exactgrpo.field.ratios.geometric_mean_ratio
    Python, to come: exactgrpo.update.law *)
From Coq Require Import Reals List Lra Lia.
From ExactGRPO Require Import FinSum KL.
Import ListNotations.
Open Scope R_scope.

Lemma bernoulli y n : 0 < y -> 1 + INR n * (y - 1) <= y ^ n.
Proof. intros Hy. induction n as [|n IH]; [simpl; lra|]. rewrite S_INR. cbn [pow]. pose proof (pos_INR n).
  assert (0 <= INR n * ((y - 1) * (y - 1))) by (apply Rmult_le_pos; [auto|apply Rle_0_sqr]). nra. Qed.
Lemma bernoulli_strict y n : 0 < y -> y <> 1 -> (2 <= n)%nat -> 1 + INR n * (y - 1) < y ^ n.
Proof. intros Hy N Hn. destruct n as [|n]; [lia|]. pose proof (bernoulli y n Hy) as B. rewrite S_INR. cbn [pow].
  assert (1 <= INR n) by (apply (le_INR 1); lia). assert (0 < (y - 1) * (y - 1)) by (apply Rsqr_pos_lt; lra). nra. Qed.
Lemma cancel l x : 0 < l -> l * (x / l) = x.
Proof. intros; field; lra. Qed.
Definition is_root {A : Type} (L : nat) (B : list A) (p q y : A -> R) := forall b, In b B -> 0 < y b /\ y b ^ L = p b / q b.
(** Unless the two policies agree, the mean of the root is strictly below one. *)
Theorem geometric_ratio_mean {A : Type} L (B : list A) (p q y : A -> R) : (2 <= L)%nat -> pmf B p -> pmf B q -> pos_on B q -> is_root L B p q y ->
  Epmf B q y <= 1 /\ (Epmf B q y = 1 <-> forall b, In b B -> p b = q b).
Proof. intros HL [_ Sp] [_ Sq] Hq Hy. assert (LP : 0 < INR L) by (apply lt_0_INR; lia).
  assert (E : Rsum B (fun b => q b * (1 + (p b / q b - 1) / INR L - y b)) = 1 - Epmf B q y).
  { unfold Epmf. rewrite (Rsum_ext B _ (fun b => ((1 - / INR L) * q b + / INR L * p b) - q b * y b)).
    - rewrite Rsum_minus, Rsum_plus, !Rsum_scal. change (Rsum B (fun a => q a)) with (Rsum B q). change (Rsum B (fun a => p a)) with (Rsum B p). rewrite Sp, Sq. field. lra.
    - intros b Hb. specialize (Hq b Hb). field. lra. }
  assert (T : forall b, In b B -> 0 <= q b * (1 + (p b / q b - 1) / INR L - y b)).
  { intros b Hb. destruct (Hy b Hb) as [Y1 Y2]. pose proof (bernoulli (y b) L Y1) as Bn. rewrite Y2 in Bn. apply Rmult_le_pos; [left; auto|].
    assert (y b - 1 <= (p b / q b - 1) / INR L); [|lra]. apply Rmult_le_reg_l with (INR L); auto. rewrite cancel by auto. lra. }
  pose proof (Rsum_nonneg B _ T) as NN. split; [lra|]. split.
  - intros H b Hb. assert (Z : Rsum B (fun b => q b * (1 + (p b / q b - 1) / INR L - y b)) = 0) by lra.
    rewrite Rsum_nonneg_eq0 in Z by auto. specialize (Z b Hb). destruct (Hy b Hb) as [Y1 Y2]. specialize (Hq b Hb).
    destruct (Req_dec (y b) 1) as [Y|N].
    + rewrite Y, pow1 in Y2. apply (f_equal (fun z => z * q b)) in Y2. unfold Rdiv in Y2. rewrite Rmult_assoc, Rinv_l in Y2; lra.
    + exfalso. pose proof (bernoulli_strict (y b) L Y1 N HL) as Bn. rewrite Y2 in Bn.
      assert (y b - 1 < (p b / q b - 1) / INR L). { apply Rmult_lt_reg_l with (INR L); auto. rewrite cancel by auto. lra. }
      apply Rmult_integral in Z. destruct Z; lra.
  - intros H. assert (Z : Rsum B (fun b => q b * (1 + (p b / q b - 1) / INR L - y b)) = 0); [|lra]. apply Rsum_0. intros b Hb.
    specialize (Hq b Hb). destruct (Hy b Hb) as [Y1 Y2]. rewrite (H b Hb) in *. replace (q b / q b) with 1 in * by (field; lra).
    assert (y b = 1); [|rewrite H0; unfold Rdiv; ring].
    destruct (Req_dec (y b) 1) as [Y|N]; auto. exfalso.
    destruct (Rlt_dec (y b) 1) as [Lt|Ge].
    + assert (y b ^ L < 1); [|lra]. rewrite <- (pow1 L). destruct L as [|L']; [lia|]. cbn [pow]. pose proof (pow_incr (y b) 1 L' ltac:(lra)) as I. rewrite pow1 in I.
      pose proof (pow_lt (y b) L' Y1). rewrite pow1. nra.
    + pose proof (bernoulli_strict (y b) L Y1 N HL). nra. Qed.
