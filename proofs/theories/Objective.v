(** * The empirical objective and its gradient

    F_t over any real normed module of parameters; when it is differentiable; its gradient, and that it is the only one.

      Adv rew Ys q y       advantage of y in the drawn group of prompt q
      ratio pi th0 q y th  pi th q y / pi th0 q y
      F                    the objective F_t
      gate e A r           1 on the unclipped side, else 0
      smooth_cond          no term at a true kink with non-zero ratio derivative
      gradF                the derivative of F_t as a linear form

    Python: exactgrpo.update.oracle.evaluate, exactgrpo.update.objective.cotangent, exactgrpo.update.objective.freeze
    Python: exactgrpo.update.point.evaluate_at *)
From Coq Require Import Reals List Lra Lia.
From Coquelicot Require Import Coquelicot.
From ExactGRPO Require Import FinSum Advantages Clip KL Kink.
Import ListNotations.
Open Scope R_scope.

Section HasDiff.
Context {V : NormedModule R_AbsRing}.
Implicit Types (f g : V -> R) (x : V).
Lemma has_diff_ext f g x l l' : (forall y, f y = g y) -> (forall h, l h = l' h) -> has_diff f x l -> has_diff g x l'.
Proof. intros E1 E2 H. apply (filterdiff_ext_lin (g : V -> R_NormedModule) l); auto.
  apply (filterdiff_ext (f : V -> R_NormedModule)); auto. Qed.
Lemma has_diff_plus f g x l m : has_diff f x l -> has_diff g x m -> has_diff (fun y => f y + g y) x (fun h => l h + m h).
Proof. intros. apply (filterdiff_plus_fct (f : V -> R_NormedModule) g l m); auto. Qed.
Lemma has_diff_scal c f x l : has_diff f x l -> has_diff (fun y => c * f y) x (fun h => c * l h).
Proof. intros. apply (filterdiff_scal_r_fct (V := R_NormedModule) c f l); auto. exact Rmult_comm. Qed.
Lemma has_diff_const c x : has_diff (fun _ => c) x (fun _ => 0).
Proof. apply (filterdiff_const (V := R_NormedModule) c). Qed.
Lemma has_diff_Rsum {I} (l : list I) (F : I -> V -> R) (D : I -> V -> R) x :
  (forall i, In i l -> has_diff (F i) x (D i)) ->
  has_diff (fun y => Rsum l (fun i => F i y)) x (fun h => Rsum l (fun i => D i h)).
Proof. induction l as [|i l IH]; intros H.
  - apply (has_diff_const 0).
  - apply (has_diff_plus (F i) (fun y => Rsum l (fun i => F i y)) x (D i) (fun h => Rsum l (fun i => D i h))).
    + apply H; left; auto.
    + apply IH. intros; apply H; right; auto. Qed.
Lemma has_diff_local f g x l : locally x (fun y => f y = g y) -> has_diff f x l -> has_diff g x l.
Proof. intros. apply (filterdiff_ext_locally (f : V -> R_NormedModule)); auto. Qed.
Lemma has_diff_cont f x l : has_diff f x l -> forall P : R -> Prop, locally (f x) P -> locally x (fun y => P (f y)).
Proof. intros H P HP.
  assert (C : continuous (f : V -> R_UniformSpace) x).
  { apply (filterdiff_continuous (V := R_NormedModule)). exists l; auto. }
  exact (C P HP). Qed.
(** the derivative is unique *)
Lemma has_diff_unique f x l m : has_diff f x l -> has_diff f x m -> forall h, l h = m h.
Proof. intros Hl Hm h.
  assert (H : has_diff (fun y => f y + -1 * f y) x (fun h => l h + -1 * m h)) by (apply has_diff_plus; auto; apply has_diff_scal; auto).
  assert (Z : l h + -1 * m h = 0); [|lra].
  apply (diff_min0 _ x _ H). apply filter_forall. intros; lra. Qed.
Lemma has_diff_comp (phi : R -> R) (d : R) f x l : has_diff f x l -> is_derive phi (f x) d ->
  has_diff (fun y => phi (f y)) x (fun h => d * l h).
