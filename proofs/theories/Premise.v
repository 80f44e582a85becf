(** * Premises about ratios

    When a clipped ratio has mean one, and what fails otherwise.

      at_ c f, CE c f  restriction and conditional mean given a context

    Python: exactgrpo.field.ratios.truncated_ratio
    Python: exactgrpo.rac.clip.clipped_ratio_mean, exactgrpo.rac.clip.clipped_residual_mean, exactgrpo.rac.clip.decide_clip, exactgrpo.rac.clip.moved_policy_ratio_mean
    Python: exactgrpo.rac.clip.injected_elsewhere_gradient, exactgrpo.rac.clip.unweighted_elsewhere_gradient
    Python: exactgrpo.rac.hypotheses.decide_hypotheses *)
From Coq Require Import Reals List Lra Lia.
From ExactGRPO Require Import FinSum Advantages Clip KL Divergence Kernel.
Import ListNotations.
Open Scope R_scope.

(** The ratio assumption follows from conditional mean one plus conditional
    independence: finite form with a context variable [c : Om -> C]. *)
Section CondIndep.
Context {Om C : Type} (eqc : forall a b : C, {a = b} + {a <> b}).
Variables (om : list Om) (P : Om -> R) (cl : list C) (ctx : Om -> C).
Variables (rho res : Om -> R).
Hypothesis cl_nodup : NoDup cl.
Hypothesis cl_cover : forall w, In w om -> In (ctx w) cl.
Definition at_ c (f : Om -> R) w := if eqc (ctx w) c then f w else 0.
Definition mass c := Ex om P (at_ c (fun _ => 1)).
Hypothesis mass_pos : forall c, In c cl -> 0 < mass c.
Definition CE c f := Ex om P (at_ c f) / mass c.
Lemma tower f : Ex om P f = Rsum cl (fun c => mass c * CE c f).
Proof. rewrite (Rsum_ext cl _ (fun c => Ex om P (at_ c f))).
  2: { intros c Hc. unfold CE. pose proof (mass_pos c Hc). field. lra. }
  rewrite <- Ex_Rsum. apply Ex_ext. intros w Hw. specialize (cl_cover w Hw). unfold at_.
  clear - cl_nodup cl_cover. induction cl as [|c l IH]; [inversion cl_cover|]. inversion cl_nodup; subst.
  rewrite Rsum_cons. destruct (eqc (ctx w) c) as [E|N].
  - rewrite Rsum_0; [ring|]. intros b Hb. destruct (eqc (ctx w) b); [congruence|ring].
  - destruct cl_cover as [E|Hin]; [congruence|]. rewrite <- IH; auto. ring. Qed.
Theorem ratio_unbiased_of_cond_indep :
  (forall c, In c cl -> CE c rho = 1) ->
  (forall c, In c cl -> CE c (fun w => rho w * res w) = CE c rho * CE c res) ->
  Ex om P (fun w => rho w * res w) = Ex om P res.
Proof. intros H1 H2. rewrite !tower. apply Rsum_ext. intros c Hc. rewrite H2, H1 by auto. ring. Qed.
End CondIndep.

(** The mean-one premise for an upper-truncated ratio (V-trace style min(rho, c)):
    it holds exactly when the truncation never bites on the support. *)
Theorem truncated_ratio_mean_le {Y : Type} (B : list Y) (p q : Y -> R) c :
  (forall b, In b B -> 0 < q b) -> Rsum B p = 1 ->
  Rsum B (fun b => q b * Rmin (p b / q b) c) <= 1.
Proof. intros Hq Sp. rewrite <- Sp. apply Rsum_le. intros b Hb. specialize (Hq b Hb).
  replace (p b) with (q b * (p b / q b)) at 2 by (field; lra). apply Rmult_le_compat_l; [lra|apply Rmin_l]. Qed.
Theorem truncated_ratio_mean_one_iff {Y : Type} (B : list Y) (p q : Y -> R) c :
  (forall b, In b B -> 0 < q b) -> Rsum B p = 1 ->
  (Rsum B (fun b => q b * Rmin (p b / q b) c) = 1 <-> forall b, In b B -> p b / q b <= c).
