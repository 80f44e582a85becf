(** * Exchangeability

    Expectations over a group as sums over multisets; the multinomial coefficient counts orderings.

      compositions m G        count vectors of length m that sum to G
      multinomial ns          G! / prod (n_y!)
      monomial, word, counts  mass, canonical word and count vector of a multiset

    Python: exactgrpo.field.expected_gradient.expected_group_gradient
    Python, to come: exactgrpo.update.law *)
From Coq Require Import Reals List Lra Lia Arith Permutation.
From ExactGRPO Require Import FinSum Law.
Import ListNotations.
Open Scope R_scope.

(** Count vectors of length m that sum to G. *)
Fixpoint compositions (m G : nat) : list (list nat) :=
  match m with
  | O => if Nat.eqb G 0 then [[]] else []
  | S m' => flat_map (fun k => map (cons k) (compositions m' (G - k))) (seq 0 (S G))
  end.
Definition total (ns : list nat) : nat := fold_right Nat.add 0%nat ns.
Definition fact_prod (ns : list nat) : R := fold_right (fun k a => INR (fact k) * a) 1 ns.
Definition multinomial (ns : list nat) : R := INR (fact (total ns)) / fact_prod ns.
Fixpoint bump (j : nat) (ns : list nat) : list nat :=
  match ns, j with [], _ => [] | k :: r, O => S k :: r | k :: r, S j' => k :: bump j' r end.

Lemma compositions_in m : forall G ns, In ns (compositions m G) <-> length ns = m /\ total ns = G.
Proof. induction m as [|m IH]; intros G ns.
  - simpl. destruct (Nat.eqb_spec G 0) as [->|N]; simpl; split.
    + intros [<-|[]]. auto.
    + intros [H _]. destruct ns; [auto|discriminate].
    + intros [].
    + intros [H1 H2]. destruct ns; [simpl in H2; lia|discriminate].
  - change (compositions (S m) G) with (flat_map (fun k => map (cons k) (compositions m (G - k))) (seq 0 (S G))).
    rewrite in_flat_map. split.
    + intros [k [Hk H]]. apply in_map_iff in H. destruct H as [r [<- H]]. apply IH in H. destruct H as [H1 H2]. apply in_seq in Hk. simpl. lia.
    + intros [H1 H2]. destruct ns as [|k r]; [discriminate|]. simpl in H1, H2. exists k. split; [apply in_seq; lia|].
      apply in_map. apply IH. lia. Qed.
Lemma compositions_sum m G f : Rsum (compositions (S m) G) f =
  Rsum (seq 0 (S G)) (fun k => Rsum (compositions m (G - k)) (fun r => f (k :: r))).
Proof. change (compositions (S m) G) with (flat_map (fun k => map (cons k) (compositions m (G - k))) (seq 0 (S G))).
  rewrite Rsum_flat_map. apply Rsum_ext. intros k _. apply Rsum_map. Qed.
Lemma total_zero ns : total ns = 0%nat -> forall j, nth j ns 0%nat = 0%nat.
Proof. induction ns as [|k r IH]; intros H [|j]; simpl in *; auto; try lia. apply IH; lia. Qed.

(** Each count vector of G+1 arises from those of G by one more occurrence. *)
Lemma compositions_bump m : forall j G (h : list nat -> R), (j < m)%nat ->
  Rsum (compositions m G) (fun ns => INR (S (nth j ns 0%nat)) * h (bump j ns)) =
  Rsum (compositions m (S G)) (fun ns => INR (nth j ns 0%nat) * h ns).
Proof. induction m as [|m IH]; intros j G h Hj; [lia|]. rewrite !compositions_sum. destruct j as [|j].
  - change (seq 0 (S (S G))) with (0%nat :: seq 1 (S G)). rewrite (Rsum_cons 0%nat), <- seq_shift, Rsum_map.
    rewrite (Rsum_0 (compositions m (S G - 0))) by (intros r _; simpl; ring). rewrite Rplus_0_l.
    apply Rsum_ext. intros k _. reflexivity.
  - rewrite (seq_S (S G) 0), Rsum_app, Rsum_cons, Rsum_nil.
    rewrite (Rsum_0 (compositions m (S G - (0 + S G)))).
    2: { intros r Hr. apply compositions_in in Hr. destruct Hr as [_ Hr]. cbn [nth]. rewrite total_zero by lia. simpl. ring. }
    rewrite !Rplus_0_r. apply Rsum_ext. intros k Hk. apply in_seq in Hk. replace (S G - k)%nat with (S (G - k)) by lia.
    exact (IH j (G - k)%nat (fun r => h (k :: r)) ltac:(lia)). Qed.