Proof. intros Hf Hp.
  apply (has_diff_ext (fun y => phi (f y)) _ x (fun h => scal (l h) d)); auto.
  - intros h. unfold scal; simpl. unfold mult; simpl. ring.
  - apply (filterdiff_comp' (f : V -> R_NormedModule) (phi : R_NormedModule -> R_NormedModule) x l (fun z : R_NormedModule => scal (z : R) (d : R_NormedModule))); auto. Qed.

(** one clipped term, bounds 1 - el and 1 + eh: its derivative where it is not at a bent kink *)
Definition gate2 (el eh A r : R) : R :=
  if Rlt_dec 0 A then (if Rlt_dec r (1 + eh) then 1 else 0)
  else if Rlt_dec A 0 then (if Rlt_dec (1 - el) r then 1 else 0) else 0.
Lemma has_diff_cterm2 el eh A rho L x : 0 <= el -> 0 <= eh -> has_diff rho x L ->
  (A <> 0 -> rho x = kink2 el eh A -> forall h, L h = 0) ->
  has_diff (fun y => cterm2 el eh A (rho y)) x (fun h => gate2 el eh A (rho x) * A * L h).
Proof. intros Hel Heh HL Hk. unfold gate2. destruct (Rlt_dec 0 A) as [P|P]; [|destruct (Rlt_dec A 0) as [N|N]].
  - assert (K : kink2 el eh A = 1 + eh) by (unfold kink2; destruct (Rle_dec 0 A); lra). rewrite K in Hk.
    destruct (Rlt_dec (rho x) (1 + eh)) as [Q|Q].
    + apply (has_diff_local (fun y => A * rho y)).
      * generalize (has_diff_cont rho x L HL _ (open_lt (1 + eh) _ Q)). apply filter_imp. intros y Hy.
        rewrite cterm2_pos, Rmin_left by lra. auto.
      * eapply has_diff_ext; [| |apply (has_diff_scal A); exact HL]; intros; cbv beta; ring.
    + destruct (Req_dec (rho x) (1 + eh)) as [E|E].
      * eapply (has_diff_ext (fun y => A / 2 * (rho y + (1 + eh)) + - (Rabs A / 2) * Rabs (rho y + - (1 + eh)))).
        3: { apply has_diff_plus; apply has_diff_scal.
             - apply has_diff_plus; [exact HL|apply has_diff_const].
             - apply (diff_abs_flat (fun y => rho y + -(1 + eh)) x (fun h => L h + 0)).
               + apply has_diff_plus; [exact HL|apply has_diff_const].
               + lra.
               + intros h. rewrite (Hk ltac:(lra) E). ring. }
        -- intros y. rewrite cterm2_abs, K by auto. change (rho y + - (1 + eh)) with (rho y - (1 + eh)). field.
        -- intros h. cbv beta. rewrite (Hk ltac:(lra) E). ring.
      * apply (has_diff_local (fun _ => A * (1 + eh))).
        -- assert (Q' : 1 + eh < rho x) by lra.
           generalize (has_diff_cont rho x L HL _ (open_gt (1 + eh) _ Q')). apply filter_imp. intros y Hy.
           rewrite cterm2_pos, Rmin_right by lra. auto.
        -- eapply has_diff_ext; [| |apply (has_diff_const (A * (1 + eh)))]; intros; cbv beta; ring.
  - assert (K : kink2 el eh A = 1 - el) by (unfold kink2; destruct (Rle_dec 0 A); lra). rewrite K in Hk.
    destruct (Rlt_dec (1 - el) (rho x)) as [Q|Q].
    + apply (has_diff_local (fun y => A * rho y)).
      * generalize (has_diff_cont rho x L HL _ (open_gt (1 - el) _ Q)). apply filter_imp. intros y Hy.
        rewrite cterm2_neg, Rmax_left by lra. auto.
      * eapply has_diff_ext; [| |apply (has_diff_scal A); exact HL]; intros; cbv beta; ring.
    + destruct (Req_dec (rho x) (1 - el)) as [E|E].
      * eapply (has_diff_ext (fun y => A / 2 * (rho y + (1 - el)) + - (Rabs A / 2) * Rabs (rho y + - (1 - el)))).
        3: { apply has_diff_plus; apply has_diff_scal.
             - apply has_diff_plus; [exact HL|apply has_diff_const].
             - apply (diff_abs_flat (fun y => rho y + -(1 - el)) x (fun h => L h + 0)).
               + apply has_diff_plus; [exact HL|apply has_diff_const].
               + lra.
               + intros h. rewrite (Hk ltac:(lra) E). ring. }
        -- intros y. rewrite cterm2_abs, K by auto. change (rho y + - (1 - el)) with (rho y - (1 - el)). field.
        -- intros h. cbv beta. rewrite (Hk ltac:(lra) E). ring.
      * apply (has_diff_local (fun _ => A * (1 - el))).
        -- assert (Q' : rho x < 1 - el) by lra.
           generalize (has_diff_cont rho x L HL _ (open_lt (1 - el) _ Q')). apply filter_imp. intros y Hy.
           rewrite cterm2_neg, Rmax_right by lra. auto.
        -- eapply has_diff_ext; [| |apply (has_diff_const (A * (1 - el)))]; intros; cbv beta; ring.
  - assert (Z : A = 0) by lra. eapply has_diff_ext; [| |apply (has_diff_const 0)]; intros; cbv beta; [rewrite Z, cterm2_zero; auto|ring].
Qed.
Definition gate (e A r : R) : R := gate2 e e A r.
Lemma has_diff_cterm e A rho L x : 0 <= e -> has_diff rho x L ->
  (A <> 0 -> rho x = kink e A -> forall h, L h = 0) ->
  has_diff (fun y => cterm e A (rho y)) x (fun h => gate e A (rho x) * A * L h).
Proof. intros He. exact (has_diff_cterm2 e e A rho L x He He). Qed.
(** Smooth ties: on the clip's edge, but not where the term bends: the derivative is the unclipped one. *)
Theorem smooth_tie el eh A rho L x : 0 < el -> 0 < eh -> has_diff rho x L ->
  (0 < A /\ rho x = 1 - el) \/ (A < 0 /\ rho x = 1 + eh) ->
  has_diff (fun y => cterm2 el eh A (rho y)) x (fun h => A * L h).
Proof. intros Hl Hh HL HT.
  assert (G : gate2 el eh A (rho x) = 1).
  { unfold gate2. destruct HT as [[HA E]|[HA E]]; rewrite E.
    - destruct (Rlt_dec 0 A); [|lra]. destruct (Rlt_dec (1 - el) (1 + eh)); lra.
    - destruct (Rlt_dec 0 A); [lra|]. destruct (Rlt_dec A 0); [|lra]. destruct (Rlt_dec (1 - el) (1 + eh)); lra. }
  eapply has_diff_ext; [| |apply (has_diff_cterm2 el eh A rho L x); try lra; auto].
  - reflexivity.
  - intros h. cbv beta. rewrite G. ring.
  - intros _ HK. exfalso. unfold kink2 in HK. destruct (Rle_dec 0 A), HT as [[HA E]|[HA E]]; lra. Qed.
(** The gradient of any weighting of clipped terms plus a smooth part. *)
Theorem clipped2_gradient {I} (l : list I) (smooth : V -> R) (D : V -> R) (c A : I -> R) (rho : I -> V -> R) (L : I -> V -> R) el eh x :
  0 <= el -> 0 <= eh -> has_diff smooth x D -> (forall i, In i l -> has_diff (rho i) x (L i)) ->
  (forall i, In i l -> A i <> 0 -> rho i x = kink2 el eh (A i) -> forall h, L i h = 0) ->
  has_diff (fun y => Rsum l (fun i => c i * cterm2 el eh (A i) (rho i y)) + smooth y) x
    (fun h => Rsum l (fun i => c i * (gate2 el eh (A i) (rho i x) * A i * L i h)) + D h).
Proof. intros Hl Hh HD HL HK. apply has_diff_plus; auto.
  apply (has_diff_Rsum l (fun i y => c i * cterm2 el eh (A i) (rho i y)) (fun i h => c i * (gate2 el eh (A i) (rho i x) * A i * L i h))).
  intros i Hi. apply has_diff_scal. apply has_diff_cterm2; auto. Qed.
End HasDiff.

Section Objective.
Context {V : NormedModule R_AbsRing} {Q Y : Type}.
Variables (prompts : list Q) (B : Q -> list Y).
Variable pi : V -> Q -> Y -> R.               (* policy masses *)
Variable pref : Q -> Y -> R.                  (* reference law *)
Variable rew : Q -> Y -> R.                   (* rewards *)
Variables (eps beta : R).
Variable th0 : V.                             (* frozen outer parameter *)
Variable Ys : Q -> list Y.                    (* the drawn group for each prompt *)

Definition Adv q y := adv (map (rew q) (Ys q)) (rew q y).
Definition ratio q y th := pi th q y / pi th0 q y.
Definition F (th : V) : R :=
  / INR (length prompts) * Rsum prompts (fun q =>
     / INR (length (Ys q)) * Rsum (Ys q) (fun y =>
         Rmin (ratio q y th * Adv q y) (clip eps (ratio q y th) * Adv q y))
     - beta * KL (B q) (pi th q) (pref q)).

Variable th : V.                              (* the query point *)
Variable Dpi : Q -> Y -> V -> R.              (* derivatives of the masses at th *)
Hypothesis eps_pos : 0 < eps.
Hypothesis prompts_ne : prompts <> [].
Hypothesis Ys_ne : forall q, In q prompts -> Ys q <> [].
Hypothesis Ys_supp : forall q, In q prompts -> incl (Ys q) (B q).
Hypothesis pi_pos : forall q y, In q prompts -> In y (B q) -> 0 < pi th q y.
Hypothesis pi0_pos : forall q y, In q prompts -> In y (B q) -> 0 < pi th0 q y.
Hypothesis pref_pos : forall q y, In q prompts -> In y (B q) -> 0 < pref q y.
Hypothesis pi_diff : forall q y, In q prompts -> In y (B q) -> has_diff (fun t => pi t q y) th (Dpi q y).

Definition dKL q (h : V) := Rsum (B q) (fun b => Dpi q b h * (ln (pi th q b / pref q b) + 1)).
Lemma KL_has_diff q : In q prompts -> has_diff (fun t => KL (B q) (pi t q) (pref q)) th (dKL q).
Proof. intros Hq. apply (has_diff_Rsum (B q) (fun b t => pi t q b * ln (pi t q b / pref q b))
    (fun b h => Dpi q b h * (ln (pi th q b / pref q b) + 1))).
  intros b Hb. eapply has_diff_ext; [| |apply (has_diff_comp (fun z => z * ln (z / pref q b))
     (ln (pi th q b / pref q b) + 1) (fun t => pi t q b) th (Dpi q b)); [apply pi_diff; auto|]].
  - reflexivity.
  - intros h; cbv beta. ring.
  - pose proof (pi_pos q b Hq Hb). pose proof (pref_pos q b Hq Hb). auto_derive.
    + apply Rdiv_lt_0_compat; auto.
    + unfold Rdiv. field. lra. Qed.

Definition Drho q y (h : V) := / pi th0 q y * Dpi q y h.
Lemma ratio_has_diff q y : In q prompts -> In y (Ys q) -> has_diff (ratio q y) th (Drho q y).
Proof. intros Hq Hy. eapply has_diff_ext; [| |apply (has_diff_scal (/ pi th0 q y)); apply pi_diff; [exact Hq|apply Ys_supp; auto; exact Hy]].
  - intros t. unfold ratio, Rdiv. apply Rmult_comm.
  - reflexivity. Qed.

Definition smooth_cond := forall q y, In q prompts -> In y (Ys q) ->
  Adv q y <> 0 -> ratio q y th = kink eps (Adv q y) -> forall h, Dpi q y h = 0.

Definition gradF (h : V) : R :=
  / INR (length prompts) * Rsum prompts (fun q =>
     / INR (length (Ys q)) * Rsum (Ys q) (fun y =>
         gate eps (Adv q y) (ratio q y th) * Adv q y * (/ pi th0 q y * Dpi q y h))
     - beta * dKL q h).

(** sufficiency with the explicit gradient *)
Theorem F_gradient : smooth_cond -> has_diff F th gradF.
Proof. intros H. unfold F, gradF.
  apply (has_diff_scal (/ INR (length prompts)) (fun t => Rsum prompts (fun q =>
     / INR (length (Ys q)) * Rsum (Ys q) (fun y =>
         Rmin (ratio q y t * Adv q y) (clip eps (ratio q y t) * Adv q y))
     - beta * KL (B q) (pi t q) (pref q)))).
  apply (has_diff_Rsum prompts (fun q t => / INR (length (Ys q)) * Rsum (Ys q) (fun y =>
         Rmin (ratio q y t * Adv q y) (clip eps (ratio q y t) * Adv q y))
     - beta * KL (B q) (pi t q) (pref q))
     (fun q h => / INR (length (Ys q)) * Rsum (Ys q) (fun y =>
         gate eps (Adv q y) (ratio q y th) * Adv q y * (/ pi th0 q y * Dpi q y h))
     - beta * dKL q h)).
  intros q Hq.
  eapply has_diff_ext; [| |apply (has_diff_plus (fun t => / INR (length (Ys q)) * Rsum (Ys q) (fun y => cterm eps (Adv q y) (ratio q y t))) (fun t => - beta * KL (B q) (pi t q) (pref q)))].
  - intros t. unfold cterm. cbv beta. unfold Rminus. f_equal. ring.
  - intros h. cbv beta. 
    instantiate (1 := fun h => - beta * dKL q h).
    instantiate (1 := fun h => / INR (length (Ys q)) * Rsum (Ys q) (fun y => gate eps (Adv q y) (ratio q y th) * Adv q y * Drho q y h)).
    unfold Drho. ring.
  - apply (has_diff_scal (/ INR (length (Ys q))) (fun t => Rsum (Ys q) (fun y => cterm eps (Adv q y) (ratio q y t)))).
    apply (has_diff_Rsum (Ys q) (fun y t => cterm eps (Adv q y) (ratio q y t))
       (fun y h => gate eps (Adv q y) (ratio q y th) * Adv q y * Drho q y h)).
    intros y Hy. apply has_diff_cterm; [lra|apply ratio_has_diff; auto|].
    intros HA HK h. unfold Drho. rewrite (H q y Hq Hy HA HK). ring.
  - apply (has_diff_scal (- beta) (fun t => KL (B q) (pi t q) (pref q))). apply KL_has_diff; auto.
Qed.

(** necessity: the kinks never cancel, across prompts, samples or the penalty *)
Theorem F_diff_iff : diff_at F th <-> smooth_cond.
Proof.
  split; [|intros H; exists gradF; apply F_gradient; auto].
  intros HF.
  set (pairs := flat_map (fun q => map (fun y => (q, y)) (Ys q)) prompts).
  set (c := fun p : Q * Y => / INR (length prompts) * / INR (length (Ys (fst p)))).
  set (sm := fun t => - (/ INR (length prompts)) * Rsum prompts (fun q => beta * KL (B q) (pi t q) (pref q))).
  assert (Hin : forall p, In p pairs <-> In (fst p) prompts /\ In (snd p) (Ys (fst p))).
  { intros [q y]. unfold pairs. rewrite in_flat_map. simpl. split.
    - intros [q' [H1 H2]]. apply in_map_iff in H2. destruct H2 as [y' [E H2]]. injection E as -> ->. auto.
    - intros [H1 H2]. exists q. split; auto. apply in_map_iff. exists y; auto. }
  assert (EF : forall t, F t = Rsum pairs (fun p => c p * cterm eps (Adv (fst p) (snd p)) (ratio (fst p) (snd p) t)) + sm t).
  { intros t. unfold F, sm, pairs. clear Hin. unfold c. clear c. generalize (/ INR (length prompts)) as m. intros m.
    clear - m. induction prompts as [|q l IH].
    - simpl flat_map. rewrite !Rsum_nil. ring.
    - simpl flat_map. rewrite Rsum_app, !Rsum_cons, Rmult_plus_distr_l, IH, Rsum_map. simpl fst. simpl snd.
      rewrite (Rsum_scal (Ys q) (fun b => cterm eps (Adv q b) (ratio q b t)) (m * / INR (length (Ys q)))).
      unfold cterm; ring. }
  assert (HF' : diff_at (fun t => Rsum pairs (fun p => c p * cterm eps (Adv (fst p) (snd p)) (ratio (fst p) (snd p) t)) + sm t) th).
  { apply (diff_ext F); auto. }
  assert (H1 : 0 <= eps) by lra.
  assert (H2 : diff_at sm th).
  { apply diff_scal. apply diff_Rsum. intros q Hq. apply diff_scal. exists (dKL q). apply KL_has_diff; auto. }
  assert (H3 : forall p, In p pairs -> 0 < c p).
  { intros p Hp. apply Hin in Hp. destruct Hp as [Hq Hy]. unfold c. apply Rmult_lt_0_compat; apply Rinv_0_lt_compat.
    - apply (INR_length_pos prompts prompts_ne).
    - apply (INR_length_pos (Ys (fst p)) (Ys_ne _ Hq)). }
  assert (H4 : forall p, In p pairs -> has_diff (ratio (fst p) (snd p)) th (Drho (fst p) (snd p))).
  { intros p Hp. apply Hin in Hp. destruct Hp as [Hq Hy]. apply ratio_has_diff; auto. }
  pose proof (proj1 (clipped_objective_diff_iff pairs sm c (fun p => Adv (fst p) (snd p))
     (fun p => ratio (fst p) (snd p)) (fun p => Drho (fst p) (snd p)) eps th H1 H2 H3 H4) HF') as K.
  intros q y Hq Hy HA HK h.
  assert (Z : Drho q y h = 0) by (apply (K (q, y)); auto; apply Hin; auto).
  unfold Drho in Z. apply Rmult_integral in Z. destruct Z as [Z|Z]; auto. exfalso.
  pose proof (Rinv_0_lt_compat _ (pi0_pos q y Hq (Ys_supp q Hq y Hy))). lra.
Qed.

(** the derivative, when it exists, is [gradF] *)
Theorem F_gradient_unique l : has_diff F th l -> forall h, l h = gradF h.
Proof. intros H. apply (has_diff_unique F th); auto. apply F_gradient, F_diff_iff. exists l; auto. Qed.
End Objective.

(** The first inner step of every outer iteration never sees a kink. *)
Corollary first_step_defined {V : NormedModule R_AbsRing} {Q Y : Type} (prompts : list Q) B
  (pi : V -> Q -> Y -> R) pref rew eps beta th0 Ys Dpi :
  0 < eps -> prompts <> [] -> (forall q, In q prompts -> Ys q <> []) ->
  (forall q, In q prompts -> incl (Ys q) (B q)) ->
  (forall q y, In q prompts -> In y (B q) -> 0 < pi th0 q y) ->
  (forall q y, In q prompts -> In y (B q) -> 0 < pref q y) ->
  (forall q y, In q prompts -> In y (B q) -> has_diff (fun t => pi t q y) th0 (Dpi q y)) ->
  diff_at (F prompts B pi pref rew eps beta th0 Ys) th0.
Proof. intros He Hp HY Hs P0 Pr D. apply (F_diff_iff _ _ _ _ _ _ _ _ _ _ Dpi); auto.
  intros q y Hq Hy HA HK. exfalso. unfold ratio in HK.
  assert (0 < pi th0 q y) by (apply P0; auto; apply Hs; auto).
  replace (pi th0 q y / pi th0 q y) with 1 in HK by (field; lra).
  unfold kink in HK. destruct (Rle_dec 0 (Adv rew Ys q y)); lra. Qed.

(** Only the policy's values on the open domain matter: two total functions that
    agree on an open U give objectives with the same differential at points of U. *)
Theorem F_germ {V : NormedModule R_AbsRing} {Q Y : Type} (prompts : list Q) B (pi pi' : V -> Q -> Y -> R)
  pref rew eps beta th0 Ys (U : V -> Prop) th l : open U -> U th -> U th0 ->
  (forall t, U t -> pi t = pi' t) ->
  has_diff (F prompts B pi pref rew eps beta th0 Ys) th l -> has_diff (F prompts B pi' pref rew eps beta th0 Ys) th l.
Proof. intros HU Ht H0 E. apply has_diff_local. generalize (HU th Ht). apply filter_imp. intros t HUt.
  unfold F, ratio. rewrite (E t HUt), (E th0 H0). reflexivity. Qed.
