(** * Softmax and rational families

    Both are policy families; the main theorem for each.

      pism, Dpism  softmax masses and their gradients
      everywhere   the domain R^d

    Python: exactgrpo.policies.softmax.Softmax, exactgrpo.policies.rational.Rational *)
From Coq Require Import Reals QArith Qreals List Lra Lia Arith Bool.
From Coquelicot Require Import Coquelicot.
From ExactGRPO Require Import FinSum Advantages Clip KL Kink Objective Rd Procedure Grpo Softmax Poly RatFam OracleInst Family.
Import ListNotations.
Open Scope R_scope.

Section SoftmaxInst.
Context {n : nat} {Q Y : Type}.
Variables (prompts : list Q) (B : Q -> list Y).
Variables (sc : Q -> Y -> Rvec n -> R) (gsc : Q -> Y -> Rvec n -> Rvec n).
Variable U : Rvec n -> Prop.
Hypothesis U_open : open U.
Hypothesis B_ne : forall q, In q prompts -> B q <> [].
Hypothesis sc_diff : forall q y th, In q prompts -> In y (B q) -> gradient_at (sc q y) th (gsc q y th).
Definition pism (th : Rvec n) (q : Q) (y : Y) : R := softmax (B q) (sc q) th y.
Definition Dpism (th : Rvec n) (q : Q) (y : Y) : Rvec n :=
  scal (pism th q y : R_AbsRing) (plus (gsc q y th) (scal (-1 : R_AbsRing) (Vsum (B q) (fun c => scal (pism th q c : R_AbsRing) (gsc q c th))))).
Lemma pism_pos th q y : In q prompts -> 0 < pism th q y.
Proof. intros Hq. apply softmax_pos. apply B_ne; auto. Qed.
Lemma pism_sum th q : In q prompts -> Rsum (B q) (pism th q) = 1.
Proof. intros Hq. apply softmax_sum. apply B_ne; auto. Qed.
Lemma pism_diff th q y : In q prompts -> In y (B q) -> gradient_at (fun t => pism t q y) th (Dpism th q y).
Proof. intros Hq Hy. unfold gradient_at.
  pose proof (softmax_diff (B q) (sc q) (fun b x h => dot n (gsc q b x) h) (B_ne q Hq) (fun b x Hb => sc_diff q b x Hq Hb) y th Hy) as H.
  eapply has_diff_ext; [| |exact H]; [reflexivity|]. intros h. unfold Dpism. rewrite dot_scal, dot_plus, dot_scal, dot_Vsum.
  fold (pism th q y). f_equal. unfold Rminus. f_equal.
  rewrite (Rsum_ext (B q) (fun a => dot n (scal (pism th q a : R_AbsRing) (gsc q a th)) h) (fun c => softmax (B q) (sc q) th c * dot n (gsc q c th) h)).
  - ring.
  - intros a _. rewrite dot_scal. reflexivity. Qed.
(** A softmax over differentiable scores is a policy family on any open set: all of R^d, a box, a polytope. *)
Theorem softmax_family : policy_family prompts B U pism Dpism.
Proof. split; auto.
  - intros; apply pism_pos; auto.
  - intros; apply pism_sum; auto.
  - intros; apply pism_diff; auto. Qed.
End SoftmaxInst.

Section SoftmaxRun.
Context {n : nat} {Q Y : Type}.
Variables (prompts : list Q) (B : Q -> list Y).
Variables (sc : Q -> Y -> Rvec n -> R) (gsc : Q -> Y -> Rvec n -> Rvec n).
Hypothesis B_ne : forall q, In q prompts -> B q <> [].
Hypothesis sc_diff : forall q y th, In q prompts -> In y (B q) -> gradient_at (sc q y) th (gsc q y th).
Variables (pref rew : Q -> Y -> R) (eps beta : R) (G T K : nat) (eta : nat -> nat -> R).
Hypothesis prompts_ne : prompts <> [].
Hypothesis eps_range : 0 < eps < 1.
Hypothesis pref_pos : forall q y, In q prompts -> In y (B q) -> 0 < pref q y.
Hypothesis G_ge2 : (2 <= G)%nat.
Hypothesis T_pos : (1 <= T)%nat.
Hypothesis K_pos : (1 <= K)%nat.
Variable draw : nat -> Rvec n -> Q -> nat -> Y.
Hypothesis draw_supp : forall t th q i, In q prompts -> In (draw t th q i) (B q).
Variable eqQ : forall a b : Q, {a = b} + {a <> b}.
Definition everywhere (th : Rvec n) : Prop := True.
Definition accept_all (th : Rvec n) : bool := true.
Definition sm_run := family_run prompts B (pism B sc) (Dpism B sc gsc) pref rew eps beta G T K eta accept_all draw eqQ.
(** Softmax on the whole space: the domain oracle never rejects, and one inner step always completes. *)
Theorem softmax_grpo th0 :
  fst (fst (sm_run th0)) <> InvalidUpdate /\ (K = 1%nat -> fst (fst (sm_run th0)) = Complete) /\
  counts_ok _ _ _ prompts G K T (fst (fst (sm_run th0))) (snd (sm_run th0)).
