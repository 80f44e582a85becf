(** * The Clarke set of the objective

    For continuously differentiable masses the Clarke set of F_t at any point of the domain: the gradient of all terms off
    their kinks and of the penalty, plus any fraction of the gradient of each term at a true kink.

      C1 f x L         f has the derivative L y at every y near x, and L is continuous at x along every direction
      pairs            prompts and drawn responses, with repeats
      bent p           the term of p is at its kink and its advantage is not zero
      rest_form v      the derivative along v of everything else
      own_form_of p v  the derivative along v of the unclipped term of p

    Python: exactgrpo.update.trace.Evidence *)
From Coq Require Import Reals List Lra Lia Bool.
From Coquelicot Require Import Coquelicot.
From ExactGRPO Require Import FinSum Advantages Clip KL Kink Objective OneSided Clarke.
Import ListNotations.
Open Scope R_scope.

Section C1.
Context {V : NormedModule R_AbsRing}.
Implicit Types (f g : V -> R) (x : V) (L : V -> V -> R).
Definition C1 f x L := locally x (fun y => has_diff f y (L y)) /\ forall v, continuous (fun y => L y v : R_NormedModule) x.
Lemma C1_const c x : C1 (fun _ => c) x (fun _ _ => 0).
Proof. split; [apply filter_forall; intros y; apply has_diff_const|]. intros v. apply (continuous_const (V := R_NormedModule)). Qed.
Lemma C1_plus f g x L M : C1 f x L -> C1 g x M -> C1 (fun y => f y + g y) x (fun y h => L y h + M y h).
Proof. intros [F1 F2] [G1 G2]. split.
  - generalize (filter_and _ _ F1 G1). apply filter_imp. intros y [H1 H2]. apply has_diff_plus; auto.
  - intros v. apply (continuous_plus (V := R_NormedModule) (fun y => L y v) (fun y => M y v)); auto. Qed.
Lemma C1_scal c f x L : C1 f x L -> C1 (fun y => c * f y) x (fun y h => c * L y h).
Proof. intros [F1 F2]. split.
  - generalize F1. apply filter_imp. intros y H. apply has_diff_scal; auto.
  - intros v. apply (continuous_scal_r (V := R_NormedModule) c (fun y => L y v)); auto. Qed.
Lemma C1_Rsum {I} (l : list I) (f : I -> V -> R) (L : I -> V -> V -> R) x : (forall i, In i l -> C1 (f i) x (L i)) ->
  C1 (fun y => Rsum l (fun i => f i y)) x (fun y h => Rsum l (fun i => L i y h)).
Proof. induction l as [|i l IH]; intros H; [exact (C1_const 0 x)|].
  apply (C1_plus (f i) (fun y => Rsum l (fun i => f i y)) x (L i) (fun y h => Rsum l (fun i => L i y h))); [apply H; left; auto|].
  apply IH. intros; apply H; right; auto. Qed.
Lemma C1_local f g x L : locally x (fun y => f y = g y) -> C1 f x L -> C1 g x L.
Proof. intros E [F1 F2]. split; auto. generalize (filter_and _ _ (locally_locally x _ E) F1). apply filter_imp. intros y [H1 H2].
  apply (has_diff_local f); auto. Qed.
Lemma C1_cont f x L : C1 f x L -> continuous (f : V -> R_NormedModule) x.
Proof. intros [F1 _]. apply (filterdiff_continuous (V := R_NormedModule)). exists (L x). exact (locally_singleton _ _ F1). Qed.
Lemma C1_comp (phi dphi : R -> R) f x L : C1 f x L -> locally (f x) (fun z => is_derive phi z (dphi z)) ->
  continuous (dphi : R_UniformSpace -> R_NormedModule) (f x) -> C1 (fun y => phi (f y)) x (fun y h => dphi (f y) * L y h).
Proof. intros H Hp Hc. pose proof (C1_cont f x L H) as Cf. destruct H as [F1 F2]. split.
  - generalize (filter_and _ _ F1 (Cf _ Hp)). apply filter_imp. intros y [H1 H2]. apply has_diff_comp; auto.
  - intros v. apply (continuous_mult (K := R_AbsRing) (fun y => dphi (f y)) (fun y => L y v)); auto.
    apply (continuous_comp (V := R_UniformSpace) (W := R_NormedModule) f dphi); auto. Qed.
