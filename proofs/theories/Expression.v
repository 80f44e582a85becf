(** * Expression families

    Any positive differentiable weights, normalised, are a policy family; formulas of + * / exp ln and powers are such weights.

      piw, Dpiw         normalised weights and their gradients
      expr              formulas; val, grad  value and gradient
      dom e th          every divisor of e is non-zero, every argument of ln and every base of a power positive
      Uexpr             the domain of a table of weights and inequalities

    Python: exactgrpo.policies.expression.Expressions *)
From Coq Require Import Reals List Lra Lia Arith.
From Coquelicot Require Import Coquelicot.
From ExactGRPO Require Import FinSum Kink Objective Rd Poly OracleInst Family.
Import ListNotations.
Open Scope R_scope.

Section Weights.
Context {n : nat} {Q Y : Type}.
Variables (prompts : list Q) (B : Q -> list Y) (U : Rvec n -> Prop).
Variables (w : Q -> Y -> Rvec n -> R) (gw : Q -> Y -> Rvec n -> Rvec n).
Hypothesis U_open : open U.
Hypothesis B_ne : forall q, In q prompts -> B q <> [].
Hypothesis w_pos : forall q y th, U th -> In q prompts -> In y (B q) -> 0 < w q y th.
Hypothesis w_diff : forall q y th, U th -> In q prompts -> In y (B q) -> gradient_at (w q y) th (gw q y th).
Definition Zw q th := Rsum (B q) (fun y => w q y th).
Definition piw (th : Rvec n) (q : Q) (y : Y) : R := w q y th / Zw q th.
Definition Dpiw (th : Rvec n) (q : Q) (y : Y) : Rvec n :=
  scal (/ Zw q th : R_AbsRing) (plus (gw q y th) (scal (- piw th q y : R_AbsRing) (Vsum (B q) (fun c => gw q c th)))).
Lemma Zw_pos q th : U th -> In q prompts -> 0 < Zw q th.
Proof. intros Hth Hq. unfold Zw. pose proof (B_ne q Hq) as Hne. assert (P : forall y, In y (B q) -> 0 < w q y th) by auto.
  destruct (B q) as [|y l]; [congruence|]. rewrite Rsum_cons.
  assert (0 <= Rsum l (fun y => w q y th)) by (apply Rsum_nonneg; intros z Hz; left; apply P; right; auto).
  specialize (P y (or_introl eq_refl)). lra. Qed.
Theorem weights_family : policy_family prompts B U piw Dpiw.
Proof. split; auto.
  - intros th q y Hth Hq Hy. apply Rdiv_lt_0_compat; auto. apply Zw_pos; auto.
  - intros th q Hth Hq. unfold piw, Rdiv. rewrite Rsum_scal_r. apply Rinv_r. pose proof (Zw_pos q th Hth Hq). unfold Zw in *. lra.
  - intros th q y Hth Hq Hy. pose proof (Zw_pos q th Hth Hq) as ZP. unfold gradient_at.
    assert (EZ : has_diff (Zw q) th (fun h => Rsum (B q) (fun c => dot n (gw q c th) h))).
    { apply (has_diff_Rsum (B q) (fun c t => w q c t) (fun c h => dot n (gw q c th) h)). intros c Hc. apply w_diff; auto. }
    assert (EI : has_diff (fun t => / Zw q t) th (fun h => - / (Zw q th * Zw q th) * Rsum (B q) (fun c => dot n (gw q c th) h))).
    { apply (has_diff_comp Rinv (- / (Zw q th * Zw q th)) (Zw q) th); [exact EZ|]. auto_derive; [lra|]. field. lra. }
    eapply has_diff_ext; [| |apply (has_diff_mult _ _ th _ _ (w_diff q y th Hth Hq Hy) EI)]; [reflexivity|].
    intros h. unfold Dpiw, piw. rewrite dot_scal, dot_plus, dot_scal, dot_Vsum. field. lra. Qed.