Proof. intros Hq Sp.
  assert (E : Rsum B (fun b => q b * (p b / q b - Rmin (p b / q b) c)) = 1 - Rsum B (fun b => q b * Rmin (p b / q b) c)).
  { rewrite <- Sp, <- Rsum_minus. apply Rsum_ext. intros b Hb. specialize (Hq b Hb). field. lra. }
  assert (N : forall b, In b B -> 0 <= q b * (p b / q b - Rmin (p b / q b) c)).
  { intros b Hb. specialize (Hq b Hb). pose proof (Rmin_l (p b / q b) c). apply Rmult_le_pos; lra. }
  split.
  - intros H b Hb. assert (Z : Rsum B (fun b => q b * (p b / q b - Rmin (p b / q b) c)) = 0) by lra.
    rewrite Rsum_nonneg_eq0 in Z by auto. specialize (Z b Hb). specialize (Hq b Hb).
    apply Rmult_integral in Z. destruct Z as [Z|Z]; [lra|].
    pose proof (Rmin_r (p b / q b) c). lra.
  - intros H. assert (Z : Rsum B (fun b => q b * (p b / q b - Rmin (p b / q b) c)) = 0).
    { apply Rsum_0. intros b Hb. rewrite Rmin_left by auto. ring. }
    lra. Qed.
(** How far below one: what the truncation cuts. *)
Theorem truncated_ratio_mean {Y : Type} (B : list Y) (p q : Y -> R) c :
  (forall b, In b B -> 0 < q b) -> Rsum B p = 1 ->
  Rsum B (fun b => q b * Rmin (p b / q b) c) = 1 - Rsum B (fun b => Rmax 0 (p b - c * q b)).
Proof. intros Hq Sp. rewrite <- Sp, <- Rsum_minus. apply Rsum_ext. intros b Hb. specialize (Hq b Hb).
  replace (p b) with (q b * (p b / q b)) at 2 3 by (field; lra). set (r := p b / q b).
  unfold Rmin, Rmax. repeat destruct (Rle_dec _ _); nra. Qed.
(** At ceiling one the loss is the total variation between the two policies. *)
Corollary truncated_at_one {Y : Type} (B : list Y) (p q : Y -> R) :
  (forall b, In b B -> 0 < q b) -> Rsum B p = 1 -> Rsum B q = 1 ->
  Rsum B (fun b => q b * Rmin (p b / q b) 1) = 1 - TV B p q.
Proof. intros Hq Sp Sq. rewrite truncated_ratio_mean by auto. f_equal. unfold TV.
  assert (E : Rsum B (fun b => Rabs (p b - q b)) = 2 * Rsum B (fun b => Rmax 0 (p b - 1 * q b)) - (Rsum B p - Rsum B q)).
  { rewrite <- Rsum_minus, <- Rsum_scal, <- Rsum_minus. apply Rsum_ext. intros b _. unfold Rabs, Rmax.
    destruct (Rcase_abs (p b - q b)); destruct (Rle_dec 0 (p b - 1 * q b)); lra. }
  rewrite E, Sp, Sq. lra. Qed.
(** two-sided clip: the mean of the clipped ratio is one exactly when what is cut
    above equals what is added below *)
Theorem clip_mean {Y} (B : list Y) (p q : Y -> R) e : 0 <= e -> (forall b, In b B -> 0 < q b) -> Rsum B p = 1 ->
  Rsum B (fun b => q b * clip e (p b / q b)) = 1 - Rsum B (fun b => Rmax 0 (p b - (1 + e) * q b)) + Rsum B (fun b => Rmax 0 ((1 - e) * q b - p b)).
Proof. intros He Hq Sp. rewrite <- Sp, <- Rsum_minus, <- Rsum_plus. apply Rsum_ext. intros b Hb. specialize (Hq b Hb).
  replace (p b) with (q b * (p b / q b)) at 2 3 4 by (field; lra). set (r := p b / q b).
  unfold clip, Rmin, Rmax. repeat destruct (Rle_dec _ _); nra. Qed.
