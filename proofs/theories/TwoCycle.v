(** * The update need not converge

    Two responses with equal rewards, one logit, uniform reference, step size times penalty nine: the exact run
    jumps between ln 2 and -ln 2 for ever, whatever is drawn. Also an instance of every hypothesis of the main theorem.

      logit_run T th  the run of T outer iterations of one inner step

    Python, to come: exactgrpo.claims *)
From Coq Require Import Reals List Lra Lia Arith Bool.
From Coquelicot Require Import Coquelicot.
From ExactGRPO Require Import FinSum Advantages Clip KL Kink Objective Rd Procedure Grpo Softmax Poly OracleInst Family Instances.
Import ListNotations.
Open Scope R_scope.

Definition one_prompt : list unit := [tt].
Definition both (_ : unit) : list bool := [true; false].
Definition score (_ : unit) (y : bool) (th : Rvec 0) : R := if y then th else 0.
Definition Dscore (_ : unit) (y : bool) (th : Rvec 0) : Rvec 0 := (if y then 1 else 0) : R.
Definition uniform (_ : unit) (_ : bool) : R := / 2.
Definition unit_dec (a b : unit) : {a = b} + {a <> b}.
Proof. destruct a, b. left. reflexivity. Defined.
Lemma score_diff q y (th : Rvec 0) : gradient_at (score q y) th (Dscore q y th).
Proof. unfold gradient_at, score, Dscore. destruct y.
  - eapply (has_diff_ext (V := Rvec 0) (fun t => t)); [reflexivity| |apply (filterdiff_id (V := Rvec 0))]. intros h. symmetry. exact (Rmult_1_l h).
  - eapply (has_diff_ext (V := Rvec 0) (fun _ => 0)); [reflexivity| |apply (has_diff_const (V := Rvec 0) 0)]. intros h. symmetry. exact (Rmult_0_l h). Qed.

Section Cycle.
Variables (reward eps beta : R) (G : nat) (draw : nat -> Rvec 0 -> unit -> nat -> bool).
Hypothesis eps_range : 0 < eps < 1.
Hypothesis beta_pos : 0 < beta.
Hypothesis G_ge2 : (2 <= G)%nat.
Definition flat (_ : unit) (_ : bool) : R := reward.
Definition step9 (_ _ : nat) : R := 9 / beta.
Definition logit_run (T : nat) := sm_run one_prompt both score Dscore uniform flat eps beta G T 1 step9 draw unit_dec.
Notation mass := (pism both score).
Lemma mass_true (th : R) : mass th tt true = exp th / (exp th + 1).
Proof. unfold pism, softmax, Zs, both. rewrite !Rsum_cons, Rsum_nil. unfold score. rewrite exp_0, Rplus_0_r. reflexivity. Qed.
Lemma mass_false (th : R) : mass th tt false = 1 / (exp th + 1).
Proof. unfold pism, softmax, Zs, both. rewrite !Rsum_cons, Rsum_nil. unfold score. rewrite exp_0, Rplus_0_r. reflexivity. Qed.
Lemma flat_adv (Ys : unit -> list bool) y : Ys tt <> [] -> Adv flat Ys tt y = 0.
Proof. intros H. unfold Adv, adv. assert (Z : sd (map (flat tt) (Ys tt)) = 0).
  { apply std_zero_iff; [intros E; apply H; destruct (Ys tt); [auto|discriminate]|].
    intros r r' Hr Hr'. apply in_map_iff in Hr, Hr'. destruct Hr as [? [<- _]], Hr' as [? [<- _]]. reflexivity. }
  rewrite Z. destruct (Rlt_dec 0 0); lra. Qed.
(** The gradient is - beta p (1 - p) theta, p the probability of the first response: only the penalty is left. *)
Theorem flat_gradient (d : Data (n := 0) (Q := unit) (Y := bool)) (th : R) : snd d tt <> [] ->
  (gvec one_prompt both mass uniform flat eps beta (Dpism both score Dscore) d th : R)
    = - beta * (exp th / ((exp th + 1) * (exp th + 1))) * th.
Proof. intros Hd. set (g := gvec one_prompt both mass uniform flat eps beta (Dpism both score Dscore) d th).
  assert (E : dot 0 g (1 : R) = - beta * (exp th / ((exp th + 1) * (exp th + 1))) * th).
  { unfold g. rewrite <- gvec_dot. unfold gradF, one_prompt. rewrite Rsum_cons, Rsum_nil. simpl length. rewrite (Rsum_0 (snd d tt)).
    2: { intros y _. rewrite flat_adv by auto. ring. }
    unfold dKL. pose proof (exp_pos th) as P. assert (P1 : 0 < exp th + 1) by lra.
    assert (D1 : dot 0 (Dpism both score Dscore th tt true) (1 : R) = exp th / ((exp th + 1) * (exp th + 1))).
    { unfold Dpism. rewrite dot_scal, dot_plus, dot_scal, dot_Vsum. unfold both at 2. rewrite !Rsum_cons, Rsum_nil, !dot_scal.
      rewrite mass_true, mass_false. unfold Dscore. simpl dot. field. lra. }
    assert (D2 : dot 0 (Dpism both score Dscore th tt false) (1 : R) = - (exp th / ((exp th + 1) * (exp th + 1)))).
    { unfold Dpism. rewrite dot_scal, dot_plus, dot_scal, dot_Vsum. unfold both at 2. rewrite !Rsum_cons, Rsum_nil, !dot_scal.
      rewrite mass_true, mass_false. unfold Dscore. simpl dot. field. lra. }
    unfold both at 1. rewrite !Rsum_cons, Rsum_nil, D1, D2, mass_true, mass_false. unfold uniform.
    assert (E1 : ln (exp th / (exp th + 1) / / 2) = th + ln (2 / (exp th + 1))).
    { rewrite <- (ln_exp th) at 3. rewrite <- ln_mult; [f_equal; field; lra|auto|apply Rdiv_lt_0_compat; lra]. }
    assert (E2 : ln (1 / (exp th + 1) / / 2) = ln (2 / (exp th + 1))) by (f_equal; field; lra).
    rewrite E1, E2. simpl INR. pose proof (INR_length_pos (snd d tt) Hd). field. split; [lra|apply Rgt_not_eq; assumption]. }
  simpl in E. rewrite Rmult_1_r in E. exact E. Qed.
