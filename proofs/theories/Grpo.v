(** * The main theorem

    The procedure on R^d with the empirical objective, an exact gradient oracle and an exact domain oracle.

      grpo                run, specialised
      data_ok d           frozen data that a run can meet
      kink_free t thf th  smooth_cond for the groups drawn at t and thf

    Python: exactgrpo.update.loop.update_loop, exactgrpo.update.run.run, exactgrpo.update.oracle.evaluate *)
From Coq Require Import Reals List Lra Lia Arith.
From Coquelicot Require Import Coquelicot.
From ExactGRPO Require Import FinSum Advantages Clip KL Kink Objective Rd Procedure.
Import ListNotations.
Open Scope R_scope.

Section GRPO.
Context {n : nat} {Q Y : Type}.                        (* d = n + 1 parameters *)
Variables (prompts : list Q) (B : Q -> list Y).
Variable U : Rvec n -> Prop.
Variable pi : Rvec n -> Q -> Y -> R.
Variable pref rew : Q -> Y -> R.
Variables (eps beta : R) (G T K : nat) (eta : nat -> nat -> R).
Hypothesis U_open : open U.
Hypothesis prompts_ne : prompts <> [].
Hypothesis prompts_nodup : NoDup prompts.
Hypothesis G_ge2 : (2 <= G)%nat.
Hypothesis T_pos : (1 <= T)%nat.
Hypothesis K_pos : (1 <= K)%nat.
Hypothesis eps_range : 0 < eps < 1.
Hypothesis beta_nonneg : 0 <= beta.
Hypothesis eta_pos : forall t k, 0 < eta t k.
Hypothesis pi_pos : forall th q y, U th -> In q prompts -> In y (B q) -> 0 < pi th q y.
Hypothesis pi_sum : forall th q, U th -> In q prompts -> Rsum (B q) (pi th q) = 1.
Hypothesis pref_pos : forall q y, In q prompts -> In y (B q) -> 0 < pref q y.
Variable Dpi : Rvec n -> Q -> Y -> Rvec n.           (* gradients of the masses *)
Hypothesis pi_diff : forall th q y, U th -> In q prompts -> In y (B q) ->
  gradient_at (fun t => pi t q y) th (Dpi th q y).
(** oracles *)
Variable memU : Rvec n -> bool.
Hypothesis memU_exact : forall th, memU th = true <-> U th.
Variable draw : nat -> Rvec n -> Q -> nat -> Y.
Hypothesis draw_supp : forall t th q i, U th -> In q prompts -> In (draw t th q i) (B q).
(** frozen data: the frozen parameter and the groups *)
Definition Data : Type := (Rvec n * (Q -> list Y))%type.
Definition Fobj (d : Data) : Rvec n -> R := F prompts B pi pref rew eps beta (fst d) (snd d).
Variable oracle : Data -> Rvec n -> option (Rvec n).
(** data that a run can freeze: a valid parameter and nonempty supported groups *)
Definition data_ok (d : Data) : Prop := U (fst d) /\ forall q, In q prompts -> snd d q <> [] /\ incl (snd d q) (B q).
Hypothesis oracle_exact : forall d th g, data_ok d -> U th -> (oracle d th = Some g <-> gradient_at (Fobj d) th g).