Corollary clip_mean_one_iff {Y} (B : list Y) (p q : Y -> R) e : 0 <= e -> (forall b, In b B -> 0 < q b) -> Rsum B p = 1 ->
  (Rsum B (fun b => q b * clip e (p b / q b)) = 1 <->
   Rsum B (fun b => Rmax 0 (p b - (1 + e) * q b)) = Rsum B (fun b => Rmax 0 ((1 - e) * q b - p b))).
Proof. intros. rewrite clip_mean by auto. split; intros; lra. Qed.
(** both clips bite and the mean is still one *)
Theorem clip_mean_one_biting : let q (b : bool) := / 2 in let p (b : bool) := if b then 3 / 4 else / 4 in
  Rsum [true; false] (fun b => q b * clip (/ 5) (p b / q b)) = 1 /\ clip (/ 5) (p true / q true) <> p true / q true /\ clip (/ 5) (p false / q false) <> p false / q false.
Proof. intros q p. rewrite !Rsum_cons, Rsum_nil. unfold p, q, clip, Rmin, Rmax. repeat destruct (Rle_dec _ _); repeat split; lra. Qed.
(** A clip that acts spoils the identity even when the mean premise is the only thing lost:
    mu = (1/2,1/2), pi = (3/4,1/4), X = (1,-1), ceiling 1. *)
Theorem truncation_biases : let q (b : bool) := / 2 in let p (b : bool) := if b then 3 / 4 else / 4 in
  let X (b : bool) := if b then 1 else -1 in
  Rsum [true; false] (fun b => q b * Rmin (p b / q b) 1) = 3 / 4 /\
  Rsum [true; false] (fun b => q b * (Rmin (p b / q b) 1 * X b)) = / 4 /\ Rsum [true; false] (fun b => q b * X b) = 0.
Proof. intros q p X. rewrite !Rsum_cons, !Rsum_nil. unfold p, q, X, Rmin. repeat destruct (Rle_dec _ _); repeat split; lra. Qed.
(** If the rollout itself moved the policy before arrival, the ratio need not have mean one:
    mass goes to 3/4 on whichever action was drawn. *)
Theorem moved_policy_ratio : let q (b : bool) := / 2 in let after (drawn b : bool) := if Bool.eqb drawn b then 3 / 4 else / 4 in
  Rsum [true; false] (fun b => q b * (after b b / q b)) = 3 / 2.
Proof. intros q after. rewrite !Rsum_cons, Rsum_nil. unfold q, after. simpl. field. Qed.

(** A residual of one rollout injected on another: no effect on the expected gradient
    when the other action is drawn from the current policy given the history. *)
Section OtherRollout.
Context {H Y : Type}.
Variables (hs : list H) (P : H -> R) (B : H -> list Y) (pi score : H -> Y -> R) (inj : H -> R).
Theorem other_rollout_zero : (forall h, In h hs -> Rsum (B h) (fun y => pi h y * score h y) = 0) ->
  Rsum hs (fun h => P h * Rsum (B h) (fun y => pi h y * (inj h * score h y))) = 0.
Proof. intros Z. apply Rsum_0. intros h Hh.
  rewrite (Rsum_ext (B h) _ (fun y => inj h * (pi h y * score h y))) by (intros; ring). rewrite Rsum_scal, Z by auto. ring. Qed.
End OtherRollout.

(** Where a constant residual enters matters: in the rewards centring erases it, in the
    advantages it adds the residual times the mean score. *)
Theorem residual_in_rewards rs x : rs <> [] -> advantages (map (fun r => r + x) rs) = advantages rs.
Proof. intros H. rewrite <- (advantages_affine rs 1 x H) by lra. f_equal. apply map_ext. intros; ring. Qed.
Theorem residual_in_advantages {Y : Type} (w : list Y) (A s : Y -> R) x : 
  / INR (length w) * Rsum w (fun y => (A y + x) * s y) = / INR (length w) * Rsum w (fun y => A y * s y) + x * (/ INR (length w) * Rsum w s).
Proof. rewrite (Rsum_ext w (fun y => (A y + x) * s y) (fun y => A y * s y + x * s y)) by (intros; ring).
  rewrite Rsum_plus, Rsum_scal. change (Rsum w (fun a => s a)) with (Rsum w s). ring. Qed.
