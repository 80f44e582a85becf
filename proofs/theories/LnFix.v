(** * Logarithms in fixed point

    Enclosures of ln and KL over Z, proved sound.

      KLZ D E l  KL of two laws given as integers over D and E

    Python, to come: exactgrpo.certificates.coq *)
From Coq Require Import Reals List Lra Lia Bool ZArith.
From ExactGRPO Require KL.
From ExactGRPO Require Import FinSum LnBounds.
Import ListNotations.
Open Scope R_scope.

Lemma div_lo a b : (0 < b)%Z -> IZR (a / b) <= IZR a / IZR b.
Proof. intros H. assert (B : 0 < IZR b) by (apply IZR_lt; auto).
  apply (Rmult_le_reg_r (IZR b)); auto. unfold Rdiv. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
  rewrite <- mult_IZR. apply IZR_le. rewrite Z.mul_comm. apply Z.mul_div_le; auto. Qed.
Lemma div_hi a b : (0 < b)%Z -> IZR a / IZR b <= IZR (a / b + 1).
Proof. intros H. assert (B : 0 < IZR b) by (apply IZR_lt; auto).
  apply (Rmult_le_reg_r (IZR b)); auto. unfold Rdiv. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
  rewrite <- mult_IZR. apply IZR_le. pose proof (Z.mul_succ_div_gt a b H). lia. Qed.

Section Fix.
Variable p : Z.
Hypothesis Hp : (0 <= p)%Z.
Definition Sc : Z := (2 ^ p)%Z.
Lemma Sc_pos : (0 < Sc)%Z. Proof. apply Z.pow_pos_nonneg; lia. Qed.
Lemma ScR : 0 < IZR Sc. Proof. apply IZR_lt, Sc_pos. Qed.
Definition shr (a : Z) := Z.shiftr a p.
Lemma shr_div a : shr a = (a / Sc)%Z. Proof. apply Z.shiftr_div_pow2; auto. Qed.
(** value of a fixed-point number *)
Definition v (a : Z) : R := IZR a / IZR Sc.
Lemma v_plus a b : v (a + b) = v a + v b. Proof. unfold v. rewrite plus_IZR. pose proof ScR. field; lra. Qed.
Lemma v_minus a b : v (a - b) = v a - v b. Proof. unfold v. rewrite minus_IZR. pose proof ScR. field; lra. Qed.
Lemma v_scal k a : v (k * a) = IZR k * v a. Proof. unfold v. rewrite mult_IZR. pose proof ScR. field; lra. Qed.
Lemma v_mul a b : v a * v b = IZR (a * b) / IZR Sc / IZR Sc. Proof. unfold v. rewrite mult_IZR. pose proof ScR. field; lra. Qed.
Lemma mul_lo a b : v (shr (a * b)) <= v a * v b.
Proof. rewrite v_mul. unfold v at 1. apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, ScR|].
  rewrite shr_div. apply div_lo, Sc_pos. Qed.
Lemma mul_hi a b : v a * v b <= v (shr (a * b) + 1).
Proof. rewrite v_mul. unfold v at 1. apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, ScR|].
  rewrite shr_div. apply div_hi, Sc_pos. Qed.
Lemma sdiv_lo a k : (0 < k)%Z -> v (a / k) <= v a / IZR k.
Proof. intros H. unfold v. replace (IZR a / IZR Sc / IZR k) with (IZR a / IZR k / IZR Sc).
  - apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, ScR|]. apply div_lo; auto.
  - pose proof ScR. assert (0 < IZR k) by (apply IZR_lt; auto). field; lra. Qed.
Lemma sdiv_hi a k : (0 < k)%Z -> v a / IZR k <= v (a / k + 1).
Proof. intros H. unfold v. replace (IZR a / IZR Sc / IZR k) with (IZR a / IZR k / IZR Sc).
  - apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, ScR|]. apply div_hi; auto.
  - pose proof ScR. assert (0 < IZR k) by (apply IZR_lt; auto). field; lra. Qed.
