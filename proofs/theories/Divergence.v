(** * Total variation against KL

    Pinsker, Bretagnolle-Huber and the smaller of both.

      TV B p q  half the sum of |p b - q b|
      BC B p q  sum of sqrt(p b * q b)

    Python: exactgrpo.rac.divergence.pinsker, exactgrpo.rac.divergence.bretagnolle_huber, exactgrpo.rac.divergence.least_bound *)
From Coq Require Import Reals List Lra Lia.
From Coquelicot Require Import Coquelicot.
From ExactGRPO Require Import FinSum KL.
Import ListNotations.
Open Scope R_scope.

Section Scalar.
(** (4 + 2u) (u ln u - u + 1) >= 3 (u - 1)^2 for u > 0, by two mean-value steps. *)
Let h (u : R) := (4 + 2 * u) * (u * ln u - u + 1) - 3 * (u - 1) * (u - 1).
Let h1 (u : R) := (4 + 4 * u) * ln u + 8 - 8 * u.
Let h2 (u : R) := 4 * (ln u + / u - 1).
Lemma h_der u : 0 < u -> derivable_pt_lim h u (h1 u).
Proof. intros H. apply is_derive_Reals. unfold h, h1. auto_derive; [lra|]. field; lra. Qed.
Lemma h1_der u : 0 < u -> derivable_pt_lim h1 u (h2 u).
Proof. intros H. apply is_derive_Reals. unfold h1, h2. auto_derive; [lra|]. field; lra. Qed.
Lemma h2_nonneg u : 0 < u -> 0 <= h2 u.
Proof. intros H. unfold h2. pose proof (ln_ge_1minus_inv u H). lra. Qed.

Lemma mvt (f f' : R -> R) a b : 0 < a -> a < b -> (forall u, 0 < u -> derivable_pt_lim f u (f' u)) ->
  exists c, a < c < b /\ f b - f a = f' c * (b - a).
