(** * Finite laws, KL and change of measure

    Laws on an ordered support; KL(policy from reference), Gibbs; the ratio as change-of-measure factor.

      pmf B p     p is non-negative on B and sums to one
      pos_on B p  p is positive on B
      Epmf B p f  sum of p b * f b
      KL B p q    sum of p b * ln (p b / q b)

    Python: exactgrpo.update.objective.value, exactgrpo.update.objective.ratios
    Python: exactgrpo.update.divergence.kl_policy_from_reference
    Python: exactgrpo.rac.clip.injected_gradient *)
From Coq Require Import Reals List Lra Lia.
From Coquelicot Require Import Coquelicot.
From ExactGRPO Require Import FinSum.
Import ListNotations.
Open Scope R_scope.

Section Scalar.
Lemma ln_le_minus1 x : 0 < x -> ln x <= x - 1.
Proof. intros H. destruct (Req_dec (ln x) 0) as [E|E].
  - rewrite E. assert (x = 1). { rewrite <- (exp_ln x), E, exp_0; auto. } lra.
  - pose proof (exp_ineq1 (ln x) E). rewrite exp_ln in H0; lra. Qed.
Lemma ln_lt_minus1 x : 0 < x -> x <> 1 -> ln x < x - 1.
Proof. intros H N. assert (E : ln x <> 0). { intros E. apply N. rewrite <- (exp_ln x), E, exp_0; auto. }
  pose proof (exp_ineq1 (ln x) E). rewrite exp_ln in H0; lra. Qed.
Lemma ln_ge_1minus_inv x : 0 < x -> 1 - / x <= ln x.
Proof. intros H. pose proof (ln_le_minus1 (/ x) (Rinv_0_lt_compat _ H)). rewrite ln_Rinv in H0; lra. Qed.

(** pointwise bound  p ln (p/q) >= p - q, with the convention 0 ln 0 = 0 *)
Lemma kl_term (p q : R) : 0 <= p -> 0 < q -> p - q <= p * ln (p / q).
Proof. intros Hp Hq. destruct (Req_dec p 0) as [->|N]; [lra|].
  assert (Hp' : 0 < p) by lra.
  assert (Hr : 0 < p / q) by (apply Rdiv_lt_0_compat; auto).
  pose proof (ln_ge_1minus_inv _ Hr). 
  assert (p * (1 - / (p / q)) = p - q) by (field; lra).
  assert (p * (1 - / (p / q)) <= p * ln (p / q)) by (apply Rmult_le_compat_l; lra). lra. Qed.
Lemma kl_term_eq (p q : R) : 0 <= p -> 0 < q -> p * ln (p / q) = p - q -> p = q.
Proof. intros Hp Hq Heq. destruct (Req_dec p 0) as [->|N]; [lra|].
  assert (Hp' : 0 < p) by lra.
  destruct (Req_dec p q) as [|Npq]; auto. exfalso.
  assert (Hr : 0 < q / p) by (apply Rdiv_lt_0_compat; auto).
  assert (N1 : q / p <> 1).
  { intros Z. apply Npq. apply (f_equal (fun z => z * p)) in Z. unfold Rdiv in Z.
    rewrite Rmult_assoc, Rinv_l in Z; lra. }
  pose proof (ln_lt_minus1 _ Hr N1) as L.
  assert (Ei : ln (q / p) = - ln (p / q)).
  { rewrite <- ln_Rinv by (apply Rdiv_lt_0_compat; auto). f_equal. field; lra. }
  rewrite Ei in L. 
  assert (p * - ln (p / q) < p * (q / p - 1)) by (apply Rmult_lt_compat_l; auto).
  assert (p * (q / p - 1) = q - p) by (field; lra). lra. Qed.

End Scalar.

Section Laws.
Context {A : Type}.
Implicit Types (B : list A) (p q : A -> R).

Definition pmf B p := (forall b, In b B -> 0 <= p b) /\ Rsum B p = 1.
Definition pos_on B p := forall b, In b B -> 0 < p b.
Definition Epmf B p (f : A -> R) := Rsum B (fun b => p b * f b).
Definition KL B p q := Rsum B (fun b => p b * ln (p b / q b)).

(** Change of measure: for positive laws the sequence ratio is exact. *)
Theorem change_of_measure B p q f : pos_on B q ->
  Epmf B q (fun b => p b / q b * f b) = Epmf B p f.
Proof. intros H. apply Rsum_ext. intros b Hb. specialize (H b Hb). field; lra. Qed.
Theorem ratio_mean_one B p q : pos_on B q -> pmf B p -> Epmf B q (fun b => p b / q b) = 1.
Proof. intros H [_ H1]. rewrite <- H1. apply Rsum_ext. intros b Hb. specialize (H b Hb). field; lra. Qed.

(** Gibbs: nonnegativity, and equality exactly for equal laws. *)
Theorem KL_nonneg B p q : pmf B p -> pmf B q -> pos_on B q -> 0 <= KL B p q.
Proof. intros [Hp Sp] [_ Sq] Hq.
  replace 0 with (Rsum B (fun b => p b - q b)) by (rewrite Rsum_minus; lra).
  apply Rsum_le. intros b Hb. apply kl_term; auto. Qed.
Theorem KL_eq0_iff B p q : pmf B p -> pmf B q -> pos_on B q ->
  (KL B p q = 0 <-> forall b, In b B -> p b = q b).
Proof. intros [Hp Sp] [_ Sq] Hq. split.
  - intros Z.
    assert (Z' : Rsum B (fun b => p b * ln (p b / q b) - (p b - q b)) = 0).
    { rewrite !Rsum_minus. unfold KL in Z. lra. }
    rewrite Rsum_nonneg_eq0 in Z'.
    + intros b Hb. apply kl_term_eq; auto. specialize (Z' b Hb). lra.
    + intros b Hb. pose proof (kl_term (p b) (q b) (Hp b Hb) (Hq b Hb)). lra.
  - intros H. apply Rsum_0. intros b Hb. rewrite (H b Hb). specialize (Hq b Hb).
    replace (q b / q b) with 1 by (field; lra). rewrite ln_1; ring. Qed.

End Laws.
