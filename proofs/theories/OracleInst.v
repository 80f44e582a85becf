(** * A gradient oracle that exists

    An exact objective-gradient oracle, constructed without choice for every positive differentiable family.

      gvec d th    the gradient vector of F_t
      oracle_inst  Some gvec where F_t is differentiable, else None

    Python: exactgrpo.update.oracle.evaluate, exactgrpo.update.run.FamilyOracle *)
From Coq Require Import Reals List Lra Lia Arith Bool.
From Coquelicot Require Import Coquelicot.
From ExactGRPO Require Import FinSum Advantages Clip KL Kink Objective Rd Procedure Grpo Softmax Poly.
Import ListNotations.
Open Scope R_scope.

Section Vsum.
Context {n : nat}.
Fixpoint Vsum {A} (l : list A) (f : A -> Rvec n) : Rvec n :=
  match l with [] => zero | a :: l' => plus (f a) (Vsum l' f) end.
Lemma dot_Vsum {A} (l : list A) f h : dot n (Vsum l f) h = Rsum l (fun a => dot n (f a) h).
Proof. induction l as [|a l IH]; simpl Vsum; [apply dot_zero|]. rewrite dot_plus, IH, Rsum_cons. auto. Qed.
End Vsum.

Fixpoint rvec_eq0 n : forall a : Rvec n, {forall h, dot n a h = 0} + {~ forall h, dot n a h = 0}.
Proof. destruct n as [|n].
  - intros a. destruct (Req_EM_T a 0) as [E|E].
    + left. intros h. simpl in *. rewrite E. ring.
    + right. intros H. apply E. specialize (H (1 : R)). simpl in H. lra.
  - intros [a v]. destruct (Req_EM_T a 0) as [E|E].
    + destruct (rvec_eq0 n v) as [F|F].
      * left. intros [h w]. simpl. rewrite F. simpl in E. rewrite E. ring.
      * right. intros H. apply F. intros w. specialize (H ((0:R), w)). simpl in H. rewrite <- H. ring.
    + right. intros H. apply E. specialize (H ((1:R), zero)).
      assert (Z : dot n v zero = 0) by (apply (linear_zero (dot n v : Rvec n -> R_NormedModule)); apply linear_dot).
      change (a * 1 + dot n v zero = 0) in H. rewrite Z in H. lra.
Defined.

Lemma forall_dec {A} (l : list A) (P : A -> Prop) : (forall a, In a l -> {P a} + {~ P a}) ->
  {forall a, In a l -> P a} + {~ forall a, In a l -> P a}.
Proof. induction l as [|a l IH]; intros D.
  - left. intros a [].
  - destruct (D a (or_introl eq_refl)) as [E|E].
    + destruct IH as [F|F]; [intros; apply D; right; auto| |].
      * left. intros b [<-|Hb]; auto.
      * right. intros H. apply F. intros b Hb. apply H; right; auto.
    + right. intros H. apply E, H. left; auto. Defined.

Section Oracle.
Context {n : nat} {Q Y : Type}.
Variables (prompts : list Q) (B : Q -> list Y) (U : Rvec n -> Prop) (pi : Rvec n -> Q -> Y -> R).
Variables (pref rew : Q -> Y -> R) (eps beta : R).
Variable Dpi : Rvec n -> Q -> Y -> Rvec n.
Hypothesis eps_pos : 0 < eps.
Hypothesis prompts_ne : prompts <> [].
Hypothesis pi_pos : forall th q y, U th -> In q prompts -> In y (B q) -> 0 < pi th q y.
Hypothesis pref_pos : forall q y, In q prompts -> In y (B q) -> 0 < pref q y.
Hypothesis pi_diff : forall th q y, U th -> In q prompts -> In y (B q) -> gradient_at (fun t => pi t q y) th (Dpi th q y).
Notation Data := (Rvec n * (Q -> list Y))%type.
Notation data_ok := (data_ok prompts B U).
Definition smooth_at (d : Data) th := smooth_cond prompts pi rew eps (fst d) (snd d) th (fun q y h => dot n (Dpi th q y) h).
Definition smooth_dec (d : Data) th : {smooth_at d th} + {~ smooth_at d th}.
Proof. unfold smooth_at, smooth_cond.
  assert (D : forall q y, {Adv rew (snd d) q y <> 0 -> ratio pi (fst d) q y th = kink eps (Adv rew (snd d) q y) -> forall h, dot n (Dpi th q y) h = 0}
            + {~ (Adv rew (snd d) q y <> 0 -> ratio pi (fst d) q y th = kink eps (Adv rew (snd d) q y) -> forall h, dot n (Dpi th q y) h = 0)}).
  { intros q y. destruct (Req_EM_T (Adv rew (snd d) q y) 0) as [E|E]; [left; intros; contradiction|].
    destruct (Req_EM_T (ratio pi (fst d) q y th) (kink eps (Adv rew (snd d) q y))) as [F|F]; [|left; intros; contradiction].
    destruct (rvec_eq0 n (Dpi th q y)) as [G|G]; [left; auto|right; auto]. }
  destruct (forall_dec prompts (fun q => forall y, In y (snd d q) -> Adv rew (snd d) q y <> 0 ->
     ratio pi (fst d) q y th = kink eps (Adv rew (snd d) q y) -> forall h, dot n (Dpi th q y) h = 0)) as [E|E].
  - intros q _. apply forall_dec. intros y _. apply D.
  - left. intros q y Hq Hy. apply E; auto.
  - right. intros H. apply E. intros q Hq y Hy. apply H; auto. Defined.