Lemma fact_prod_pos ns : 0 < fact_prod ns.
Proof. induction ns as [|k r IH]; simpl; [lra|]. apply Rmult_lt_0_compat; auto. apply lt_0_INR, lt_O_fact. Qed.
Lemma fact_prod_bump ns : forall j, (j < length ns)%nat -> fact_prod (bump j ns) = INR (S (nth j ns 0%nat)) * fact_prod ns.
Proof. induction ns as [|k r IH]; intros [|j] H; simpl in H; try lia.
  - cbn [bump fact_prod fold_right nth]. rewrite fact_simpl, mult_INR. fold (fact_prod r). ring.
  - cbn [bump nth]. change (fact_prod (k :: bump j r)) with (INR (fact k) * fact_prod (bump j r)). rewrite IH by lia.
    change (fact_prod (k :: r)) with (INR (fact k) * fact_prod r). ring. Qed.
Lemma total_bump ns : forall j, (j < length ns)%nat -> total (bump j ns) = S (total ns).
Proof. induction ns as [|k r IH]; intros [|j] H; simpl in *; try lia. rewrite IH by lia. lia. Qed.
Lemma multinomial_bump ns j : (j < length ns)%nat ->
  multinomial ns = multinomial (bump j ns) * INR (S (nth j ns 0%nat)) / INR (S (total ns)).
Proof. intros H. unfold multinomial. rewrite total_bump, fact_prod_bump, fact_simpl, mult_INR by auto.
  pose proof (fact_prod_pos ns). pose proof (lt_0_INR (S (total ns)) ltac:(lia)). pose proof (lt_0_INR (S (nth j ns 0%nat)) ltac:(lia)).
  field. lra. Qed.
Lemma sum_nth ns : Rsum (seq 0 (length ns)) (fun j => INR (nth j ns 0%nat)) = INR (total ns).
Proof. induction ns as [|k r IH]; [reflexivity|]. change (seq 0 (length (k :: r))) with (0%nat :: seq 1 (length r)).
  rewrite Rsum_cons, <- seq_shift, Rsum_map. cbn [nth total fold_right]. rewrite plus_INR. f_equal. exact IH. Qed.

Section Groups.
Context {Y : Type}.
Fixpoint monomial (p : Y -> R) (B : list Y) (ns : list nat) : R :=
  match B, ns with y :: B', k :: r => p y ^ k * monomial p B' r | _, _ => 1 end.
Fixpoint word (B : list Y) (ns : list nat) : list Y :=
  match B, ns with y :: B', k :: r => repeat y k ++ word B' r | _, _ => [] end.
Lemma monomial_bump p y0 B : forall ns j, length ns = length B -> (j < length B)%nat -> monomial p B (bump j ns) = p (nth j B y0) * monomial p B ns.
Proof. induction B as [|y B IH]; intros [|k r] [|j] L H; simpl in *; try lia; [ring|]. rewrite IH by lia. ring. Qed.
Lemma word_bump y0 B : forall ns j, length ns = length B -> (j < length B)%nat -> Permutation (nth j B y0 :: word B ns) (word B (bump j ns)).
Proof. induction B as [|y B IH]; intros [|k r] [|j] L H; simpl in *; try lia; [apply Permutation_refl|].
  rewrite <- (IH r j) by lia. apply Permutation_middle. Qed.
Lemma compositions_zero (f : list nat -> R) m : Rsum (compositions m 0) f = f (repeat 0%nat m).
Proof. revert f; induction m as [|m IH]; intros f; [simpl compositions; rewrite Rsum_cons, Rsum_nil; simpl; ring|].
  rewrite compositions_sum. cbn [seq]. rewrite Rsum_cons, Rsum_nil, Rplus_0_r. simpl Nat.sub. rewrite (IH (fun r => f (0%nat :: r))). reflexivity. Qed.
Lemma Rsum_index (B : list Y) y0 (f : Y -> R) : Rsum B f = Rsum (seq 0 (length B)) (fun j => f (nth j B y0)).
Proof. induction B as [|y B IH]; [reflexivity|]. change (seq 0 (length (y :: B))) with (0%nat :: seq 1 (length B)).
  rewrite !Rsum_cons, <- seq_shift, Rsum_map, IH. reflexivity. Qed.