Lemma v_nonneg a : (0 <= a)%Z -> 0 <= v a.
Proof. intros H. unfold v. apply Rmult_le_pos; [apply IZR_le; auto|left; apply Rinv_0_lt_compat, ScR]. Qed.

Record st := { tl : Z; th : Z; al : Z; ah : Z }.
Fixpoint loop (n : nat) (c wl wh : Z) (s : st) : st :=
  match n with
  | O => s
  | S m => loop m (c + 2) wl wh
     {| tl := shr (tl s * wl); th := shr (th s * wh) + 1;
        al := al s + tl s / c; ah := ah s + th s / c + 1 |}
  end.
Definition inv (k : nat) (z : R) (s : st) :=
  (0 <= tl s)%Z /\ v (tl s) <= z ^ (2 * k + 1) <= v (th s) /\ v (al s) <= ath k z <= v (ah s).
Lemma loop_inv n : forall k c wl wh s z, 0 <= z -> (0 <= wl)%Z -> v wl <= z * z <= v wh ->
  c = Z.of_nat (2 * k + 1) -> inv k z s -> inv (k + n) z (loop n c wl wh s).
Proof. induction n as [|n IH]; intros k c wl wh s z Hz Hwl Hw Hc I.
  - rewrite Nat.add_0_r. exact I.
  - cbn [loop]. replace (k + S n)%nat with (S k + n)%nat by lia. apply IH; auto; [lia|].
    destruct I as [I0 [[I1 I2] [I3 I4]]]. 
    assert (Pk : 0 <= z ^ (2 * k + 1)) by (apply pow_le; auto).
    assert (Ez : z ^ (2 * S k + 1) = z ^ (2 * k + 1) * (z * z)).
    { replace (2 * S k + 1)%nat with (2 * k + 1 + 2)%nat by lia. rewrite (pow_add z (2 * k + 1) 2). simpl (z ^ 2). ring. }
    assert (Cp : (0 < c)%Z) by lia.
    assert (Cr : IZR c = INR (2 * k + 1)) by (rewrite Hc; symmetry; apply INR_IZR_INZ).
    assert (Ci : 0 < / IZR c) by (apply Rinv_0_lt_compat, IZR_lt; auto).
    unfold inv. cbn [tl th al ah]. split; [|split].
    + unfold shr. apply Z.shiftr_nonneg. nia.
    + rewrite Ez. split.
      * eapply Rle_trans; [apply mul_lo|]. apply Rmult_le_compat; auto using v_nonneg; lra.
      * eapply Rle_trans; [|apply mul_hi]. apply Rmult_le_compat; auto; try lra. apply Rle_0_sqr.
    + cbn [ath]. rewrite <- Cr. split.
      * rewrite v_plus. apply Rplus_le_compat; auto. eapply Rle_trans; [apply sdiv_lo; auto|].
        apply Rmult_le_compat_r; lra.
      * rewrite <- Z.add_assoc, v_plus. apply Rplus_le_compat; auto. eapply Rle_trans; [|apply sdiv_hi; auto].
        apply Rmult_le_compat_r; lra. Qed.

(** ln (a/b) for 0 < b <= a <= 2b : fixed-point enclosure (lo, hi) *)
Definition ln1z (n : nat) (a b : Z) : Z * Z :=
  let zl := ((a - b) * Sc / (a + b))%Z in
  let wl := shr (zl * zl) in let wh := (shr ((zl + 1) * (zl + 1)) + 1)%Z in
  let s := loop n 1 wl wh {| tl := zl; th := zl + 1; al := 0; ah := 0 |} in
  (2 * al s, 2 * (ah s + 2 * (th s / (Z.of_nat (2 * n + 1)) + 1)))%Z.
Theorem ln1z_sound n a b : (0 < b)%Z -> (b <= a)%Z -> (a <= 2 * b)%Z ->
  v (fst (ln1z n a b)) <= ln (IZR a / IZR b) <= v (snd (ln1z n a b)).
