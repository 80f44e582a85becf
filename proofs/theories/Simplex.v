(** * Simplex families

    theta holds the free masses of each prompt; the domain is a product of open simplices.

      ms                   free masses of each prompt
      pisimplex, Usimplex  masses and domain

    Python: exactgrpo.policies.simplex.Simplex *)
From Coq Require Import Reals QArith Qreals List Lra Lia Arith Bool.
From Coquelicot Require Import Coquelicot.
From ExactGRPO Require Import FinSum Kink Objective Rd Poly RatFam Family.
Import ListNotations.
Open Scope R_scope.

(** [ms] holds, for each prompt, the number of free masses (responses minus one);
    theta is the concatenation of the blocks of free masses. *)
Definition one_minus (l : list pexp) : pexp := PAdd (PC 1) (PMul (PC (-1)) (psum l)).
Definition simplex_block (o m : nat) : list pexp :=
  map (fun i => PX (o + i)) (seq 0 m) ++ [one_minus (map (fun i => PX (o + i)) (seq 0 m))].
Fixpoint simplex_weights (o : nat) (ms : list nat) : list (list pexp) :=
  match ms with [] => [] | m :: r => simplex_block o m :: simplex_weights (o + m) r end.
Definition offset (ms : list nat) (q : nat) : nat := fold_right Nat.add 0%nat (firstn q ms).

Section Simplex.
Variables (n : nat) (ms : list nat).
Notation ws := (simplex_weights 0 ms).
Definition Usimplex := Urat n ws [].
Definition pisimplex (th : Rvec n) (q y : nat) : R := pR n (wt ws q y) th.
Definition Dpisimplex (th : Rvec n) (q y : nat) : Rvec n := gR n (wt ws q y) th.

Lemma weights_length o l : length (simplex_weights o l) = length l.
Proof. revert o; induction l as [|m r IH]; intros o; simpl; auto. Qed.
Lemma weights_nth l : forall o q, (q < length l)%nat -> nth q (simplex_weights o l) [] = simplex_block (o + offset l q) (nth q l 0%nat).
Proof. induction l as [|m r IH]; intros o [|q] H; simpl in H; try lia.
  - unfold offset. simpl. rewrite Nat.add_0_r. auto.
  - simpl. rewrite IH by lia. f_equal. unfold offset. simpl. lia. Qed.
Lemma block_length o m : length (simplex_block o m) = S m.
Proof. unfold simplex_block. rewrite app_length, map_length, seq_length. simpl. lia. Qed.
Lemma one_minus_value l th : pR n (one_minus l) th = 1 - Rsum l (fun p => pR n p th).
Proof. unfold one_minus. simpl. rewrite pR_psum, Q2R_1', Q2R_m1. ring. Qed.
Lemma block_sum o m th : Rsum (simplex_block o m) (fun p => pR n p th) = 1.
Proof. unfold simplex_block. rewrite Rsum_app, Rsum_cons, Rsum_nil, one_minus_value. ring. Qed.
Lemma row_of q : In q (prompts_rat ws) -> (q < length ms)%nat.
Proof. unfold prompts_rat. rewrite in_seq, weights_length. lia. Qed.

(** The masses are the coordinates, and the last one is what is left of one. *)
Theorem simplex_masses th q : (q < length ms)%nat ->
  (forall i, (i < nth q ms 0)%nat -> pisimplex th q i = rcoord n (offset ms q + i) th)
  /\ pisimplex th q (nth q ms 0%nat) = 1 - Rsum (seq 0 (nth q ms 0%nat)) (fun i => rcoord n (offset ms q + i) th).
Proof. intros Hq. unfold pisimplex, wt, wl. rewrite weights_nth by auto. simpl Nat.add. unfold simplex_block. split.
  - intros i Hi. rewrite app_nth1 by (rewrite map_length, seq_length; auto).
    rewrite (nth_indep _ (PC 0) (PX (offset ms q + 0))) by (rewrite map_length, seq_length; auto).
    rewrite (map_nth (fun i => PX (offset ms q + i)) _ 0%nat), seq_nth by auto. reflexivity.
  - rewrite app_nth2; rewrite map_length, seq_length; [|lia]. rewrite Nat.sub_diag. simpl nth.
    rewrite one_minus_value, Rsum_map. reflexivity. Qed.
Lemma simplex_sum th q : (q < length ms)%nat -> Rsum (Brat ws q) (pisimplex th q) = 1.
Proof. intros Hq. unfold Brat, pisimplex, wt. rewrite (Rsum_nth (wl ws q) (PC 0) (fun p => pR n p th)).
  unfold wl. rewrite weights_nth by auto. apply block_sum. Qed.
(** The domain is the product of the open simplices. *)
Theorem simplex_domain th : Usimplex th <-> forall q, (q < length ms)%nat ->
  (forall i, (i < nth q ms 0)%nat -> 0 < rcoord n (offset ms q + i) th)
  /\ Rsum (seq 0 (nth q ms 0%nat)) (fun i => rcoord n (offset ms q + i) th) < 1.
Proof. split.
  - intros H q Hq. assert (P : forall y, (y <= nth q ms 0)%nat -> 0 < pisimplex th q y).
    { intros y Hy. apply H. apply wt_in.
      - unfold prompts_rat. rewrite in_seq, weights_length. lia.
      - unfold Brat, wl. rewrite in_seq, weights_nth, block_length by auto. lia. }
    destruct (simplex_masses th q Hq) as [E1 E2]. split.
    + intros i Hi. rewrite <- E1 by auto. apply P. lia.
    + specialize (P (nth q ms 0%nat) (le_n _)). rewrite E2 in P. lra.
  - intros H p Hp. unfold allc in Hp. rewrite app_nil_r in Hp. apply in_concat in Hp. destruct Hp as [l [Hl Hp]].
    apply (In_nth _ _ []) in Hl. destruct Hl as [q [Hq <-]]. rewrite weights_length in Hq. rewrite weights_nth in Hp by auto.
    destruct (H q Hq) as [H1 H2]. simpl Nat.add in Hp. unfold simplex_block in Hp. apply in_app_iff in Hp. destruct Hp as [Hp|[<-|[]]].
    + apply in_map_iff in Hp. destruct Hp as [i [<- Hi]]. apply in_seq in Hi. apply H1. lia.
    + rewrite one_minus_value, Rsum_map. simpl pR. lra. Qed.
Theorem simplex_family : policy_family (prompts_rat ws) (Brat ws) Usimplex pisimplex Dpisimplex.
Proof. split.
  - exact (Urat_open n ws []).
  - intros th q y Hth Hq Hy. apply (wt_pos n ws [] th Hth); auto.
  - intros th q _ Hq. apply simplex_sum, row_of; auto.
  - intros th q y _ _ _. apply gR_correct. Qed.
End Simplex.
