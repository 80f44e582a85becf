(** * Token families

    Responses truncated at an end token or a maximum length; the product of conditionals is a law, its ratio a change of measure.

      responses next is_end m c  the truncated responses of at most m tokens after prefix c
      token_mass nt c w          product of the conditionals
      token_ratio                product of the token ratios
      token_laws next nt         every conditional is positive and sums to one

    Python: exactgrpo.policies.tokens.Tokens, exactgrpo.policies.protocol.GenerationProtocol
    Python: exactgrpo.update.ratio.sequence_ratio, exactgrpo.field.ratios.token_ratios *)
From Coq Require Import Reals List Lra Lia Arith Bool FinFun.
From Coquelicot Require Import Coquelicot.
From ExactGRPO Require Import FinSum KL Kink Objective Rd Poly Softmax RatFam Family Instances.
Import ListNotations.
Open Scope R_scope.

(** The truncated response set. *)
Section Responses.
Context {Tok : Type}.
Variables (next : list Tok -> list Tok) (is_end : Tok -> bool).
Fixpoint responses (m : nat) (c : list Tok) : list (list Tok) :=
  match m with
  | O => [[]]
  | S m' => flat_map (fun a => if is_end a then [[a]] else map (cons a) (responses m' (c ++ [a]))) (next c)
  end.

Lemma responses_cons m c a w : In (a :: w) (responses (S m) c) <->
  In a (next c) /\ (if is_end a then w = [] else In w (responses m (c ++ [a]))).
Proof. simpl. rewrite in_flat_map. split.
  - intros [b [Hb H]]. destruct (is_end b) eqn:Eb.
    + destruct H as [H|[]]. injection H as <- <-. rewrite Eb. auto.
    + apply in_map_iff in H. destruct H as [w' [E H]]. injection E as <- <-. rewrite Eb. auto.
  - intros [Ha H]. exists a. split; auto. destruct (is_end a); [subst; left; auto|apply in_map; auto]. Qed.
Lemma responses_nil m c : ~ In [] (responses (S m) c).
Proof. simpl. rewrite in_flat_map. intros [b [_ H]]. destruct (is_end b); [destruct H as [H|[]]; discriminate|].
  apply in_map_iff in H. destruct H as [w [E _]]. discriminate. Qed.

(** A response has at most the maximum length, an end token only in last place,
    and it stops either at an end token or at the maximum length. *)
Theorem responses_shape m : forall c w, In w (responses m c) ->
  (length w <= m)%nat
  /\ (forall u a v, w = u ++ a :: v -> v <> [] -> is_end a = false)
  /\ (length w = m \/ exists u a, w = u ++ [a] /\ is_end a = true).
Proof. induction m as [|m IH]; intros c w Hw.
  - destruct Hw as [<-|[]]. split; [simpl; lia|]. split; [|left; auto]. intros [|] a v E; discriminate.
  - destruct w as [|a w]; [exfalso; exact (responses_nil m c Hw)|]. apply responses_cons in Hw. destruct Hw as [Ha Hw].
    destruct (is_end a) eqn:Ea.
    + subst w. split; [simpl; lia|]. split; [|right; exists [], a; auto].
      intros [|b u] a' v E N; [injection E as <- <-; congruence|]. injection E as _ E. destruct u; discriminate.
    + destruct (IH _ _ Hw) as [L [N S]]. split; [simpl; lia|]. split.
      * intros [|b u] a' v E Hv; [injection E as <- <-; auto|]. injection E as -> E. exact (N u a' v E Hv).
      * destruct S as [S|[u [b [-> Hb]]]]; [left; simpl; lia|right]. exists (a :: u), b. auto. Qed.
