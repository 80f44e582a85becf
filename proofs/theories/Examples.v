(** * Instances of the hypotheses

    The long theorems speak of something: a whole run checked by computation, and a delay model that satisfies H1-H3
    with a ratio that is not constant.

      sp_half, tr_half  the run of two responses with masses t and 1 - t from 1/2, and its trace
      om8, X8, D8, r8   three fair and independent bits: residual, delay, ratio

    Python, to come: exactgrpo.certificates.coq *)
From Coq Require Import Reals QArith Qreals List Lra Lia Arith Bool.
From Coquelicot Require Import Coquelicot.
From ExactGRPO Require Import FinSum Procedure Poly Cert RunCheck Multiquad RunExact Kernel Delay.
Import ListNotations.
Open Scope R_scope.

(** Rewards 1 and 0, both drawn, clip 1/4, step size 1/16, two inner steps, no penalty. *)
Definition sp_half : spec := Spec 0 [[PX 0; PAdd (PC 1) (PMul (PC (-1)) (PX 0))]] [] [[1%Q; 0%Q]] (1 # 4) [[1 # 16; 1 # 16]]%Q 2 1 2 [[[0; 1]]]%nat [1 # 2]%Q.
Definition tr_half : trace numQ sp_half := Trace numQ sp_half
  [OStep numQ sp_half [1 # 2]%Q [[(0%nat, (1, 2)); (1%nat, (-1, 2))]]%Q
    [TStep numQ sp_half [1%Q] [[Some true; Some true]] (Some 2%Q) (5 # 8)%Q true;
     TStep numQ sp_half [1%Q] [[None; None]] None (5 # 8)%Q true]]
  UndefinedGradient (5 # 8)%Q.
(** The first step has gradient 2; at 5/8 the ratios are 5/4 and 3/4, both on a kink: the run ends there with no gradient. *)
Theorem run_of_half : check_run numQ sp_half tr_half = true /\ fst (runR sp_half) = (UndefinedGradient, Q2R (5 # 8)).
Proof. assert (H : check_run numQ sp_half tr_half = true) by (vm_compute; reflexivity). split; auto.
  destruct (check_run_exact numQ sp_half tr_half H) as [E _]. rewrite E. reflexivity. Qed.

Notation bits := [true; false].
Definition om8 : list (bool * (bool * bool)) := list_prod bits (list_prod bits bits).
Definition P8 (_ : bool * (bool * bool)) : R := / 8.
Definition X8 (_ : unit) (_ : nat) (w : bool * (bool * bool)) : R := if fst w then 1 else 0.
Definition D8 (_ : unit) (_ : nat) (w : bool * (bool * bool)) : option nat := Some (if fst (snd w) then 1%nat else 0%nat).
Definition r8 (_ : unit) (_ _ : nat) (w : bool * (bool * bool)) : R := if snd (snd w) then 3 / 2 else / 2.
Definition fair (_ : unit) (_ _ : nat) : R := / 2.
Definition unweighted (_ : unit) (_ _ : nat) : R := 1.
Ltac compute8 := unfold CEd, pD, oneD, on_arrival, Ex, om8, P8, X8, D8, r8, fair; simpl list_prod; rewrite ?Rsum_cons, ?Rsum_nil; simpl; lra.
(** Two rows, injection on arrival: the residual of the second row is lost half of the time. *)
Theorem premises_hold : premises om8 P8 2 0 1 [tt] unweighted D8 X8 r8 /\
  (forall d, In d (seq 0 2) -> forall t, pD om8 P8 (D8 tt t) d = fair tt t d).
Proof. split.
  - intros [] t _ _. repeat split; intros d [Hd _]; destruct Hd as [<-|[<-|[]]]; compute8.
  - intros d [<-|[<-|[]]] t; compute8. Qed.
Theorem bias_of_two_rows : Ex om8 P8 (injected 2 0 [tt] unweighted D8 X8 r8) - Ex om8 P8 (owed 2 [tt] X8) = - / 4.
Proof. destruct premises_hold as [H HL].
  rewrite (C1_total om8 P8 2 0 1 [tt] ltac:(intros; unfold P8; lra) fair unweighted D8 X8 r8).
  - assert (S : forall t, slackL 2 0 1 fair unweighted tt t = 1 - Rsum (seq 0 2) (fun d => / 2 * gsurv 2 0 (unweighted tt) t d)).
    { intros t. unfold slackL, slackC. rewrite Lambda_row_mass. reflexivity. }
    rewrite Rsum_cons, Rsum_nil. simpl seq. rewrite !Rsum_cons, !Rsum_nil, !S. simpl seq. rewrite !Rsum_cons, !Rsum_nil.
    unfold gsurv, lands, unweighted. simpl Nat.ltb. cbv iota. unfold Ex, om8, P8, X8. simpl list_prod. rewrite !Rsum_cons, !Rsum_nil. simpl. lra.
  - intros [] t w d _ _ _ E. unfold D8 in E. injection E as <-. destruct (fst (snd w)); simpl; auto.
  - intros [] t d _ _ Hd. apply HL. exact Hd.
  - exact H. Qed.