Proof. intros Hb Hab Ha.
  assert (B : 0 < IZR b) by (apply IZR_lt; auto).
  assert (AB : IZR b <= IZR a) by (apply IZR_le; auto).
  assert (A2 : IZR a <= 2 * IZR b) by (rewrite <- mult_IZR; apply IZR_le; auto).
  set (z := (IZR a - IZR b) / (IZR a + IZR b)).
  assert (Pab : 0 < IZR a + IZR b) by lra.
  assert (Z0 : 0 <= z) by (apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat; lra]).
  assert (Z1 : z <= / 3).
  { unfold z. apply (Rmult_le_reg_r (IZR a + IZR b)); auto. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra. }
  assert (EL : (1 + z) / (1 - z) = IZR a / IZR b) by (unfold z; field; split; lra).
  unfold ln1z. set (zl := ((a - b) * Sc / (a + b))%Z).
  assert (Ezz : IZR ((a - b) * Sc) / IZR (a + b) / IZR Sc = z).
  { rewrite mult_IZR, minus_IZR, plus_IZR. unfold z. pose proof ScR. field. lra. }
  assert (ZL : v zl <= z <= v (zl + 1)).
  { rewrite <- Ezz. unfold v, zl. split; (apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, ScR|]).
    - apply div_lo; lia. - apply div_hi; lia. }
  assert (ZLp : (0 <= zl)%Z) by (apply Z.div_pos; [pose proof Sc_pos; nia|lia]).
  set (wl := shr (zl * zl)). set (wh := (shr ((zl + 1) * (zl + 1)) + 1)%Z).
  assert (W : v wl <= z * z <= v wh).
  { split.
    - eapply Rle_trans; [apply mul_lo|]. apply Rmult_le_compat; auto using v_nonneg; lra.
    - eapply Rle_trans; [|apply mul_hi]. apply Rmult_le_compat; auto; lra. }
  assert (WL : (0 <= wl)%Z) by (unfold wl, shr; apply Z.shiftr_nonneg; nia).
  set (s := loop n 1 wl wh _).
  assert (I : inv n z s).
  { change n with (0 + n)%nat. apply loop_inv; auto. split; [|split]; cbn [tl th al ah]; auto.
    - simpl (z ^ (2 * 0 + 1)). rewrite Rmult_1_r. auto.
    - unfold v. cbn [ath]. unfold Rdiv. rewrite Rmult_0_l. lra. }
  destruct I as [_ [[_ I2] [I3 I4]]]. cbn [fst snd]. rewrite <- EL. split.
  - rewrite v_scal. eapply Rle_trans; [|apply (ln_lower n z); split; [exact Z0|lra]].
    apply Rmult_le_compat_l; lra.
  - rewrite v_scal, v_plus, v_scal. eapply Rle_trans; [apply (ln_upper n z); split; [exact Z0|lra]|].
    apply Rmult_le_compat_l; [lra|]. apply Rplus_le_compat; auto.
    assert (Zz : z * z <= / 2) by nra.
    assert (Kp : (0 < Z.of_nat (2 * n + 1))%Z) by lia.
    assert (E1 : z ^ (2 * n + 1) / INR (2 * n + 1) <= v (th s / Z.of_nat (2 * n + 1) + 1)).
    { eapply Rle_trans; [|apply sdiv_hi; auto]. rewrite <- INR_IZR_INZ. apply Rmult_le_compat_r; auto.
      left; apply Rinv_0_lt_compat, lt_0_INR; lia. }
    assert (E0 : 0 <= z ^ (2 * n + 1) / INR (2 * n + 1)).
    { apply Rmult_le_pos; [apply pow_le; auto|left; apply Rinv_0_lt_compat, lt_0_INR; lia]. }
    assert (E2 : / (1 - z * z) <= 2).
    { replace 2 with (/ / 2) by field. apply Rinv_le_contravar; lra. }
    assert (E3 : 0 <= / (1 - z * z)) by (left; apply Rinv_0_lt_compat; lra).
    rewrite (Rmult_comm 2). unfold Rdiv at 1. apply Rmult_le_compat; auto. Qed.

