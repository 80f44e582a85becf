(** * Why the premises are given the delay

    Pairwise independence is not enough.

      om, P, X, delay, rho, g  the instance

    Python: exactgrpo.rac.hypotheses.decide_hypotheses *)
From Coq Require Import Reals List Lra Lia Arith Bool.
From ExactGRPO Require Import FinSum Kernel Delay.
Import ListNotations.
Open Scope R_scope.
(** Why the premises must hold given the delay: X = +-1 and D in {0,1} fair and
    independent, rho = 1 + X (-1)^D, g = (1,0).  Every pair of (X, D, rho) is
    independent and the ratio has mean one, yet the bias is 1/2. *)
Definition om : list (bool * bool) := [(true, true); (true, false); (false, true); (false, false)].
Definition P (_ : bool * bool) : R := / 4.
Definition X (w : bool * bool) : R := if fst w then 1 else -1.
Definition delay (w : bool * bool) : nat := if snd w then 1%nat else 0%nat.
Definition D (w : bool * bool) : option nat := Some (delay w).
Definition rho (d : nat) (w : bool * bool) : R := 1 + X w * (if Nat.eqb d 0 then 1 else -1).
Definition g (d : nat) : R := if Nat.eqb d 0 then 1 else 0.
Notation E := (Ex om P).
Notation r := (fun w => rho (delay w) w).
Ltac go := unfold Ex, om, bias1, slack1, J, on_arrival, D, rho, g, X, delay, P; rewrite ?Rsum_cons, ?Rsum_nil; simpl; lra.
Theorem mean_ratio : E r = 1. Proof. go. Qed.
Theorem slack_half : slack1 om P D g = / 2. Proof. go. Qed.
Theorem mean_X : E X = 0. Proof. go. Qed.
(** pairwise independence: every test function of each pair factorises *)
Theorem indep_X_D (a : R -> R) (b : nat -> R) : E (fun w => a (X w) * b (delay w)) = E (fun w => a (X w)) * E (fun w => b (delay w)).
Proof. unfold Ex, om, X, delay, P. rewrite !Rsum_cons, !Rsum_nil; simpl. field. Qed.
Theorem indep_r_X (a b : R -> R) : E (fun w => a (r w) * b (X w)) = E (fun w => a (r w)) * E (fun w => b (X w)).
Proof. unfold Ex, om, rho, X, delay, P. rewrite !Rsum_cons, !Rsum_nil; simpl.
  replace (1 + 1 * -1) with 0 by ring. replace (1 + 1 * 1) with 2 by ring. replace (1 + -1 * -1) with 2 by ring. replace (1 + -1 * 1) with 0 by ring. field. Qed.
Theorem indep_r_D (a : R -> R) (b : nat -> R) : E (fun w => a (r w) * b (delay w)) = E (fun w => a (r w)) * E (fun w => b (delay w)).
Proof. unfold Ex, om, rho, X, delay, P. rewrite !Rsum_cons, !Rsum_nil; simpl.
  replace (1 + 1 * -1) with 0 by ring. replace (1 + 1 * 1) with 2 by ring. replace (1 + -1 * -1) with 2 by ring. replace (1 + -1 * 1) with 0 by ring. field. Qed.
Theorem bias_half : bias1 om P D X rho g = / 2 /\ - slack1 om P D g * E X = 0.
Proof. split; go. Qed.
Theorem not_uncorr_given : ~ ratio_uncorr_given om P D X rho g [0%nat; 1%nat].
Proof. intros H. assert (C : counts_for om P D g [0%nat; 1%nat] 0).
  { unfold counts_for, pD, oneD, on_arrival, Ex, om, D, delay, P, g. rewrite !Rsum_cons, !Rsum_nil. simpl. repeat split; auto; lra. }
  specialize (H 0%nat C). unfold CEd, pD, oneD, on_arrival, Ex, om, D, delay, rho, X, P in H. rewrite !Rsum_cons, !Rsum_nil in H. simpl in H. lra. Qed.