(** a clipped term off its kink *)
Lemma C1_term e A rho x L : 0 <= e -> C1 rho x L -> (A = 0 \/ rho x <> kink e A) -> C1 (fun y => cterm e A (rho y)) x (fun y h => gate e A (rho x) * A * L y h).
Proof. intros He H Hk. pose proof (C1_cont rho x L H) as Cr.
  assert (Below : forall k, rho x < k -> locally x (fun y => rho y < k)) by (intros k Hx; exact (Cr _ (open_lt k _ Hx))).
  assert (Above : forall k, k < rho x -> locally x (fun y => k < rho y)) by (intros k Hx; exact (Cr _ (open_gt k _ Hx))).
  assert (Flat : forall c, locally x (fun y => c = cterm e A (rho y)) -> gate e A (rho x) = 0 -> C1 (fun y => cterm e A (rho y)) x (fun y h => gate e A (rho x) * A * L y h)).
  { intros c Hc G. rewrite G. destruct (C1_local (fun _ => c) (fun y => cterm e A (rho y)) x _ Hc (C1_const c x)) as [K1 K2]. split.
    - generalize K1. apply filter_imp. intros y Hy. eapply has_diff_ext; [| |exact Hy]; [reflexivity|]. intros h. cbv beta. ring.
    - intros v. apply (continuous_ext (fun _ => 0 : R_NormedModule)); [|apply (continuous_const (V := R_NormedModule))]. intros y. symmetry. change (0 * A * L y v = 0). ring. }
  assert (Open : locally x (fun y => A * rho y = cterm e A (rho y)) -> gate e A (rho x) = 1 -> C1 (fun y => cterm e A (rho y)) x (fun y h => gate e A (rho x) * A * L y h)).
  { intros Hc G. rewrite G, Rmult_1_l. apply (C1_local (fun y => A * rho y)); auto. apply C1_scal; auto. }
  unfold kink in Hk. unfold gate, gate2 in *. destruct (Rtotal_order A 0) as [N|[Z|P]].
  - destruct (Rle_dec 0 A); [lra|]. destruct (Rlt_dec 0 A); [lra|]. destruct (Rlt_dec A 0); [|lra]. destruct (Rlt_dec (1 - e) (rho x)) as [D|D].
    + apply Open; auto. generalize (Above _ D). apply filter_imp. intros y Hy. rewrite cterm_neg, Rmax_left by lra. auto.
    + apply (Flat (A * (1 - e))); auto. generalize (Below (1 - e) ltac:(destruct Hk; lra)). apply filter_imp. intros y Hy. rewrite cterm_neg, Rmax_right by lra. auto.
  - apply (Flat 0); [apply filter_forall; intros y; rewrite Z, cterm_zero; auto|]. destruct (Rlt_dec 0 A); [lra|]. destruct (Rlt_dec A 0); lra.
  - destruct (Rle_dec 0 A); [|lra]. destruct (Rlt_dec 0 A); [|lra]. destruct (Rlt_dec (rho x) (1 + e)) as [D|D].
    + apply Open; auto. generalize (Below _ D). apply filter_imp. intros y Hy. rewrite cterm_pos, Rmin_left by lra. auto.
    + apply (Flat (A * (1 + e))); auto. generalize (Above (1 + e) ltac:(destruct Hk; lra)). apply filter_imp. intros y Hy. rewrite cterm_pos, Rmin_right by lra. auto. Qed.
End C1.

Section Objective.
Context {V : NormedModule R_AbsRing} {Q Y : Type}.
Variables (prompts : list Q) (B : Q -> list Y) (pi : V -> Q -> Y -> R) (pref rew : Q -> Y -> R) (eps beta : R) (th0 : V) (Ys : Q -> list Y).
Variables (th : V) (Dpi : V -> Q -> Y -> V -> R).
Hypothesis eps_nonneg : 0 <= eps.
Hypothesis Ys_supp : forall q, In q prompts -> incl (Ys q) (B q).
Hypothesis pi_pos : forall q y, In q prompts -> In y (B q) -> 0 < pi th q y.
Hypothesis pref_pos : forall q y, In q prompts -> In y (B q) -> 0 < pref q y.
Hypothesis pi_C1 : forall q y, In q prompts -> In y (B q) -> C1 (fun t => pi t q y) th (fun t => Dpi t q y).
Notation M := (/ INR (length prompts)).
Definition pairs : list (Q * Y) := flat_map (fun q => map (fun y => (q, y)) (Ys q)) prompts.
Definition share (p : Q * Y) : R := M * / INR (length (Ys (fst p))).
Definition A_of (p : Q * Y) : R := Adv rew Ys (fst p) (snd p).
Definition rho_of (p : Q * Y) (t : V) : R := ratio pi th0 (fst p) (snd p) t.
Definition Drho_of (p : Q * Y) (v : V) : R := / pi th0 (fst p) (snd p) * Dpi th (fst p) (snd p) v.
Definition bent (p : Q * Y) : bool := if Req_EM_T (A_of p) 0 then false else if Req_EM_T (rho_of p th) (kink eps (A_of p)) then true else false.
Definition own_form_of (p : Q * Y) (v : V) : R := share p * (A_of p * Drho_of p v).
Definition rest_form (v : V) : R := Rsum (filter (fun p => negb (bent p)) pairs) (fun p => share p * (gate eps (A_of p) (rho_of p th) * A_of p * Drho_of p v))
  + - M * Rsum prompts (fun q => beta * Rsum (B q) (fun b => (ln (pi th q b / pref q b) + 1) * Dpi th q b v)).