End Weights.

(** Formulas. Powers: a natural exponent for any base, a real exponent for a positive one. *)
Inductive expr := EConst (c : R) | EVar (i : nat) | EAdd (a b : expr) | EMul (a b : expr) | EDiv (a b : expr)
  | EExp (a : expr) | ELn (a : expr) | EPow (a : expr) (m : nat) | EPower (a : expr) (c : R).
Section Formulas.
Variable n : nat.
Fixpoint val (e : expr) (x : Rvec n) : R :=
  match e with EConst c => c | EVar i => rcoord n i x | EAdd a b => val a x + val b x | EMul a b => val a x * val b x
  | EDiv a b => val a x * / val b x | EExp a => exp (val a x) | ELn a => ln (val a x) | EPow a m => val a x ^ m | EPower a c => Rpower (val a x) c end.
Fixpoint dom (e : expr) (x : Rvec n) : Prop :=
  match e with EConst _ | EVar _ => True | EAdd a b | EMul a b => dom a x /\ dom b x
  | EDiv a b => dom a x /\ dom b x /\ val b x <> 0 | EExp a | EPow a _ => dom a x | ELn a | EPower a _ => dom a x /\ 0 < val a x end.
Fixpoint grad (e : expr) (x : Rvec n) : Rvec n :=
  match e with EConst _ => zero | EVar i => rbasis n i | EAdd a b => plus (grad a x) (grad b x)
  | EMul a b => plus (scal (val a x : R_AbsRing) (grad b x)) (scal (val b x : R_AbsRing) (grad a x))
  | EDiv a b => plus (scal (val a x * - / (val b x * val b x) : R_AbsRing) (grad b x)) (scal (/ val b x : R_AbsRing) (grad a x))
  | EExp a => scal (exp (val a x) : R_AbsRing) (grad a x) | ELn a => scal (/ val a x : R_AbsRing) (grad a x)
  | EPow a m => scal (INR m * val a x ^ pred m : R_AbsRing) (grad a x)
  | EPower a c => scal (c * (Rpower (val a x) c * / val a x) : R_AbsRing) (grad a x) end.
Lemma chain (phi : R -> R) (d : R) a x : gradient_at (val a) x (grad a x) -> is_derive phi (val a x) d ->
  gradient_at (fun y => phi (val a y)) x (scal (d : R_AbsRing) (grad a x)).
Proof. intros Ha Hp. unfold gradient_at. eapply has_diff_ext; [| |apply (has_diff_comp phi d (val a) x _ Ha Hp)]; [reflexivity|].
  intros h. rewrite dot_scal. auto. Qed.
Theorem expr_gradient e x : dom e x -> gradient_at (val e) x (grad e x).
Proof. induction e as [c|i|a IHa b IHb|a IHa b IHb|a IHa b IHb|a IHa|a IHa|a IHa m|a IHa c]; simpl; intros H.
  - unfold gradient_at. eapply has_diff_ext; [| |apply (has_diff_const c)]; [reflexivity|]. intros h. rewrite dot_zero. auto.
  - exact (gR_correct n (PX i) x).
  - destruct H as [Ha Hb]. unfold gradient_at. eapply has_diff_ext; [| |apply (has_diff_plus _ _ x _ _ (IHa Ha) (IHb Hb))]; [reflexivity|].
    intros h. rewrite dot_plus. auto.
  - destruct H as [Ha Hb]. unfold gradient_at. eapply has_diff_ext; [| |apply (has_diff_mult _ _ x _ _ (IHa Ha) (IHb Hb))]; [reflexivity|].
    intros h. rewrite dot_plus, !dot_scal. ring.
  - destruct H as [Ha [Hb Hn]]. assert (Hi : gradient_at (fun y => / val b y) x (scal (- / (val b x * val b x) : R_AbsRing) (grad b x))).
    { apply (chain Rinv); auto. auto_derive; [auto|]. field. auto. }
    unfold gradient_at. eapply has_diff_ext; [| |apply (has_diff_mult _ _ x _ _ (IHa Ha) Hi)]; [reflexivity|].
    intros h. rewrite dot_plus, !dot_scal. ring.
  - apply (chain exp); auto. apply is_derive_exp.
  - destruct H as [Ha Hp]. apply (chain ln); auto. auto_derive; [auto|]. field. lra.
  - apply (chain (fun r => r ^ m)); auto. auto_derive; [auto|]. ring.
  - destruct H as [Ha Hp]. apply (chain (fun r => Rpower r c)); auto. unfold Rpower. auto_derive; [auto|]. field. lra. Qed.