Proof. intros Ha Hab D. destruct (MVT_cor2 f f' a b Hab) as [c [E Hc]].
  - intros c Hc. apply D; lra.
  - exists c; split; auto. Qed.

Lemma h1_at1 : h1 1 = 0. Proof. unfold h1; rewrite ln_1; ring. Qed.
Lemma h_at1 : h 1 = 0. Proof. unfold h; rewrite ln_1; ring. Qed.
Lemma h1_right u : 1 < u -> 0 <= h1 u.
Proof. intros H. destruct (mvt h1 h2 1 u) as [c [Hc E]]; try lra; [apply h1_der|].
  rewrite h1_at1 in E. pose proof (h2_nonneg c). nra. Qed.
Lemma h1_left u : 0 < u < 1 -> h1 u <= 0.
Proof. intros H. destruct (mvt h1 h2 u 1) as [c [Hc E]]; try lra; [apply h1_der|].
  rewrite h1_at1 in E. pose proof (h2_nonneg c). nra. Qed.
Lemma pinsker_scalar u : 0 < u -> 3 * (u - 1) * (u - 1) <= (4 + 2 * u) * (u * ln u - u + 1).
Proof. intros H. assert (0 <= h u); [|unfold h in *; lra].
  destruct (Rtotal_order u 1) as [L|[->|G]].
  - destruct (mvt h h1 u 1) as [c [Hc E]]; try lra; [apply h_der|].
    rewrite h_at1 in E. pose proof (h1_left c). nra.
  - rewrite h_at1; lra.
  - destruct (mvt h h1 1 u) as [c [Hc E]]; try lra; [apply h_der|].
    rewrite h_at1 in E. pose proof (h1_right c). nra. Qed.
End Scalar.

Section Laws.
Context {A : Type}.
Implicit Types (B : list A) (p q : A -> R).
Definition TV B p q := Rsum B (fun b => Rabs (p b - q b)) / 2.

(** Pinsker. *)
Theorem pinsker_sq B p q : pmf B p -> pmf B q -> pos_on B q ->
  2 * (TV B p q * TV B p q) <= KL B p q.
Proof. intros [Hp Sp] [_ Sq] Hq.
  pose proof (Rsum_CS B (fun b => Rabs (p b - q b))
    (fun b => (4 * q b + 2 * p b) / 3) (fun b => p b * ln (p b / q b) - p b + q b)) as CS.
  assert (C1 : forall i, In i B -> 0 <= (4 * q i + 2 * p i) / 3).
  { intros i Hi. specialize (Hp i Hi). specialize (Hq i Hi). lra. }
  assert (C2 : forall i, In i B -> 0 <= p i * ln (p i / q i) - p i + q i).
  { intros i Hi. pose proof (kl_term (p i) (q i) (Hp i Hi) (Hq i Hi)). lra. }
  specialize (CS C1 C2).
  assert (C3 : forall i, In i B -> Rabs (p i - q i) * Rabs (p i - q i) <=
     (4 * q i + 2 * p i) / 3 * (p i * ln (p i / q i) - p i + q i)).
  { intros i Hi. specialize (Hp i Hi). specialize (Hq i Hi). clear CS C1 C2.
    rewrite <- Rabs_mult. rewrite Rabs_right by (apply Rle_ge, Rle_0_sqr).
    destruct (Req_dec (p i) 0) as [Z|N].
    - rewrite Z. nra.
    - assert (Hu : 0 < p i / q i) by (apply Rdiv_lt_0_compat; lra).
      pose proof (pinsker_scalar _ Hu) as S.
      set (u := p i / q i) in *. assert (Ep : p i = u * q i) by (unfold u; field; lra).
      rewrite Ep. assert (0 < q i * q i) by nra.
      replace ((u * q i - q i) * (u * q i - q i)) with (q i * q i * (3 * (u - 1) * (u - 1)) / 3) by field.
      replace ((4 * q i + 2 * (u * q i)) / 3 * (u * q i * ln u - u * q i + q i))
        with (q i * q i * ((4 + 2 * u) * (u * ln u - u + 1)) / 3) by field.
      apply Rmult_le_compat_r; [lra|]. apply Rmult_le_compat_l; lra. }
  specialize (CS C3). clear C1 C2 C3.
  assert (E1 : Rsum B (fun b => (4 * q b + 2 * p b) / 3) = 2).
  { unfold Rdiv. rewrite Rsum_scal_r, Rsum_plus, !Rsum_scal, Sp, Sq. lra. }
  assert (E2 : Rsum B (fun b => p b * ln (p b / q b) - p b + q b) = KL B p q).
  { rewrite Rsum_plus, Rsum_minus, Sp, Sq. unfold KL. lra. }
  rewrite E1, E2 in CS. unfold TV. lra. Qed.
Lemma TV_nonneg B p q : 0 <= TV B p q.
Proof. unfold TV. assert (0 <= Rsum B (fun b => Rabs (p b - q b))) by (apply Rsum_nonneg; intros; apply Rabs_pos). lra. Qed.
Theorem pinsker B p q : pmf B p -> pmf B q -> pos_on B q -> TV B p q <= sqrt (KL B p q / 2).
Proof. intros. pose proof (pinsker_sq B p q H H0 H1). pose proof (TV_nonneg B p q).
  rewrite <- (sqrt_square (TV B p q)) by auto. apply sqrt_le_1_alt. lra. Qed.

(** Bretagnolle-Huber. *)
Definition BC B p q := Rsum B (fun b => sqrt (p b * q b)).
Lemma BC_TV B p q : pmf B p -> pmf B q -> BC B p q * BC B p q <= 1 - TV B p q * TV B p q.
Proof. intros [Hp Sp] [Hq Sq].
  pose proof (Rsum_CS B (fun b => sqrt (p b * q b)) (fun b => Rmin (p b) (q b)) (fun b => Rmax (p b) (q b))) as CS.
  assert (C : forall i, In i B -> 0 <= Rmin (p i) (q i)) by (intros; apply Rmin_glb; auto).
  assert (C' : forall i, In i B -> 0 <= Rmax (p i) (q i)).
  { intros. eapply Rle_trans; [apply (Hp i); auto|apply Rmax_l]. }
  specialize (CS C C').
  assert (C3 : forall i, In i B -> sqrt (p i * q i) * sqrt (p i * q i) <= Rmin (p i) (q i) * Rmax (p i) (q i)).
  { intros i Hi. rewrite sqrt_sqrt by (apply Rmult_le_pos; auto). unfold Rmin, Rmax. destruct (Rle_dec (p i) (q i)); lra. }
  specialize (CS C3). clear C C' C3.
  assert (Emin : Rsum B (fun b => Rmin (p b) (q b)) = 1 - TV B p q).
  { rewrite (Rsum_ext B _ (fun b => (p b + q b - Rabs (p b - q b)) * / 2)).
    - rewrite Rsum_scal_r, Rsum_minus, Rsum_plus, Sp, Sq. unfold TV. lra.
    - intros b _. unfold Rmin, Rabs. destruct (Rle_dec (p b) (q b)); destruct (Rcase_abs (p b - q b)); lra. }
  assert (Emax : Rsum B (fun b => Rmax (p b) (q b)) = 1 + TV B p q).
  { rewrite (Rsum_ext B _ (fun b => (p b + q b + Rabs (p b - q b)) * / 2)).
    - rewrite Rsum_scal_r, !Rsum_plus, Sp, Sq. unfold TV. lra.
    - intros b _. unfold Rmax, Rabs. destruct (Rle_dec (p b) (q b)); destruct (Rcase_abs (p b - q b)); lra. }
  rewrite Emin, Emax in CS. unfold BC. lra. Qed.

Lemma BC_pos B p q : pmf B p -> pos_on B q -> 0 < BC B p q.
Proof. intros [Hp Sp] Hq.
  destruct (Rle_lt_or_eq_dec 0 (BC B p q)) as [H|H]; auto.
  - apply Rsum_nonneg; intros; apply sqrt_pos.
  - exfalso. symmetry in H. unfold BC in H. rewrite Rsum_nonneg_eq0 in H by (intros; apply sqrt_pos).
    assert (Z : forall b, In b B -> p b = 0).
    { intros b Hb. specialize (H b Hb). specialize (Hp b Hb). specialize (Hq b Hb).
      apply sqrt_eq_0 in H; [|apply Rmult_le_pos; lra]. apply Rmult_integral in H. lra. }
    rewrite (Rsum_0 B p Z) in Sp. lra. Qed.

(** Jensen step:  - KL / 2 <= ln BC *)
Lemma BC_KL B p q : pmf B p -> pmf B q -> pos_on B q -> - KL B p q / 2 <= ln (BC B p q).
Proof. intros P Q Hq. pose proof (BC_pos B p q P Hq) as Spos. destruct P as [Hp Sp]. set (S := BC B p q) in *.
  assert (L : forall b, In b B -> p b * (- ln (p b / q b) / 2 - ln S) <= sqrt (p b * q b) / S - p b).
  { intros b Hb. specialize (Hp b Hb). specialize (Hq b Hb).
    destruct (Req_dec (p b) 0) as [Z|N].
    - rewrite Z, !Rmult_0_l, sqrt_0. unfold Rdiv; rewrite Rmult_0_l; lra.
    - assert (Hp' : 0 < p b) by lra.
      assert (Hr : 0 < sqrt (q b / p b)) by (apply sqrt_lt_R0, Rdiv_lt_0_compat; auto).
      assert (Hr2 : 0 < sqrt (q b / p b) / S) by (apply Rdiv_lt_0_compat; auto).
      pose proof (ln_le_minus1 _ Hr2) as L.
      assert (E1 : ln (sqrt (q b / p b) / S) = - ln (p b / q b) / 2 - ln S).
      { unfold Rdiv at 1. rewrite ln_mult, ln_Rinv; auto; [|apply Rinv_0_lt_compat; auto].
        assert (E0 : ln (q b / p b) = 2 * ln (sqrt (q b / p b))).
        { replace (ln (q b / p b)) with (ln (sqrt (q b / p b) * sqrt (q b / p b))).
          - rewrite ln_mult by auto. ring.
          - rewrite sqrt_sqrt; auto. left; apply Rdiv_lt_0_compat; auto. }
        assert (E0' : ln (q b / p b) = - ln (p b / q b)).
        { rewrite <- ln_Rinv by (apply Rdiv_lt_0_compat; auto). f_equal. field; lra. }
        lra. }
      rewrite E1 in L.
      assert (E2 : p b * (sqrt (q b / p b) / S - 1) = sqrt (p b * q b) / S - p b).
      { assert (E3 : p b * sqrt (q b / p b) = sqrt (p b * q b)).
        { rewrite <- (sqrt_square (p b)) at 1 by lra. rewrite <- sqrt_mult_alt by nra. f_equal. field; lra. }
        rewrite <- E3. field. lra. }
      rewrite <- E2. apply Rmult_le_compat_l; lra. }
  assert (SL := Rsum_le _ _ _ L). rewrite Rsum_minus in SL.
  unfold Rdiv in SL at 3. rewrite Rsum_scal_r in SL. fold (BC B p q) in SL. fold S in SL.
  rewrite Rinv_r, Sp in SL by lra.
  rewrite (Rsum_ext B _ (fun b => - (p b * ln (p b / q b)) * / 2 - p b * ln S)) in SL.
  2: { intros b _. unfold Rdiv. ring. }
  rewrite Rsum_minus, !Rsum_scal_r, Rsum_opp, Sp in SL. fold (KL B p q) in SL. lra. Qed.

Theorem bretagnolle_huber B p q : pmf B p -> pmf B q -> pos_on B q ->
  TV B p q <= sqrt (1 - exp (- KL B p q)).
Proof. intros P Q Hq. pose proof (BC_TV B p q P Q) as H1. pose proof (BC_KL B p q P Q Hq) as H2.
  pose proof (BC_pos B p q P Hq) as H3.
  assert (H4 : exp (- KL B p q) <= BC B p q * BC B p q).
  { replace (BC B p q * BC B p q) with (exp (2 * ln (BC B p q))).
    - destruct (Rle_lt_or_eq_dec (- KL B p q) (2 * ln (BC B p q))) as [Hl|He]; [lra| |].
      + left; apply exp_increasing; auto.
      + rewrite He; lra.
    - replace (2 * ln (BC B p q)) with (ln (BC B p q) + ln (BC B p q)) by ring.
      rewrite exp_plus, exp_ln; auto. }
  pose proof (TV_nonneg B p q).
  rewrite <- (sqrt_square (TV B p q)) by auto. apply sqrt_le_1_alt. lra. Qed.
(** the two bounds together: the second stays below 1 however large KL is *)
Corollary TV_bound B p q : pmf B p -> pmf B q -> pos_on B q ->
  TV B p q <= Rmin (sqrt (KL B p q / 2)) (sqrt (1 - exp (- KL B p q))).
Proof. intros. apply Rmin_glb; [apply pinsker|apply bretagnolle_huber]; auto. Qed.
Corollary TV_lt_1 B p q : pmf B p -> pmf B q -> pos_on B q -> TV B p q < 1.
Proof. intros P Q H. eapply Rle_lt_trans; [apply bretagnolle_huber; auto|].
  rewrite <- sqrt_1 at 2. apply sqrt_lt_1_alt. split; [|pose proof (exp_pos (- KL B p q)); lra].
  assert (exp (- KL B p q) <= exp 0); [|rewrite exp_0 in *; lra].
  pose proof (KL_nonneg B p q P Q H). destruct (Req_dec (KL B p q) 0) as [E|N].
  - rewrite E, Ropp_0; lra.
  - left; apply exp_increasing; lra. Qed.
End Laws.