Proof.
  pose proof (family_grpo prompts B everywhere (pism B sc) (Dpism B sc gsc) pref rew eps beta G T K eta
    (softmax_family prompts B sc gsc everywhere open_true B_ne sc_diff) prompts_ne eps_range pref_pos G_ge2 T_pos K_pos
    accept_all (fun th => conj (fun _ => I) (fun _ => eq_refl)) draw (fun t th q i _ Hq => draw_supp t th q i Hq) eqQ th0 I) as H.
  cbv zeta in H. fold sm_run in H. destruct H as [H1 [H2 [H3 [H4 [H5 H6]]]]]. specialize (H6 (fun _ => I)).
  split; [exact H6|]. split; [|exact H4]. intros K1. specialize (H5 K1). destruct (fst (fst (sm_run th0))); congruence. Qed.
End SoftmaxRun.

Section RatInst.
Variable n : nat.
Variables (ws : list (list pexp)) (cons : list pexp).
Hypothesis responses_ne : forall q, In q (prompts_rat ws) -> Brat ws q <> [].
(** Rational masses are a policy family on the open set where every weight and every constraint is positive. *)
Theorem rational_family : policy_family (prompts_rat ws) (Brat ws) (Urat n ws cons) (pirat n ws) (Dpirat n ws).
Proof. split.
  - apply Urat_open.
  - intros th q y Hth Hq Hy. apply (pirat_pos n ws cons); auto.
  - intros th q Hth Hq. apply (pirat_sum n ws cons); auto.
  - intros th q y Hth Hq Hy. apply (pirat_diff n ws cons); auto. Qed.
End RatInst.

Section RatOracle.
Variable n : nat.
Variables (ws : list (list pexp)) (cons : list pexp) (pref rew : nat -> nat -> R) (eps beta : R).
Hypothesis ws_ne : ws <> [].
Hypothesis eps_range : 0 < eps < 1.
Hypothesis pref_pos : forall q y, In q (prompts_rat ws) -> In y (Brat ws q) -> 0 < pref q y.
Definition rat_oracle := oracle_inst (prompts_rat ws) (Brat ws) (pirat n ws) pref rew eps beta (Dpirat n ws).
Lemma prompts_rat_ne : prompts_rat ws <> [].
Proof. unfold prompts_rat. destruct ws; [congruence|discriminate]. Qed.
Theorem rat_oracle_exact d th g : data_ok (prompts_rat ws) (Brat ws) (Urat n ws cons) d -> Urat n ws cons th ->
  (rat_oracle d th = Some g <-> gradient_at (Fobj (prompts_rat ws) (Brat ws) (pirat n ws) pref rew eps beta d) th g).
Proof. intros Hd Hth. apply (oracle_inst_exact (prompts_rat ws) (Brat ws) (Urat n ws cons) (pirat n ws) pref rew eps beta (Dpirat n ws) (proj1 eps_range) prompts_rat_ne); auto.
  - intros t q y Ht Hq Hy. apply (pirat_pos n ws cons); auto.
  - intros t q y Ht Hq Hy. apply (pirat_diff n ws cons); auto. Qed.
Variables (G T K : nat) (eta : nat -> nat -> R).
Hypothesis G_ge2 : (2 <= G)%nat.
Hypothesis T_pos : (1 <= T)%nat.
Hypothesis K_pos : (1 <= K)%nat.
Hypothesis responses_ne : forall q, In q (prompts_rat ws) -> Brat ws q <> [].
Variable draw : nat -> Rvec n -> nat -> nat -> nat.
Hypothesis draw_supp : forall t th q i, Urat n ws cons th -> In q (prompts_rat ws) -> In (draw t th q i) (Brat ws q).
Definition rat_run := grpo (prompts_rat ws) G T K eta (memUrat n ws cons) draw rat_oracle Nat.eq_dec.
Theorem rat_grpo th0 : Urat n ws cons th0 -> Urat n ws cons (snd (fst (rat_run th0))) /\
  counts_ok _ _ _ (prompts_rat ws) G K T (fst (fst (rat_run th0))) (snd (rat_run th0)) /\ (K = 1%nat -> fst (fst (rat_run th0)) <> UndefinedGradient).
Proof. intros H0.
  pose proof (family_grpo (prompts_rat ws) (Brat ws) (Urat n ws cons) (pirat n ws) (Dpirat n ws) pref rew eps beta G T K eta
    (rational_family n ws cons responses_ne) prompts_rat_ne eps_range pref_pos G_ge2 T_pos K_pos
    (memUrat n ws cons) (memUrat_exact n ws cons) draw draw_supp Nat.eq_dec th0 H0) as H. cbv zeta in H.
  change (family_run (prompts_rat ws) (Brat ws) (pirat n ws) (Dpirat n ws) pref rew eps beta G T K eta (memUrat n ws cons) draw Nat.eq_dec) with rat_run in H. tauto. Qed.
End RatOracle.