(** No response is listed twice, so sums over the list are sums over the set. *)
Theorem responses_nodup m : (forall c, NoDup (next c)) -> forall c, NoDup (responses m c).
Proof. intros ND. induction m as [|m IH]; intros c; [repeat constructor; intros []|].
  simpl. specialize (ND c). revert ND. generalize (next c) as l. intros l ND. induction ND as [|a l Ha ND IHl]; [constructor|]. simpl.
  assert (D : forall w, In w (if is_end a then [[a]] else map (cons a) (responses m (c ++ [a]))) -> exists v, w = a :: v).
  { intros w H. destruct (is_end a); [destruct H as [<-|[]]; eauto|]. apply in_map_iff in H. destruct H as [v [<- _]]. eauto. }
  assert (Hd : NoDup (if is_end a then [[a]] else map (cons a) (responses m (c ++ [a])))).
  { destruct (is_end a); [repeat constructor; intros []|]. apply FinFun.Injective_map_NoDup; auto. intros x y E. injection E; auto. }
  revert D Hd. generalize (if is_end a then [[a]] else map (cons a) (responses m (c ++ [a]))). intros h D Hd.
  induction Hd as [|w h Hw Hd IHh]; [exact IHl|]. simpl. constructor.
  - rewrite in_app_iff. intros [H|H]; [auto|]. destruct (D w (or_introl eq_refl)) as [v ->].
    apply in_flat_map in H. destruct H as [b [Hb H]]. assert (b <> a) by (intros ->; auto).
    destruct (is_end b); [destruct H as [H|[]]; congruence|]. apply in_map_iff in H. destruct H as [v' [E _]]. congruence.
  - apply IHh. intros w' H. apply D. right; auto. Qed.
End Responses.

(** The mass of a response is the product of its conditionals. *)
Section Mass.
Context {Tok : Type}.
Variables (next : list Tok -> list Tok) (is_end : Tok -> bool).
Notation responses := (responses next is_end).
Fixpoint token_mass (nt : list Tok -> Tok -> R) (c w : list Tok) : R :=
  match w with [] => 1 | a :: w' => nt c a * token_mass nt (c ++ [a]) w' end.
(** next-token laws; prefixes that no response reaches may be given any law *)
Definition token_laws (nt : list Tok -> Tok -> R) : Prop :=
  (forall c a, In a (next c) -> 0 < nt c a) /\ (forall c, Rsum (next c) (nt c) = 1).

Lemma token_mass_pos nt m : token_laws nt -> forall c w, In w (responses m c) -> 0 < token_mass nt c w.
Proof. intros [H1 _]. induction m as [|m IH]; intros c w Hw; [destruct Hw as [<-|[]]; simpl; lra|].
  destruct w as [|a w]; [exfalso; eapply responses_nil; eauto|]. apply responses_cons in Hw. destruct Hw as [Ha Hw]. simpl.
  apply Rmult_lt_0_compat; auto. destruct (is_end a); [subst; simpl; lra|eauto]. Qed.
Lemma token_mass_sum nt m : token_laws nt -> forall c, Rsum (responses m c) (token_mass nt c) = 1.
Proof. intros [_ H2]. induction m as [|m IH]; intros c.
  - cbn [Tokens.responses]. rewrite Rsum_cons, Rsum_nil. cbn [token_mass]. ring.
  - rewrite <- (H2 c). cbn [Tokens.responses]. generalize (next c) as l. induction l as [|a l IHl]; [reflexivity|].
    cbn [flat_map]. rewrite Rsum_app, IHl, Rsum_cons. f_equal. destruct (is_end a).
    + rewrite Rsum_cons, Rsum_nil. cbn [token_mass]. ring.
    + rewrite Rsum_map. cbn [token_mass]. rewrite Rsum_scal.
      change (Rsum (responses m (c ++ [a])) (fun b => token_mass nt (c ++ [a]) b)) with (Rsum (responses m (c ++ [a])) (token_mass nt (c ++ [a]))).
      rewrite IH. ring. Qed.
(** The token product is a probability mass function, positive on the whole truncated set. *)
Theorem token_pmf nt m c : token_laws nt -> pmf (responses m c) (token_mass nt c) /\ pos_on (responses m c) (token_mass nt c).
Proof. intros H. assert (P : pos_on (responses m c) (token_mass nt c)) by (intros w Hw; eapply token_mass_pos; eauto).
  split; [|exact P]. split; [intros w Hw; left; auto|apply token_mass_sum; auto]. Qed.

(** The sequence-level ratio is the product of the token ratios... *)
Fixpoint token_ratio (nt nt0 : list Tok -> Tok -> R) (c w : list Tok) : R :=
  match w with [] => 1 | a :: w' => nt c a / nt0 c a * token_ratio nt nt0 (c ++ [a]) w' end.
Theorem token_ratio_eq nt nt0 m : token_laws nt0 -> forall c w, In w (responses m c) ->
  token_ratio nt nt0 c w = token_mass nt c w / token_mass nt0 c w.
Proof. intros H0. induction m as [|m IH]; intros c w Hw; [destruct Hw as [<-|[]]; simpl; field|].
  pose proof (token_mass_pos nt0 (S m) H0 c w Hw) as P.
  destruct w as [|a w]; [exfalso; eapply responses_nil; eauto|]. apply responses_cons in Hw. destruct Hw as [Ha Hw]. simpl in *.
  pose proof (proj1 H0 c a Ha) as Pa. destruct (is_end a); [subst; simpl in *; field; lra|].
  pose proof (token_mass_pos nt0 m H0 _ _ Hw). rewrite (IH _ _ Hw). field. lra. Qed.
(** ... and it is the exact change-of-measure factor between the two truncated laws. *)
Theorem token_change_of_measure nt nt0 m c f : token_laws nt0 ->
  Epmf (responses m c) (token_mass nt0 c) (fun w => token_ratio nt nt0 c w * f w) = Epmf (responses m c) (token_mass nt c) f.
Proof. intros H0. rewrite <- (change_of_measure _ (token_mass nt c) (token_mass nt0 c) f) by (apply token_pmf; auto).
  unfold Epmf. apply Rsum_ext. intros w Hw. rewrite (token_ratio_eq nt nt0 m H0 c w Hw). reflexivity. Qed.
(** The logarithm of a response's mass is the sum of the token log-probabilities. *)
Fixpoint token_logprob (nt : list Tok -> Tok -> R) (c w : list Tok) : R :=
  match w with [] => 0 | a :: w' => ln (nt c a) + token_logprob nt (c ++ [a]) w' end.
Theorem token_mass_ln nt m : token_laws nt -> forall c w, In w (responses m c) -> ln (token_mass nt c w) = token_logprob nt c w.
Proof. intros H. induction m as [|m IH]; intros c w Hw; [destruct Hw as [<-|[]]; simpl; apply ln_1|].
  destruct w as [|a w]; [exfalso; eapply responses_nil; eauto|]. apply responses_cons in Hw. destruct Hw as [Ha Hw]. simpl.
  pose proof (proj1 H c a Ha) as Pa. destruct (is_end a).
  - subst. simpl. rewrite Rmult_1_r. ring.
  - rewrite ln_mult; auto; [rewrite (IH _ _ Hw); reflexivity|eapply token_mass_pos; eauto]. Qed.
End Mass.

(** Differentiability of the product. *)
Section Gradient.
Context {n : nat} {Tok : Type}.
Variables (next : list Tok -> list Tok) (is_end : Tok -> bool).
Variables (nt : Rvec n -> list Tok -> Tok -> R) (Dnt : Rvec n -> list Tok -> Tok -> Rvec n).
Fixpoint Dtoken (th : Rvec n) (c w : list Tok) : Rvec n :=
  match w with
  | [] => zero
  | a :: w' => plus (scal (nt th c a : R_AbsRing) (Dtoken th (c ++ [a]) w')) (scal (token_mass (nt th) (c ++ [a]) w' : R_AbsRing) (Dnt th c a))
  end.
Theorem token_gradient th m : (forall c a, In a (next c) -> gradient_at (fun t => nt t c a) th (Dnt th c a)) ->
  forall c w, In w (responses next is_end m c) -> gradient_at (fun t => token_mass (nt t) c w) th (Dtoken th c w).
Proof. intros H.
  assert (Z : forall c, gradient_at (fun t => token_mass (nt t) c []) th (Dtoken th c [])).
  { intros c. unfold gradient_at. simpl. eapply has_diff_ext; [| |apply (has_diff_const 1)]; [reflexivity|]. intros h. cbv beta. rewrite dot_zero. auto. }
  induction m as [|m IH]; intros c w Hw; [destruct Hw as [<-|[]]; apply Z|].
  destruct w as [|a w]; [exfalso; eapply responses_nil; eauto|]. apply responses_cons in Hw. destruct Hw as [Ha Hw].
  assert (Gw : gradient_at (fun t => token_mass (nt t) (c ++ [a]) w) th (Dtoken th (c ++ [a]) w)).
  { destruct (is_end a); [subst; apply Z|apply IH; auto]. }
  unfold gradient_at in *. simpl.
  eapply has_diff_ext; [| |apply (has_diff_mult _ _ th _ _ (H c a Ha) Gw)]; [reflexivity|].
  intros h. cbv beta. rewrite dot_plus, !dot_scal. ring. Qed.
End Gradient.

(** Token families are policy families. *)
Section TokensInst.
Context {n : nat} {Q Tok : Type}.
Variables (prompts : list Q) (U : Rvec n -> Prop) (next : Q -> list Tok -> list Tok) (is_end : Tok -> bool) (L : nat).
Variables (nt : Rvec n -> Q -> list Tok -> Tok -> R) (Dnt : Rvec n -> Q -> list Tok -> Tok -> Rvec n).
Definition token_support (q : Q) : list (list Tok) := responses (next q) is_end L [].
Definition pitok (th : Rvec n) (q : Q) (w : list Tok) : R := token_mass (nt th q) [] w.
Definition Dpitok (th : Rvec n) (q : Q) (w : list Tok) : Rvec n := Dtoken (fun t => nt t q) (fun t => Dnt t q) th [] w.
Hypothesis U_open : open U.
Hypothesis nt_laws : forall th q, U th -> In q prompts -> token_laws (next q) (nt th q).
Hypothesis nt_diff : forall th q c a, U th -> In q prompts -> In a (next q c) -> gradient_at (fun t => nt t q c a) th (Dnt th q c a).
Theorem tokens_family : policy_family prompts token_support U pitok Dpitok.
Proof. split; auto.
  - intros th q w Hth Hq Hw. eapply token_mass_pos; eauto.
  - intros th q Hth Hq. apply token_mass_sum; auto.
  - intros th q w Hth Hq Hw. apply (token_gradient (next q) is_end (fun t => nt t q) (fun t => Dnt t q) th L); auto. Qed.
End TokensInst.

(** The two shipped kinds of conditionals. *)
Section SoftmaxTokens.
Context {n : nat} {Q Tok : Type}.
Variables (prompts : list Q) (U : Rvec n -> Prop) (next : Q -> list Tok -> list Tok) (is_end : Tok -> bool) (L : nat).
Variables (sc : Q -> list Tok -> Tok -> Rvec n -> R) (gsc : Q -> list Tok -> Tok -> Rvec n -> Rvec n).
Hypothesis U_open : open U.
Hypothesis next_ne : forall q c, next q c <> [].
Hypothesis sc_diff : forall q c a th, In a (next q c) -> gradient_at (sc q c a) th (gsc q c a th).
Definition sm_next (th : Rvec n) (q : Q) (c : list Tok) (a : Tok) : R := pism (next q) (sc q) th c a.
Definition Dsm_next (th : Rvec n) (q : Q) (c : list Tok) (a : Tok) : Rvec n := Dpism (next q) (sc q) (gsc q) th c a.
Theorem softmax_tokens_family :
  policy_family prompts (token_support next is_end L) U (pitok sm_next) (Dpitok sm_next Dsm_next).
Proof. apply tokens_family; auto.
  - intros th q _ _. split; intros c; [intros a Ha; apply softmax_pos; auto|apply softmax_sum; auto].
  - intros th q c a _ _ Ha. apply (pism_diff [c] (next q) (sc q) (gsc q)); simpl; auto. Qed.
End SoftmaxTokens.

Section RationalTokens.
Context {n : nat} {Q : Type}.
Variables (prompts : list Q) (ws : list (list pexp)) (cons : list pexp) (row : Q -> list nat -> nat) (is_end : nat -> bool) (L : nat).
(** the weights of a context are one row of the table *)
Hypothesis row_in : forall q c, In (row q c) (prompts_rat ws).
Hypothesis row_ne : forall q c, Brat ws (row q c) <> [].
Definition rat_support (q : Q) (c : list nat) : list nat := Brat ws (row q c).
Definition rat_next (th : Rvec n) (q : Q) (c : list nat) (a : nat) : R := pirat n ws th (row q c) a.
Definition Drat_next (th : Rvec n) (q : Q) (c : list nat) (a : nat) : Rvec n := Dpirat n ws th (row q c) a.
Theorem rational_tokens_family :
  policy_family prompts (token_support rat_support is_end L) (Urat n ws cons) (pitok rat_next) (Dpitok rat_next Drat_next).
Proof. apply tokens_family.
  - exact (Urat_open n ws cons).
  - intros th q Hth _. split; intros c; [intros a Ha; apply (pirat_pos n ws cons); auto|apply (pirat_sum n ws cons); auto].
  - intros th q c a Hth _ Ha. apply (pirat_diff n ws cons); auto. Qed.
End RationalTokens.
