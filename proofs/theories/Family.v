(** * Policy families

    What the source asks of a policy family, and the main theorem for all of them with the constructed oracle.

      policy_family  open domain; positive, normalised, differentiable masses
      family_run     grpo with the constructed oracle

    Python: exactgrpo.policies.family.PolicyFamily, exactgrpo.update.run.FamilyOracle *)
From Coq Require Import Reals List Lra Lia Arith Bool.
From Coquelicot Require Import Coquelicot.
From ExactGRPO Require Import FinSum Advantages Clip KL Kink Objective Rd Procedure Grpo OracleInst.
Import ListNotations.
Open Scope R_scope.

Section Family.
Context {n : nat} {Q Y : Type}.
Variables (prompts : list Q) (B : Q -> list Y) (U : Rvec n -> Prop).
Variables (pi : Rvec n -> Q -> Y -> R) (Dpi : Rvec n -> Q -> Y -> Rvec n).

(** What the source asks of a policy family: an open domain on which every
    supported mass is positive, sums to one and is totally differentiable. *)
Record policy_family : Prop := PolicyFamily {
  family_open : open U;
  family_pos : forall th q y, U th -> In q prompts -> In y (B q) -> 0 < pi th q y;
  family_sum : forall th q, U th -> In q prompts -> Rsum (B q) (pi th q) = 1;
  family_diff : forall th q y, U th -> In q prompts -> In y (B q) ->
    gradient_at (fun t => pi t q y) th (Dpi th q y) }.

Variables (pref rew : Q -> Y -> R) (eps beta : R) (G T K : nat) (eta : nat -> nat -> R).
Hypothesis family : policy_family.
Hypothesis prompts_ne : prompts <> [].
Hypothesis eps_range : 0 < eps < 1.
Hypothesis pref_pos : forall q y, In q prompts -> In y (B q) -> 0 < pref q y.

Definition family_oracle := oracle_inst prompts B pi pref rew eps beta Dpi.
(** The constructed oracle answers exactly as the source asks. *)
Theorem family_oracle_exact d th g : data_ok prompts B U d -> U th ->
  (family_oracle d th = Some g <-> gradient_at (Fobj prompts B pi pref rew eps beta d) th g).
Proof. destruct family as [H1 H2 H3 H4]. intros Hd Hth.
  apply (oracle_inst_exact prompts B U pi pref rew eps beta Dpi (proj1 eps_range) prompts_ne); auto. Qed.

Hypothesis G_ge2 : (2 <= G)%nat.
Hypothesis T_pos : (1 <= T)%nat.
Hypothesis K_pos : (1 <= K)%nat.
Variable memU : Rvec n -> bool.
Hypothesis memU_exact : forall th, memU th = true <-> U th.
Variable draw : nat -> Rvec n -> Q -> nat -> Y.
Hypothesis draw_supp : forall t th q i, U th -> In q prompts -> In (draw t th q i) (B q).
Variable eqQ : forall a b : Q, {a = b} + {a <> b}.
Definition family_run := grpo prompts G T K eta memU draw family_oracle eqQ.

(** The main theorem, for every family at once and with no oracle left to suppose. *)
Theorem family_grpo th0 : U th0 ->
  let st := fst (fst (family_run th0)) in let th := snd (fst (family_run th0)) in let ev := snd (family_run th0) in
  U th /\ (draws _ _ _ ev <= T * length prompts * G)%nat /\ (grads _ _ _ ev <= T * K)%nat
  /\ counts_ok _ _ _ prompts G K T st ev
  /\ (K = 1%nat -> st <> UndefinedGradient)
  /\ ((forall t, U t) -> st <> InvalidUpdate).
Proof. intros H0. destruct family as [F1 F2 F3 F4].
  pose proof (grpo_main prompts B U pi pref rew eps beta G T K eta prompts_ne G_ge2 T_pos K_pos eps_range
    F2 pref_pos Dpi F4 memU memU_exact draw draw_supp family_oracle family_oracle_exact eqQ th0 H0) as H.
  cbv zeta in *. fold family_run in H. destruct H as [H1 [H2 [H3 [H4 [H5 [H6 H7]]]]]].
  repeat (split; [assumption|]). intros HU E.
  pose proof (run_stop _ _ _ _ _ U memU memU_exact draw (freeze eqQ) family_oracle (upd eta) prompts G T K th0 H0) as St.
  change (run (Rvec n) (Rvec n) Q Y Data memU draw (freeze eqQ) family_oracle (upd eta) prompts G T K th0) with (family_run th0) in St.
  rewrite E in St. destruct St as [t [thf [k [g [_ [_ N]]]]]]. apply N, HU. Qed.
End Family.