Lemma val_locally e x (P : R -> Prop) : dom e x -> open P -> P (val e x) -> locally x (fun y => P (val e y)).
Proof. intros H HP Hx. apply (has_diff_cont (val e) x _ (expr_gradient e x H) P). apply HP. auto. Qed.
Lemma dom_open e : open (dom e).
Proof. assert (Pos : forall a, open (dom a) -> open (fun x => dom a x /\ 0 < val a x)).
  { intros a Ha x [H1 H2]. generalize (filter_and _ _ (Ha x H1) (val_locally a x (fun r => 0 < r) H1 (open_gt 0) H2)). apply filter_imp. auto. }
  induction e as [c|i|a IHa b IHb|a IHa b IHb|a IHa b IHb|a IHa|a IHa|a IHa m|a IHa c]; simpl; auto; try apply open_true; try (apply open_and; assumption).
  apply open_and; auto. intros x [Hb Hn]. generalize (filter_and _ _ (IHb x Hb) (val_locally b x (fun r => r <> 0) Hb (open_neq 0) Hn)). apply filter_imp. auto. Qed.

(** A table of weights, one row for each prompt, and further strict inequalities. *)
Variables (ws : list (list expr)) (cons : list expr).
Definition weight (q y : nat) : expr := nth y (nth q ws []) (EConst 0).
Definition prompts_expr : list nat := seq 0 (length ws).
Definition Bexpr (q : nat) : list nat := seq 0 (length (nth q ws [])).
Definition Uexpr (x : Rvec n) : Prop := forall e, In e (concat ws ++ cons) -> dom e x /\ 0 < val e x.
Lemma Uexpr_open : open Uexpr.
Proof. unfold Uexpr. induction (concat ws ++ cons) as [|e l IH].
  - intros x _. apply filter_forall. intros y e [].
  - intros x H. destruct (H e (or_introl eq_refl)) as [H1 H2].
    generalize (filter_and _ _ (filter_and _ _ (dom_open e x H1) (val_locally e x (fun r => 0 < r) H1 (open_gt 0) H2)) (IH x (fun f Hf => H f (or_intror Hf)))).
    apply filter_imp. intros y [[H3 H4] H5] f [<-|Hf]; auto. Qed.
Lemma weight_in q y : In q prompts_expr -> In y (Bexpr q) -> In (weight q y) (concat ws ++ cons).
Proof. unfold prompts_expr, Bexpr. rewrite !in_seq. intros Hq Hy. apply in_app_iff. left. apply in_concat. exists (nth q ws []). split; apply nth_In; lia. Qed.
Theorem expression_family : (forall q, In q prompts_expr -> Bexpr q <> []) ->
  policy_family prompts_expr Bexpr Uexpr (piw Bexpr (fun q y => val (weight q y))) (Dpiw Bexpr (fun q y => val (weight q y)) (fun q y => grad (weight q y))).
Proof. intros Hne. apply weights_family; auto.
  - apply Uexpr_open.
  - intros q y x Hx Hq Hy. apply (Hx _ (weight_in q y Hq Hy)).
  - intros q y x Hx Hq Hy. apply expr_gradient, (Hx _ (weight_in q y Hq Hy)). Qed.
End Formulas.