Definition penalty_part (t : V) : R := - M * Rsum prompts (fun q => beta * KL (B q) (pi t q) (pref q)).
Definition rest_part (t : V) : R := Rsum (filter (fun p => negb (bent p)) pairs) (fun p => share p * cterm eps (A_of p) (rho_of p t)) + penalty_part t.
Lemma in_pairs p : In p pairs -> In (fst p) prompts /\ In (snd p) (Ys (fst p)).
Proof. unfold pairs. rewrite in_flat_map. intros [q [H1 H2]]. apply in_map_iff in H2. destruct H2 as [y [<- H2]]. auto. Qed.
Lemma Rsum_split {I} (b : I -> bool) (l : list I) f : Rsum l f = Rsum (filter b l) f + Rsum (filter (fun i => negb (b i)) l) f.
Proof. induction l as [|i l IH]; [simpl; unfold Rsum; simpl; ring|]. rewrite Rsum_cons, IH. cbn [filter]. destruct (b i); cbn [negb]; rewrite Rsum_cons; ring. Qed.
Lemma F_split t : F prompts B pi pref rew eps beta th0 Ys t
  = Rsum (filter bent pairs) (fun p => share p * cterm2 eps eps (A_of p) (rho_of p t)) + rest_part t.
Proof. unfold rest_part. rewrite <- Rplus_assoc.
  rewrite (Rsum_ext (filter bent pairs) _ (fun p => share p * cterm eps (A_of p) (rho_of p t))) by (intros; rewrite cterm2_same; auto).
  rewrite <- (Rsum_split bent pairs (fun p => share p * cterm eps (A_of p) (rho_of p t))).
  unfold F, penalty_part, pairs, share, A_of, rho_of. clear. generalize M as m. intros m. induction prompts as [|q l IH].
  - simpl flat_map. rewrite !Rsum_nil. ring.
  - simpl flat_map. rewrite Rsum_app, !Rsum_cons, Rmult_plus_distr_l, IH, Rsum_map. simpl fst. simpl snd.
    rewrite (Rsum_scal (Ys q) (fun b => cterm eps (Adv rew Ys q b) (ratio pi th0 q b t)) (m * / INR (length (Ys q)))). unfold cterm; ring. Qed.
Lemma rho_C1 p : In p pairs -> C1 (rho_of p) th (fun t v => / pi th0 (fst p) (snd p) * Dpi t (fst p) (snd p) v).
Proof. intros H. destruct (in_pairs p H) as [H1 H2].
  apply (C1_local (fun t => / pi th0 (fst p) (snd p) * pi t (fst p) (snd p))); [apply filter_forall; intros t; unfold rho_of, ratio; apply Rmult_comm|].
  apply C1_scal. apply pi_C1; auto. apply Ys_supp; auto. Qed.
