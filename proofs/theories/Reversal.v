(** * Standardising can reverse the gradient

    An instance with true derivative 7 and expected standardised gradient -2/3.

    Python, to come: exactgrpo.update.law *)
From Coq Require Import Reals List Lra Lia.
From ExactGRPO Require Import FinSum Advantages Law.
Import ListNotations.
Open Scope R_scope.
(** Standardising the rewards can reverse the expected gradient: three responses with
    masses (1/3 + 2t, 1/3 - 3t, 1/3 + t), rewards (0, 1, 10), groups of two, at t = 0. *)
Definition masses (_ : nat) : R := / 3.
Definition slope (y : nat) : R := match y with 0%nat => 2 | 1%nat => -3 | _ => 1 end.
Definition score3 (y : nat) : R := slope y / masses y.
Definition reward3 (y : nat) : R := match y with 0%nat => 0 | 1%nat => 1 | _ => 10 end.
Notation three := [0%nat; 1%nat; 2%nat].
(** the standardised advantages of a pair are the sign of the difference *)
Lemma adv_pair a b x : a < b -> adv [a; b] x = (x - (a + b) / 2) / ((b - a) / 2) /\ adv [b; a] x = (x - (a + b) / 2) / ((b - a) / 2).
Proof. intros H. assert (M1 : mean [a; b] = (a + b) / 2) by (unfold mean; rewrite !Rsum_cons, Rsum_nil; simpl; field).
  assert (M2 : mean [b; a] = (a + b) / 2) by (unfold mean; rewrite !Rsum_cons, Rsum_nil; simpl; field).
  assert (S1 : sd [a; b] = (b - a) / 2).
  { unfold sd, variance. rewrite M1, !Rsum_cons, Rsum_nil. simpl INR. match goal with |- sqrt ?z = _ => replace z with ((b - a) / 2 * ((b - a) / 2)) by (unfold Rsqr; field) end. apply sqrt_square; lra. }
  assert (S2 : sd [b; a] = (b - a) / 2).
  { unfold sd, variance. rewrite M2, !Rsum_cons, Rsum_nil. simpl INR. match goal with |- sqrt ?z = _ => replace z with ((b - a) / 2 * ((b - a) / 2)) by (unfold Rsqr; field) end. apply sqrt_square; lra. }
  unfold adv. rewrite M1, M2, S1, S2. destruct (Rlt_dec 0 ((b - a) / 2)); [auto|lra]. Qed.
Lemma adv_equal a x : adv [a; a] x = 0.
Proof. assert (sd [a; a] = 0) by (apply std_zero_iff; [discriminate|]; intros r r' [<-|[<-|[]]] [<-|[<-|[]]]; auto). unfold adv. rewrite H. destruct (Rlt_dec 0 0); lra. Qed.
Theorem standardising_reverses :
  E1 (three, masses) (fun y => reward3 y * score3 y) = 7 /\
  E (repeat (three, masses) 2) (fun w => / 2 * Rsum w (fun y => adv (map reward3 w) (reward3 y) * score3 y)) = - (2 / 3).
Proof. split.
  - unfold E1. simpl fst; simpl snd. rewrite !Rsum_cons, Rsum_nil. unfold score3, masses. simpl. field.
  - simpl repeat. rewrite E_cons. unfold E1. simpl fst; simpl snd. rewrite !Rsum_cons, Rsum_nil, !E_cons. unfold E1. simpl fst; simpl snd.
    rewrite !Rsum_cons, !Rsum_nil, !E_nil, !Rsum_cons, !Rsum_nil. cbn [map]. unfold score3, masses. cbn [reward3 slope].
    rewrite !adv_equal.
    rewrite !(proj1 (adv_pair 0 1 _ ltac:(lra))), !(proj2 (adv_pair 0 1 _ ltac:(lra))), !(proj1 (adv_pair 0 10 _ ltac:(lra))), !(proj2 (adv_pair 0 10 _ ltac:(lra))),
      !(proj1 (adv_pair 1 10 _ ltac:(lra))), !(proj2 (adv_pair 1 10 _ ltac:(lra))). field. Qed.
