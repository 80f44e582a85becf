(** * Whole-run certificates, closed form

    No hypothesis is left but the computed check.

      runR sp        the real procedure of the problem
      tot, ngr, nme  counts read off the trace

    Python, to come: exactgrpo.certificates.coq *)
From Coq Require Import Reals QArith Qreals List Lra Lia Arith Bool.
From Coquelicot Require Import Coquelicot.
From ExactGRPO Require Import FinSum Advantages Clip KL Kink Objective Rd Procedure Grpo Softmax Poly RatFam OracleInst Cert RunCheck Instances Multiquad.
Import ListNotations.
Open Scope R_scope.
Section Closed.
Variables (N : num) (sp : spec).
Notation n := (sp_n sp).
Notation ws := (sp_ws sp).
Notation M := (length ws).
Notation G := (sp_G sp).
Notation ev3 := (Procedure.event (Rvec n) nat nat).
Fixpoint ngr (steps : list (tstep N sp)) : nat := match steps with [] => 0 | s :: r => S (match t_grad N sp s with None => 0 | Some _ => ngr r end) end.
Fixpoint nme (steps : list (tstep N sp)) : nat := match steps with [] => 0 | s :: r => match t_grad N sp s with None => 0 | Some _ => S (nme r) end end.
Definition tot (f : list (tstep N sp) -> nat) (os : list (ostep N sp)) : nat := fold_right (fun o a => f (o_steps N sp o) + a)%nat 0%nat os.
Lemma iev_counts t steps : forall k th, draws _ _ _ (iev N sp t k th steps) = 0%nat /\ grads _ _ _ (iev N sp t k th steps) = ngr steps /\ mems _ _ _ (iev N sp t k th steps) = nme steps.
Proof. induction steps as [|s r IH]; intros k th; [simpl; auto|]. simpl. destruct (t_grad N sp s); [|unfold draws, grads, mems, cnt; simpl; auto].
  destruct (IH (S k) (t_prop N sp s)) as [I1 [I2 I3]]. unfold draws, grads, mems, cnt in *. simpl. rewrite I1, I2, I3. auto. Qed.
Lemma sev_counts t : draws _ _ _ (sev sp t) = (M * G)%nat /\ grads _ _ _ (sev sp t) = 0%nat /\ mems _ _ _ (sev sp t) = 0%nat.
Proof. pose proof (sample_counts (Rvec n) nat nat (fun t _ q i => drawS sp t q i) (seq 0 M) G t zero) as H. rewrite seq_length in H. exact H. Qed.
Theorem trace_counts os : forall t th, draws _ _ _ (oev N sp t th os) = (length os * (M * G))%nat /\ grads _ _ _ (oev N sp t th os) = tot ngr os /\ mems _ _ _ (oev N sp t th os) = tot nme os.
Proof. induction os as [|o r IH]; intros t th; [simpl; auto|]. simpl oev. destruct (IH (S t) (lastp N sp th (o_steps N sp o))) as [I1 [I2 I3]].
  destruct (iev_counts t (o_steps N sp o) 1 th) as [J1 [J2 J3]]. destruct (sev_counts t) as [S1 [S2 S3]].
  unfold draws, grads, mems in *. rewrite !cnt_app, I1, I2, I3, J1, J2, J3, S1, S2, S3. simpl. lia. Qed.

(** rational start *)
Fixpoint rofl (m : nat) (l : list Q) : Rvec m :=
  match m return Rvec m with O => Q2R (nth 0 l 0%Q) | S m' => (Q2R (nth 0 l 0%Q), rofl m' (tl l)) end.
Lemma vofl_ok m l : vev N m (vofl N m l) = rofl m l.
Proof. revert l. induction m as [|m IH]; intros l; simpl; rewrite ev_Q; auto. rewrite IH. auto. Qed.

Definition one_ref (_ _ : nat) : R := 1.      (* irrelevant: beta = 0 *)
Definition drawR (t : nat) (_ : Rvec n) (q i : nat) : nat := drawS sp t q i.
(** the exact objective-gradient oracle of F_t (constructed, OracleInst) and exact membership *)
Definition oracleR := rat_oracle n ws one_ref (rewR sp) (epsR sp) 0.
Definition runR : status * Rvec n * list ev3 :=
  grpo (prompts_rat ws) G (sp_T sp) (sp_K sp) (etaR sp) (memUrat n ws (sp_cons sp)) drawR oracleR Nat.eq_dec (rofl n (sp_th0 sp)).

Theorem check_run_exact (tr : trace N sp) : check_run N sp tr = true ->
  runR = (tr_status N sp tr, vev N n (tr_th N sp tr), trace_events N sp tr)
  /\ draws _ _ _ (snd runR) = (length (tr_outer N sp tr) * (M * G))%nat
  /\ grads _ _ _ (snd runR) = tot ngr (tr_outer N sp tr)
  /\ mems _ _ _ (snd runR) = tot nme (tr_outer N sp tr)
  /\ trace_true N sp drawR oracleR tr.
Proof. intros H.
  assert (Hs : chk_spec N sp = true). { unfold check_run in H. apply andb_true_iff in H. tauto. }
  assert (P1 : forall q y, In q (prompts_rat ws) -> In y (Brat ws q) -> 0 < one_ref q y) by (intros; unfold one_ref; lra).
  assert (SP : ws <> [] /\ (2 <= G)%nat /\ 0 < epsR sp < 1 /\ (1 <= sp_T sp)%nat /\ (1 <= sp_K sp)%nat).
  { unfold chk_spec in Hs. rewrite !andb_true_iff in Hs. destruct Hs as [[[[[[[[[S1 S2] S3] S4] S5] S6] _] _] _] _].
    split; [intros E; rewrite E in S1; discriminate|]. split; [apply Nat.leb_le; auto|].
    split; [|split; apply Nat.leb_le; auto].
    unfold epsR. rewrite <- Q2R_0', <- Q2R_1'. split; apply Qlt_Rlt, Qnot_le_lt; intros Hq; apply Qle_bool_iff in Hq; rewrite Hq in *; discriminate. }
  destruct SP as [WN [G2 [ER [T1 K1]]]].
  destruct (check_run_sound N sp one_ref P1 (memUrat n ws (sp_cons sp)) (memUrat_exact n ws (sp_cons sp)) drawR
    (fun t th q i _ _ _ => eq_refl) oracleR
    (fun d th g Hd Hth => rat_oracle_exact n ws (sp_cons sp) one_ref (rewR sp) (epsR sp) 0 WN ER P1 d th g Hd Hth) tr H) as [H1 H2].
  rewrite vofl_ok in H1. assert (E : runR = (tr_status N sp tr, vev N n (tr_th N sp tr), trace_events N sp tr)) by exact H1.
  rewrite E. simpl snd. unfold trace_events. destruct (trace_counts (tr_outer N sp tr) 1 (vofl N n (sp_th0 sp))) as [C1 [C2 C3]]. auto 10. Qed.
End Closed.