Lemma not_bent p : negb (bent p) = true -> A_of p = 0 \/ rho_of p th <> kink eps (A_of p).
Proof. unfold bent. destruct (Req_EM_T (A_of p) 0); auto. destruct (Req_EM_T (rho_of p th) (kink eps (A_of p))); [discriminate|auto]. Qed.
Lemma rest_strict : strict rest_part th rest_form.
Proof.
  assert (H : C1 rest_part th (fun t v => Rsum (filter (fun p => negb (bent p)) pairs)
      (fun p => share p * (gate eps (A_of p) (rho_of p th) * A_of p * (/ pi th0 (fst p) (snd p) * Dpi t (fst p) (snd p) v)))
    + - M * Rsum prompts (fun q => beta * Rsum (B q) (fun b => (ln (pi t q b / pref q b) + 1) * Dpi t q b v)))).
  { apply C1_plus.
    - apply (C1_Rsum _ (fun p t => share p * cterm eps (A_of p) (rho_of p t))
        (fun p t v => share p * (gate eps (A_of p) (rho_of p th) * A_of p * (/ pi th0 (fst p) (snd p) * Dpi t (fst p) (snd p) v)))).
      intros p Hp. apply filter_In in Hp. destruct Hp as [Hp Hb]. apply C1_scal.
      apply (C1_term eps (A_of p) (rho_of p) th (fun t v => / pi th0 (fst p) (snd p) * Dpi t (fst p) (snd p) v)); auto; [apply rho_C1; auto|apply not_bent; auto].
    - unfold penalty_part. apply C1_scal.
      apply (C1_Rsum prompts (fun q t => beta * KL (B q) (pi t q) (pref q)) (fun q t v => beta * Rsum (B q) (fun b => (ln (pi t q b / pref q b) + 1) * Dpi t q b v))).
      intros q Hq. apply C1_scal.
      apply (C1_Rsum (B q) (fun b t => pi t q b * ln (pi t q b / pref q b)) (fun b t v => (ln (pi t q b / pref q b) + 1) * Dpi t q b v)).
      intros b Hb. pose proof (pref_pos q b Hq Hb) as R0. pose proof (pi_pos q b Hq Hb) as P0.
      apply (C1_comp (fun z => z * ln (z / pref q b)) (fun z => ln (z / pref q b) + 1) (fun t => pi t q b) th (fun t => Dpi t q b)); [apply pi_C1; auto| |].
      + generalize (open_gt 0 _ P0). apply filter_imp. intros z Hz. auto_derive; [apply Rdiv_lt_0_compat; auto|]. unfold Rdiv. field. lra.
      + apply (ex_derive_continuous (V := R_NormedModule) (fun z => ln (z / pref q b) + 1)). auto_derive. apply Rdiv_lt_0_compat; auto. }
  destruct H as [H1 H2]. exact (strict_of_C1 rest_part th _ H1 H2). Qed.
(** The Clarke set of F_t. *)
Theorem objective_clarke_set l : clarke (F prompts B pi pref rew eps beta th0 Ys) th l <->
  linear_form l /\ exists ts, fractions (filter bent pairs) ts /\ forall v, l v = mixed (filter bent pairs) ts own_form_of v + rest_form v.
Proof.
  pose proof (clarke_set (filter bent pairs) rest_part share A_of rho_of Drho_of rest_form eps eps th eps_nonneg eps_nonneg) as H.
  assert (E : clarke (F prompts B pi pref rew eps beta th0 Ys) th l <-> clarke (kinked (filter bent pairs) rest_part share A_of rho_of eps eps) th l).
  { assert (EF : forall t, F prompts B pi pref rew eps beta th0 Ys t = kinked (filter bent pairs) rest_part share A_of rho_of eps eps t) by (intros; apply F_split).
    unfold clarke, clarke_dir, above, attained, quotients. split; intros [K1 K2]; split; auto; intros v d [J1 J2]; apply K2; split; intros e.
    - intros He. destruct (J1 e He) as [a [Ha Fa]]. exists a. split; auto. intros y s Hy Hs. rewrite !EF. auto.
    - intros dl He Hd. destruct (J2 e dl He Hd) as [y [s [Hy [Hs Fa]]]]. exists y, s. rewrite !EF. auto.
    - intros He. destruct (J1 e He) as [a [Ha Fa]]. exists a. split; auto. intros y s Hy Hs. rewrite <- !EF. auto.
    - intros dl He Hd. destruct (J2 e dl He Hd) as [y [s [Hy [Hs Fa]]]]. exists y, s. rewrite <- !EF. auto. }
  rewrite E. apply H.
  - intros p Hp. apply filter_In in Hp. destruct Hp as [Hp _]. destruct (in_pairs p Hp) as [H1 H2]. unfold share. apply Rmult_le_pos; left; apply Rinv_0_lt_compat.
    + apply INR_length_pos. intros Z. rewrite Z in H1. inversion H1.
    + apply INR_length_pos. intros Z. rewrite Z in H2. inversion H2.
  - apply rest_strict.
  - intros p Hp. apply filter_In in Hp. destruct (rho_C1 p (proj1 Hp)) as [C D]. exact (strict_of_C1 (rho_of p) th _ C D).
  - intros p Hp. apply filter_In in Hp. destruct Hp as [_ Hb]. unfold bent in Hb. destruct (Req_EM_T (A_of p) 0); [discriminate|].
    destruct (Req_EM_T (rho_of p th) (kink eps (A_of p))) as [Z|]; [exact Z|discriminate]. Qed.
End Objective.