Lemma exp_ln2 (th : R) : th = ln 2 \/ th = - ln 2 -> exp th / ((exp th + 1) * (exp th + 1)) = 2 / 9.
Proof. intros [->| ->]; [rewrite exp_ln by lra; field|]. rewrite exp_Ropp, exp_ln by lra. field. Qed.
Lemma one_step t (th : R) : th = ln 2 \/ th = - ln 2 ->
  inner (Rvec 0) (Rvec 0) unit bool (Data (n := 0) (Q := unit) (Y := bool)) accept_all
    (family_oracle one_prompt both mass (Dpism both score Dscore) uniform flat eps beta) (upd (n := 0) step9)
    (freeze (n := 0) unit_dec th (groups (Rvec 0) unit bool draw one_prompt G t th)) t 1 1 th
  = (None, (- th : R), [EvGrad _ _ _ t 1 th; EvMem _ _ _ t 1 (- th : R)]).
Proof. intros H. set (d := freeze (n := 0) unit_dec th _). assert (Hd : snd d tt <> []).
  { unfold d, freeze. cbn [snd]. rewrite (look_groups (n := 0)) by (left; auto). destruct G; [lia|discriminate]. }
  assert (Eo : family_oracle one_prompt both mass (Dpism both score Dscore) uniform flat eps beta d th
    = Some (gvec one_prompt both mass uniform flat eps beta (Dpism both score Dscore) d th)).
  { unfold family_oracle, oracle_inst. destruct (smooth_dec one_prompt mass flat eps (Dpism both score Dscore) d th) as [S|S]; auto. exfalso. apply S.
    intros [] y _ _ HA. exfalso. apply HA, flat_adv; auto. }
  assert (Eu : upd (n := 0) step9 t 1 th (gvec one_prompt both mass uniform flat eps beta (Dpism both score Dscore) d th) = (- th : R)).
  { change (th + 9 / beta * (gvec one_prompt both mass uniform flat eps beta (Dpism both score Dscore) d th : R) = - th :> R).
    rewrite flat_gradient by auto. rewrite exp_ln2 by auto. field. lra. }
  cbn [inner]. rewrite Eo, Eu. reflexivity. Qed.
Lemma cycle T : forall t (th : R), th = ln 2 \/ th = - ln 2 ->
  fst (outer (Rvec 0) (Rvec 0) unit bool (Data (n := 0) (Q := unit) (Y := bool)) accept_all draw (freeze (n := 0) unit_dec)
    (family_oracle one_prompt both mass (Dpism both score Dscore) uniform flat eps beta) (upd (n := 0) step9) one_prompt G 1 t T th)
  = (Complete, (if Nat.even T then th else - th) : R).
Proof. induction T as [|T IH]; intros t th H; [reflexivity|].
  cbn [outer]. rewrite one_step by auto. specialize (IH (S t) (- th) ltac:(destruct H as [->| ->]; [right|left]; ring)).
  match type of IH with fst ?o = _ => destruct o as [[st th''] ev'] end. simpl fst in *. injection IH as -> ->.
  f_equal. rewrite Nat.even_succ, <- Nat.negb_even. destruct (Nat.even T); simpl; [auto|ring]. Qed.
(** After T outer iterations the run is complete, at ln 2 for even T and at -ln 2 for odd T. *)
Theorem two_cycle T : fst (logit_run T (ln 2)) = (Complete, (if Nat.even T then ln 2 else - ln 2) : R).
Proof. apply cycle. left. auto. Qed.
Theorem no_limit l : ~ is_lim_seq (fun T => snd (fst (logit_run T (ln 2))) : R) (Finite l).
Proof. intros H. assert (L : 0 < ln 2) by (rewrite <- ln_1; apply ln_increasing; lra).
  apply is_lim_seq_spec in H. destruct (H (mkposreal _ L)) as [N HN]. simpl in HN.
  pose proof (HN (2 * N)%nat ltac:(lia)) as A. pose proof (HN (S (2 * N)) ltac:(lia)) as B.
  rewrite two_cycle in A, B. cbn [snd] in A, B. rewrite Nat.even_succ, <- Nat.negb_even, Nat.even_mul in B. rewrite Nat.even_mul in A. simpl in A, B.
  apply Rabs_def2 in A. apply Rabs_def2 in B. lra. Qed.
(** The hypotheses of the main theorem hold here, so that it speaks of something. *)
Theorem main_theorem_is_not_vacuous T : (1 <= T)%nat ->
  policy_family one_prompt both everywhere mass (Dpism both score Dscore) /\ counts_ok _ _ _ one_prompt G 1 T (fst (fst (logit_run T (ln 2)))) (snd (logit_run T (ln 2))).
Proof. intros HT. assert (B_ne : forall q, In q one_prompt -> both q <> []) by (intros; discriminate).
  split; [apply softmax_family; auto; [apply open_true|intros; apply score_diff]|].
  apply softmax_grpo; auto.
  - intros; apply score_diff.
  - discriminate.
  - intros; unfold uniform; lra.
  - intros t th q i _. destruct (draw t th q i); simpl; auto. Qed.
End Cycle.