Lemma zeros m : total (repeat 0%nat m) = 0%nat /\ fact_prod (repeat 0%nat m) = 1.
Proof. induction m as [|m [I1 I2]]; [auto|]. split; [exact I1|]. change (INR (fact 0) * fact_prod (repeat 0%nat m) = 1). rewrite I2. simpl. ring. Qed.

(** Exchangeability: the expectation of a statistic that ignores the order of the
    group is a sum over multisets, each with its multinomial coefficient. *)
Theorem group_expectation_by_multisets (B : list Y) (p : Y -> R) G : forall f : list Y -> R,
  (forall w w', Permutation w w' -> f w = f w') ->
  E (repeat (B, p) G) f = Rsum (compositions (length B) G) (fun ns => multinomial ns * monomial p B ns * f (word B ns)).
Proof. induction G as [|G IH]; intros f Hf.
  - simpl repeat. rewrite E_nil, compositions_zero. destruct (zeros (length B)) as [Z1 Z2]. unfold multinomial. rewrite Z1, Z2.
    assert (W : word B (repeat 0%nat (length B)) = [] /\ monomial p B (repeat 0%nat (length B)) = 1).
    { clear. induction B as [|y B [I1 I2]]; simpl; auto. rewrite I1, I2. split; auto. ring. }
    destruct W as [-> ->]. simpl. field.
  - simpl repeat. rewrite E_cons. unfold E1. simpl fst; simpl snd.
    assert (HB : B = [] \/ exists y0 : Y, B <> []) by (destruct B as [|y0 B0]; [left; auto|right; exists y0; discriminate]).
    destruct HB as [EB|[y0 _]].
    + rewrite EB, Rsum_nil. simpl compositions. destruct (Nat.eqb_spec (S G) 0); [lia|reflexivity].
    + set (h := fun ns => multinomial ns * monomial p B ns * f (word B ns) / INR (S G)).
      rewrite (Rsum_index B y0). pose proof (lt_0_INR (S G) ltac:(lia)) as GP.
      rewrite (Rsum_ext (seq 0 (length B)) _ (fun j => Rsum (compositions (length B) (S G)) (fun ns => INR (nth j ns 0%nat) * h ns))).
      * rewrite Rsum_swap. apply Rsum_ext. intros ns Hns. apply compositions_in in Hns. destruct Hns as [L1 L2].
        rewrite Rsum_scal_r, <- L1, sum_nth, L2. unfold h. field. lra.
      * intros j Hj. apply in_seq in Hj. rewrite <- compositions_bump by lia.
        rewrite IH by (intros; apply Hf; constructor; auto). rewrite <- Rsum_scal. apply Rsum_ext.
        intros ns Hns. apply compositions_in in Hns. destruct Hns as [L1 L2]. unfold h.
        rewrite (Hf _ _ (word_bump y0 B ns j L1 ltac:(lia))), (monomial_bump p y0 B ns j L1), (multinomial_bump ns j), L2 by lia.
        field. lra. Qed.

Variable eqY : forall a b : Y, {a = b} + {a <> b}.
Definition counts (B : list Y) (w : list Y) : list nat := map (count_occ eqY w) B.
Lemma count_repeat y z k : count_occ eqY (repeat y k) z = if eqY y z then k else 0%nat.
Proof. induction k as [|k IH]; simpl; [destruct (eqY y z); auto|]. rewrite IH. destruct (eqY y z); auto. Qed.
Lemma count_word_out B : forall ns z, ~ In z B -> count_occ eqY (word B ns) z = 0%nat.
Proof. induction B as [|y B IH]; intros [|k r] z H; simpl; auto. rewrite count_occ_app, count_repeat, IH by (intros X; apply H; right; auto).
  destruct (eqY y z) as [->|]; [exfalso; apply H; left; auto|auto]. Qed.
Lemma counts_word B : forall ns, NoDup B -> length ns = length B -> counts B (word B ns) = ns.
Proof. induction B as [|y B IH]; intros [|k r] ND L; simpl in L; try lia; [reflexivity|]. inversion ND as [|? ? N1 N2]; subst.
  unfold counts. cbn [word map]. f_equal.
  - rewrite count_occ_app, count_repeat, count_word_out by auto. destruct (eqY y y); [lia|congruence].
  - transitivity (counts B (word B r)); [|apply IH; auto]. unfold counts. apply map_ext_in. intros z Hz.
    rewrite count_occ_app, count_repeat. destruct (eqY y z) as [->|]; [contradiction|auto]. Qed.
Lemma compositions_nodup m : forall G, NoDup (compositions m G).
Proof. induction m as [|m IH]; intros G; [simpl; destruct (Nat.eqb G 0); repeat constructor; intros []|].
  change (compositions (S m) G) with (flat_map (fun k => map (cons k) (compositions m (G - k))) (seq 0 (S G))).
  generalize (seq_NoDup (S G) 0). generalize (seq 0 (S G)) as l. induction l as [|k l IHl]; intros ND; [constructor|]. simpl.
  inversion ND as [|? ? N1 N2]; subst. specialize (IHl N2). pose proof (IH (G - k)%nat) as H. revert H. generalize (compositions m (G - k)) as rs.
  induction rs as [|r rs IHr]; intros H; [exact IHl|]. simpl. inversion H as [|? ? M1 M2]; subst. constructor; [|auto].
  rewrite in_app_iff. intros [X|X].
  - apply in_map_iff in X. destruct X as [r' [E X]]. injection E as ->. contradiction.
  - apply in_flat_map in X. destruct X as [k' [Hk X]]. apply in_map_iff in X. destruct X as [r' [E _]]. injection E as -> _. contradiction. Qed.

(** The coefficient counts orderings: among the groups of size G over the support,
    exactly G! / prod (n_y!) have the count vector (n_y). *)
Theorem orderings_of_a_multiset (B : list Y) G ns : NoDup B -> length ns = length B -> total ns = G ->
  INR (length (filter (fun w => if list_eq_dec Nat.eq_dec (counts B w) ns then true else false) (tuples (repeat (B, fun _ => 1) G)))) = multinomial ns.
Proof. intros ND L S. set (f := fun w => if list_eq_dec Nat.eq_dec (counts B w) ns then 1 else 0).
  assert (P1 : forall fs w, (forall c, In c fs -> snd c = fun _ : Y => 1) -> In w (tuples fs) -> pmass fs w = 1).
  { induction fs as [|[C q] fs IH]; intros w Hc Hw; [destruct Hw as [<-|[]]; auto|]. simpl in Hw.
    apply in_flat_map in Hw. destruct Hw as [y [_ Hw]]. apply in_map_iff in Hw. destruct Hw as [w' [<- Hw]]. simpl.
    rewrite IH by (auto; intros; apply Hc; right; auto). pose proof (Hc (C, q) (or_introl eq_refl)) as E. simpl in E. rewrite E. ring. }
  transitivity (E (repeat (B, fun _ => 1) G) f).
  - unfold E. rewrite (Rsum_ext _ _ f).
    + unfold f. generalize (tuples (repeat (B, fun _ : Y => 1) G)) as l. induction l as [|w l IH]; [reflexivity|].
      rewrite Rsum_cons, <- IH. simpl filter. destruct (list_eq_dec Nat.eq_dec (counts B w) ns); [|lra].
      cbn [length]. rewrite S_INR. ring.
    + intros w Hw. rewrite P1; [ring| |exact Hw]. intros c Hc. apply repeat_spec in Hc. subst. reflexivity.
  - rewrite group_expectation_by_multisets.
    + assert (In ns (compositions (length B) G)) as Hin by (apply compositions_in; auto).
      assert (M1 : forall ms, monomial (fun _ : Y => 1) B ms = 1).
      { clear. induction B as [|y B IH]; intros [|k r]; simpl; auto. rewrite IH, pow1. ring. }
      rewrite (Rsum_ext _ _ (fun ms => if list_eq_dec Nat.eq_dec ms ns then multinomial ns else 0)).
      * pose proof (compositions_nodup (length B) G) as N. revert Hin N. generalize (compositions (length B) G) as l.
        induction l as [|ms l IH]; intros Hin N; [inversion Hin|]. inversion N as [|? ? N1 N2]; subst. rewrite Rsum_cons.
        destruct (list_eq_dec Nat.eq_dec ms ns) as [->|D].
        -- rewrite Rsum_0; [ring|]. intros a Ha. destruct (list_eq_dec Nat.eq_dec a ns) as [->|]; [contradiction|auto].
        -- destruct Hin as [E0|Hin]; [congruence|]. rewrite IH by auto. ring.
      * intros ms Hms. apply compositions_in in Hms. destruct Hms as [Lm _]. unfold f. rewrite counts_word, M1 by auto.
        destruct (list_eq_dec Nat.eq_dec ms ns) as [->|]; ring.
    + intros w w' Hp. unfold f. replace (counts B w') with (counts B w); auto. unfold counts. apply map_ext. intros y.
      apply (Permutation_count_occ eqY). exact Hp. Qed.
End Groups.