Variable eqQ : forall a b : Q, {a = b} + {a <> b}.
Fixpoint look (l : list (Q * list Y)) (q : Q) : list Y :=
  match l with [] => [] | (q', ys) :: l' => if eqQ q' q then ys else look l' q end.
Definition freeze (th : Rvec n) (gs : list (Q * list Y)) : Data := (th, look gs).
Definition upd (t k : nat) (th g : Rvec n) : Rvec n := plus th (scal (eta t k : R_AbsRing) g).

Definition grpo := run (Rvec n) (Rvec n) Q Y Data memU draw freeze oracle upd prompts G T K.

Lemma look_groups t th q : In q prompts -> look (groups (Rvec n) Q Y draw prompts G t th) q = map (draw t th q) (seq 0 G).
Proof. unfold groups. clear. induction prompts as [|a l IH]; [intros []|]. simpl. intros H.
  destruct (eqQ a q) as [->|N]; auto. destruct H as [H|H]; [congruence|auto]. Qed.

Section Frozen.
Variables (t : nat) (thf : Rvec n).
Hypothesis Hf : U thf.
Let d := freeze thf (groups (Rvec n) Q Y draw prompts G t thf).
Lemma frozen_data_ok : data_ok d.
Proof. split; auto. intros q Hq. unfold d. simpl. rewrite look_groups by auto. split.
  - destruct G; [lia|]. discriminate.
  - intros y Hy. apply in_map_iff in Hy. destruct Hy as [i [<- _]]. apply draw_supp; auto. Qed.
Definition kink_free th := smooth_cond prompts pi rew eps thf (snd d) th (fun q y h => dot n (Dpi th q y) h).
Theorem oracle_defined_iff th : U th -> ((exists g, oracle d th = Some g) <-> kink_free th).
Proof. intros Hth.
  assert (E1 : (exists g, oracle d th = Some g) <-> diff_at (Fobj d) th).
  { rewrite gradient_exists_iff. split; intros [g H]; exists g; apply (oracle_exact d th g frozen_data_ok Hth); auto. }
  rewrite E1. apply F_diff_iff; auto; try lra.
  - intros q Hq. unfold d. simpl. rewrite look_groups by auto. destruct G; [lia|]. discriminate.
  - intros q Hq y Hy. unfold d in Hy. simpl in Hy. rewrite look_groups in Hy by auto.
    apply in_map_iff in Hy. destruct Hy as [i [<- _]]. apply draw_supp; auto.
  - intros q y Hq Hy. apply pi_diff; auto. Qed.
Theorem first_step_ok : exists g, oracle d thf = Some g.
Proof. apply oracle_defined_iff; auto. intros q y Hq Hy HA HK h. exfalso.
  unfold ratio in HK.
  assert (P : 0 < pi thf q y).
  { apply pi_pos; auto. unfold d in Hy. simpl in Hy. rewrite look_groups in Hy by auto.
    apply in_map_iff in Hy. destruct Hy as [i [<- _]]. apply draw_supp; auto. }
  replace (pi thf q y / pi thf q y) with 1 in HK by (field; lra).
  unfold kink in HK. destruct (Rle_dec 0 _); lra. Qed.
End Frozen.

(** Final statement of the source, plus what the source leaves out: where an
    undefined-gradient stop can happen. *)
Theorem grpo_main th0 : U th0 ->
  let st := fst (fst (grpo th0)) in let th := snd (fst (grpo th0)) in let ev := snd (grpo th0) in
  U th
  /\ (draws _ _ _ ev <= T * length prompts * G)%nat
  /\ (grads _ _ _ ev <= T * K)%nat
  /\ (mems _ _ _ ev <= grads _ _ _ ev)%nat
  /\ counts_ok _ _ _ prompts G K T st ev
  /\ (st = UndefinedGradient -> exists t thf, U thf /\ ~ kink_free t thf th /\ th <> thf)
  /\ (K = 1%nat -> st <> UndefinedGradient).
Proof. intros H. simpl.
  pose proof (run_valid _ _ _ _ _ U memU memU_exact draw freeze oracle upd prompts G T K th0 H) as V.
  pose proof (run_budget _ _ _ _ _ U memU memU_exact draw freeze oracle upd prompts G T K th0 H) as Bd.
  pose proof (run_counts _ _ _ _ _ U memU memU_exact draw freeze oracle upd prompts G T K th0 H) as C.
  pose proof (run_stop _ _ _ _ _ U memU memU_exact draw freeze oracle upd prompts G T K th0 H) as St.
  fold grpo in V, Bd, C, St. simpl in Bd. destruct Bd as [B1 [B2 B3]].
  repeat (split; [assumption|]).
  assert (X : fst (fst (grpo th0)) = UndefinedGradient -> exists t thf, U thf /\ ~ kink_free t thf (snd (fst (grpo th0))) /\
            snd (fst (grpo th0)) <> thf /\ K <> 1%nat).
  { intros E. rewrite E in St. simpl in St. destruct St as [t [thf [j [S1 [S2 [S3 [S4 S5]]]]]]].
    assert (N : snd (fst (grpo th0)) <> thf).
    { intros Z. rewrite Z in S2. destruct (first_step_ok t thf S1) as [g Hg]. congruence. }
    exists t, thf. repeat split; auto.
    - intros KF. apply oracle_defined_iff in KF; auto. destruct KF as [g Hg]. congruence.
    - intros K1. apply N, S5. lia. }
  split.
  - intros E. destruct (X E) as [t [thf [X1 [X2 [X3 X4]]]]]. exists t, thf. auto.
  - intros K1 E. destruct (X E) as [t [thf [X1 [X2 [X3 X4]]]]]. auto. Qed.
End GRPO.