(** ln (a/b), any a, b > 0, with binary range reduction chosen by Z.log2 and re-checked *)
Definition lnz (n : nat) (a b : Z) : option (Z * Z) :=
  let up := (b <=? a)%Z in
  let k := if up then Z.log2 (a / b) else Z.log2_up ((b + a - 1) / a) in
  let a' := if up then a else (a * 2 ^ k)%Z in
  let b' := if up then (b * 2 ^ k)%Z else b in
  if (0 <? a)%Z && (0 <? b)%Z && (0 <=? k)%Z && (b' <=? a')%Z && (a' <=? 2 * b')%Z then
    let '(lo, hi) := ln1z n a' b' in let '(l2, h2) := ln1z n 2 1 in
    Some (if up then (lo + k * l2, hi + k * h2) else (lo - k * h2, hi - k * l2))%Z
  else None.
Theorem lnz_sound n a b lo hi : lnz n a b = Some (lo, hi) ->
  0 < IZR a /\ 0 < IZR b /\ v lo <= ln (IZR a / IZR b) <= v hi.
Proof. unfold lnz. set (up := (b <=? a)%Z).
  set (k := if up then Z.log2 (a / b) else Z.log2_up ((b + a - 1) / a)).
  set (a' := if up then a else (a * 2 ^ k)%Z). set (b' := if up then (b * 2 ^ k)%Z else b).
  destruct ((0 <? a)%Z && (0 <? b)%Z && (0 <=? k)%Z && (b' <=? a')%Z && (a' <=? 2 * b')%Z) eqn:E; [|discriminate].
  rewrite !andb_true_iff in E. destruct E as [[[[Ea Eb] Ek] E1] E2].
  apply Z.ltb_lt in Ea, Eb. apply Z.leb_le in Ek, E1, E2. clearbody k.
  assert (A : 0 < IZR a) by (apply IZR_lt; auto). assert (B : 0 < IZR b) by (apply IZR_lt; auto).
  assert (P2 : (0 < 2 ^ k)%Z) by (apply Z.pow_pos_nonneg; lia).
  assert (P2R : 0 < IZR (2 ^ k)) by (apply IZR_lt; auto).
  assert (B' : (0 < b')%Z) by (unfold b'; destruct up; nia).
  pose proof (ln1z_sound n a' b' B' E1 E2) as S1.
  pose proof (ln1z_sound n 2 1 ltac:(lia) ltac:(lia) ltac:(lia)) as S2.
  destruct (ln1z n a' b') as [lo1 hi1]. destruct (ln1z n 2 1) as [l2 h2]. cbn [fst snd] in *.
  replace (IZR 2 / IZR 1) with 2 in S2 by (unfold Rdiv; rewrite Rinv_1; ring).
  intros H. split; auto. split; auto.
  assert (LP : ln (IZR (2 ^ k)) = IZR k * ln 2).
  { rewrite <- (Z2Nat.id k Ek). rewrite <- pow_IZR, ln_pow by lra. rewrite INR_IZR_INZ. auto. }
  assert (PK : 0 <= IZR k) by (apply IZR_le; auto).
  assert (A1 : IZR k * v l2 <= IZR k * ln 2) by (apply Rmult_le_compat_l; lra).
  assert (A2 : IZR k * ln 2 <= IZR k * v h2) by (apply Rmult_le_compat_l; lra).
  assert (Dab : 0 < IZR a / IZR b) by (apply Rdiv_lt_0_compat; auto).
  unfold a', b' in *. destruct up; injection H as <- <-; rewrite ?v_plus, ?v_minus, !v_scal.
  - assert (L : ln (IZR a / IZR b) = ln (IZR a / IZR (b * 2 ^ k)) + IZR k * ln 2).
    { rewrite <- LP, <- ln_mult; auto; rewrite mult_IZR; [f_equal; field; lra|].
      apply Rdiv_lt_0_compat; auto. apply Rmult_lt_0_compat; auto. }
    lra.
  - assert (L : ln (IZR (a * 2 ^ k) / IZR b) = ln (IZR a / IZR b) + IZR k * ln 2).
    { rewrite <- LP, <- ln_mult; auto. rewrite mult_IZR. f_equal. field; lra. }
    lra. Qed.
End Fix.

(** certificate: ln (a/b) in [lo/den, hi/den] *)
Definition check_lnz (p : Z) (n : nat) (a b lo hi den : Z) : bool :=
  (0 <=? p)%Z && (0 <? den)%Z && match lnz p n a b with
  | Some (l, h) => (lo * Sc p <=? l * den)%Z && (h * den <=? hi * Sc p)%Z | None => false end.
Lemma cmp_lo p x l den : (0 <= p)%Z -> (0 < den)%Z -> (x * Sc p <= l * den)%Z -> IZR x / IZR den <= v p l.
Proof. intros Hp Hd H. pose proof (ScR p Hp). assert (0 < IZR den) by (apply IZR_lt; auto). apply IZR_le in H. rewrite !mult_IZR in H.
  unfold v. apply (Rmult_le_reg_r (IZR den * IZR (Sc p))); [apply Rmult_lt_0_compat; auto|].
  replace (IZR x / IZR den * (IZR den * IZR (Sc p))) with (IZR x * IZR (Sc p)) by (field; lra).
  replace (IZR l / IZR (Sc p) * (IZR den * IZR (Sc p))) with (IZR l * IZR den) by (field; lra). auto. Qed.
Lemma cmp_hi p x h den : (0 <= p)%Z -> (0 < den)%Z -> (h * den <= x * Sc p)%Z -> v p h <= IZR x / IZR den.
Proof. intros Hp Hd H. pose proof (ScR p Hp). assert (0 < IZR den) by (apply IZR_lt; auto). apply IZR_le in H. rewrite !mult_IZR in H.
  unfold v. apply (Rmult_le_reg_r (IZR den * IZR (Sc p))); [apply Rmult_lt_0_compat; auto|].
  replace (IZR x / IZR den * (IZR den * IZR (Sc p))) with (IZR x * IZR (Sc p)) by (field; lra).
  replace (IZR h / IZR (Sc p) * (IZR den * IZR (Sc p))) with (IZR h * IZR den) by (field; lra). auto. Qed.
Theorem check_lnz_sound p n a b lo hi den : check_lnz p n a b lo hi den = true ->
  IZR lo / IZR den <= ln (IZR a / IZR b) <= IZR hi / IZR den.
Proof. unfold check_lnz. rewrite !andb_true_iff. intros [[H0 H1] H2]. apply Z.leb_le in H0. apply Z.ltb_lt in H1.
  destruct (lnz p n a b) as [[l h]|] eqn:E; [|discriminate]. apply andb_true_iff in H2. destruct H2 as [H2 H3].
  apply Z.leb_le in H2, H3. apply lnz_sound in E; auto. destruct E as [_ [_ E]].
  pose proof (cmp_lo p lo l den H0 H1 H2). pose proof (cmp_hi p hi h den H0 H1 H3). lra. Qed.

(** forward KL of p = a/D and q = b/E given by numerators: sum a/D ln((a E)/(b D)) *)
Definition KLZ (D E : Z) (l : list (Z * Z)) : R :=
  Rsum l (fun ab => IZR (fst ab) / IZR D * ln ((IZR (fst ab) / IZR D) / (IZR (snd ab) / IZR E))).
Fixpoint klz (p : Z) (n : nat) (D E : Z) (l : list (Z * Z)) : option (Z * Z) :=
  match l with
  | [] => Some (0, 0)%Z
  | (a, b) :: l' => match lnz p n (a * E) (b * D), klz p n D E l' with
     | Some (x, y), Some (lo, hi) => if (0 <? a)%Z then Some (a * x + lo, a * y + hi)%Z else None
     | _, _ => None end
  end.
Theorem klz_sound p n D E l : (0 <= p)%Z -> (0 < D)%Z -> (0 < E)%Z -> forall lo hi, klz p n D E l = Some (lo, hi) ->
  v p lo / IZR D <= KLZ D E l <= v p hi / IZR D.
Proof. intros Hp HD HE. assert (D0 : 0 < IZR D) by (apply IZR_lt; auto). assert (E0 : 0 < IZR E) by (apply IZR_lt; auto).
  unfold KLZ. induction l as [|[a b] l IH]; intros lo hi H.
  - cbn in H. injection H as <- <-. rewrite Rsum_nil. unfold v, Rdiv. rewrite !Rmult_0_l. lra.
  - cbn [klz] in H. destruct (lnz p n (a * E) (b * D)) as [[x y]|] eqn:EL; [|discriminate].
    destruct (klz p n D E l) as [[lo' hi']|]; [|discriminate]. destruct (0 <? a)%Z eqn:Ea; [|discriminate].
    apply Z.ltb_lt in Ea. specialize (IH _ _ eq_refl). injection H as <- <-.
    apply lnz_sound in EL; auto. destruct EL as [L1 [L2 L3]]. rewrite !mult_IZR in *.
    assert (A0 : 0 < IZR a) by (apply IZR_lt; auto).
    assert (B0 : 0 < IZR b) by (apply (Rmult_lt_reg_r (IZR D)); lra).
    rewrite Rsum_cons. cbn [fst snd]. rewrite !v_plus, !v_scal by auto.
    replace (IZR a / IZR D / (IZR b / IZR E)) with (IZR a * IZR E / (IZR b * IZR D)) by (field; lra).
    set (Lg := ln _) in *. set (tailsum := Rsum l _) in *.
    assert (AD : 0 < IZR a / IZR D) by (apply Rdiv_lt_0_compat; auto).
    replace ((IZR a * v p x + v p lo') / IZR D) with (IZR a / IZR D * v p x + v p lo' / IZR D) by (field; lra).
    replace ((IZR a * v p y + v p hi') / IZR D) with (IZR a / IZR D * v p y + v p hi' / IZR D) by (field; lra).
    assert (IZR a / IZR D * v p x <= IZR a / IZR D * Lg <= IZR a / IZR D * v p y) by (split; apply Rmult_le_compat_l; lra).
    lra. Qed.
Definition check_klz (p : Z) (n : nat) (D E : Z) (l : list (Z * Z)) (lo hi den : Z) : bool :=
  (0 <=? p)%Z && (0 <? D)%Z && (0 <? E)%Z && (0 <? den)%Z && match klz p n D E l with
  | Some (x, y) => (lo * D * Sc p <=? x * den)%Z && (y * den <=? hi * D * Sc p)%Z | None => false end.
Theorem check_klz_sound p n D E l lo hi den : check_klz p n D E l lo hi den = true ->
  IZR lo / IZR den <= KLZ D E l <= IZR hi / IZR den.
Proof. unfold check_klz. rewrite !andb_true_iff. intros [[[[H0 H1] H2] H3] H4].
  apply Z.leb_le in H0. apply Z.ltb_lt in H1, H2, H3.
  destruct (klz p n D E l) as [[x y]|] eqn:EK; [|discriminate]. apply andb_true_iff in H4. destruct H4 as [H4 H5].
  apply Z.leb_le in H4, H5. apply klz_sound in EK; auto.
  pose proof (cmp_lo p _ _ den H0 H3 H4) as C1. pose proof (cmp_hi p _ _ den H0 H3 H5) as C2. rewrite mult_IZR in C1, C2.
  assert (D0 : 0 < IZR D) by (apply IZR_lt; auto). assert (N0 : 0 < IZR den) by (apply IZR_lt; auto).
  assert (F1 : IZR lo / IZR den <= v p x / IZR D).
  { replace (IZR lo / IZR den) with (IZR lo * IZR D / IZR den / IZR D) by (field; lra).
    apply Rmult_le_compat_r; auto. left; apply Rinv_0_lt_compat; auto. }
  assert (F2 : v p y / IZR D <= IZR hi / IZR den).
  { replace (IZR hi / IZR den) with (IZR hi * IZR D / IZR den / IZR D) by (field; lra).
    apply Rmult_le_compat_r; auto. left; apply Rinv_0_lt_compat; auto. }
  lra. Qed.

(** KLZ is the library KL, with the numerator pairs themselves as outcomes. *)
Theorem KLZ_is_KL D E l : KLZ D E l =
  KL.KL l (fun ab => IZR (fst ab) / IZR D) (fun ab => IZR (snd ab) / IZR E).
Proof. reflexivity. Qed.