(** explicit gradient vector *)
Definition gvec (d : Data) (th : Rvec n) : Rvec n :=
  scal (/ INR (length prompts) : R_AbsRing) (Vsum prompts (fun q =>
    plus (scal (/ INR (length (snd d q)) : R_AbsRing) (Vsum (snd d q) (fun y =>
       scal ((gate eps (Adv rew (snd d) q y) (ratio pi (fst d) q y th) * Adv rew (snd d) q y * / pi (fst d) q y)%R : R_AbsRing) (Dpi th q y))))
     (scal (- beta : R_AbsRing) (Vsum (B q) (fun b => scal ((ln (pi th q b / pref q b) + 1)%R : R_AbsRing) (Dpi th q b)))))).
Definition oracle_inst (d : Data) (th : Rvec n) : option (Rvec n) := if smooth_dec d th then Some (gvec d th) else None.
Lemma gvec_dot d th h : gradF prompts B pi pref rew eps beta (fst d) (snd d) th (fun q y h => dot n (Dpi th q y) h) h = dot n (gvec d th) h.
Proof. unfold gradF, gvec. rewrite dot_scal, dot_Vsum. f_equal. apply Rsum_ext. intros q _.
  rewrite dot_plus, !dot_scal, !dot_Vsum. unfold Rminus. f_equal.
  - f_equal. apply Rsum_ext. intros y _. rewrite dot_scal. ring.
  - unfold dKL. rewrite Ropp_mult_distr_l. f_equal. apply Rsum_ext. intros b _. rewrite dot_scal. ring. Qed.
Theorem smooth_gradient d th : data_ok d -> U th -> smooth_at d th ->
  gradient_at (F prompts B pi pref rew eps beta (fst d) (snd d)) th (gvec d th).
Proof. intros [H1 H2] Hth Hs. unfold gradient_at.
  apply (has_diff_ext (F prompts B pi pref rew eps beta (fst d) (snd d)) _ th
    (gradF prompts B pi pref rew eps beta (fst d) (snd d) th (fun q y h => dot n (Dpi th q y) h))); [reflexivity|apply gvec_dot|].
  apply F_gradient; auto.
  - intros q Hq. apply H2; auto.
  - intros q y Hq Hy. apply pi_diff; auto. Qed.
Theorem smooth_iff d th : data_ok d -> U th -> (smooth_at d th <-> diff_at (F prompts B pi pref rew eps beta (fst d) (snd d)) th).
Proof. intros [H1 H2] Hth. symmetry. apply F_diff_iff; auto.
  - intros q Hq; apply H2; auto.
  - intros q Hq; apply H2; auto.
  - intros q y Hq Hy. apply pi_diff; auto. Qed.
Theorem oracle_inst_exact d th g : data_ok d -> U th ->
  (oracle_inst d th = Some g <-> gradient_at (F prompts B pi pref rew eps beta (fst d) (snd d)) th g).
Proof. intros Hd Hth. unfold oracle_inst. destruct (smooth_dec d th) as [S|S].
  - pose proof (smooth_gradient d th Hd Hth S) as Gd. split.
    + intros E. injection E as <-. auto.
    + intros H. f_equal. eapply gradient_unique; eauto.
  - split; [discriminate|]. intros H. exfalso. apply S, smooth_iff; auto. exists (dot n g). exact H. Qed.
End Oracle.
