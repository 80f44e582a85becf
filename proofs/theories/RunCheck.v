(** * Whole-run certificates

    A computed check implies that the procedure returns exactly the trace (beta = 0).

      spec, trace        problem and claimed run
      check_run N sp tr  the checker; it never divides

    Python, to come: exactgrpo.certificates.coq *)
From Coq Require Import Reals QArith Qreals List Lra Lia Arith Bool.
From Coquelicot Require Import Coquelicot.
From ExactGRPO Require Import FinSum Advantages Clip KL Kink Objective Rd Procedure Grpo Softmax Poly RatFam OracleInst Cert.
Import ListNotations.
Open Scope R_scope.

(** the problem: everything rational *)
Record spec := Spec {
  sp_n : nat;                          (* dimension minus one *)
  sp_ws : list (list pexp);            (* prompt, response: polynomial weight *)
  sp_cons : list pexp;                 (* extra constraints of U *)
  sp_rew : list (list Q);              (* prompt, response: reward *)
  sp_eps : Q; sp_eta : list (list Q);  (* step sizes, t then k *)
  sp_G : nat; sp_T : nat; sp_K : nat;
  sp_draws : list (list (list nat));   (* t, prompt, sample: response index *)
  sp_th0 : list Q }.

Section Check.
Variable N : num.
Variable sp : spec.
Notation C := (car N).
Notation e := (ev N).
Notation n := (sp_n sp).
Notation G := (sp_G sp).
Notation K := (sp_K sp).
Notation T := (sp_T sp).
Notation ws := (sp_ws sp).
Notation vec := (nvec N n).
Notation M := (length ws).
Definition wl_ q := wl ws q.
Definition rewQ (q y : nat) : Q := nth y (nth q (sp_rew sp) []) 0%Q.
Definition rewR q y : R := Q2R (rewQ q y).
Definition etaQ t k : Q := nth (pred k) (nth (pred t) (sp_eta sp) []) 0%Q.
Definition etaR t k : R := Q2R (etaQ t k).
Definition epsR : R := Q2R (sp_eps sp).
Definition drawS (t q i : nat) : nat := nth i (nth q (nth (pred t) (sp_draws sp) []) []) 0%nat.

(** the trace *)
Record tstep := TStep { t_zinv : list C;          (* inverse normalisers at the query point *)
  t_side : list (list (option bool));             (* per sample: Some true = unclipped branch active, Some false = flat, None = on the kink with nonzero derivative *)
  t_grad : option vec; t_prop : vec; t_in : bool }.
Record ostep := OStep { o_std : list C; o_smp : list (list (nat * (C * C))); (* y, advantage, 1/frozen mass *) o_steps : list tstep }.
Record trace := Trace { tr_outer : list ostep; tr_status : status; tr_th : vec }.

Fixpoint vofl (m : nat) (l : list Q) : nvec N m :=
  match m return nvec N m with O => nQ N (nth 0 l 0%Q) | S m' => (nQ N (nth 0 l 0%Q), vofl m' (tl l)) end.

Definition memN (th : vec) : bool := forallb (fun p => npos N (pN N n p th)) (allc ws (sp_cons sp)).

(** frozen data *)
Definition groupS t q : list nat := map (drawS t q) (seq 0 G).
Definition chk_prompt (th : vec) (t q : nat) (s : C) (smp : list (nat * (C * C))) : bool :=
  let rs := map (rewQ q) (groupS t q) in
  let m := Qred (qsum rs (fun r => r) / qlen rs)%Q in
  let v := Qred (qsum rs (fun r => (r - m) * (r - m))%Q / qlen rs)%Q in
  check_group rs m v &&
  (match nsgn N s with Lt => false | _ => true end) && neqb N (nmul N s s) (nQ N v) &&
  (if list_eq_dec Nat.eq_dec (map fst smp) (groupS t q) then true else false) &&
  (let z := pN N n (psum (wl ws q)) th in
   forallb (fun x => let '(y, (a, p0i)) := x in
     Nat.ltb y (length (wl ws q)) &&
     (if npos N s then neqb N (nmul N a s) (nQ N (rewQ q y - m)%Q) else neqb N a (n0 N)) &&
     neqb N (nmul N p0i (pN N n (wt ws q y) th)) z) smp).
Definition chk_frozen (th : vec) (t : nat) (o : ostep) : bool :=
  forallb (fun q => chk_prompt th t q (nth q (o_std o) (n0 N)) (nth q (o_smp o) [])) (seq 0 M).

(** gradient *)
Definition zi (zs : list C) q := nth q zs (n0 N).
Definition chk_z (th : vec) (zs : list C) : bool :=
  forallb (fun q => neqb N (nmul N (zi zs q) (pN N n (psum (wl ws q)) th)) (n1 N)) (seq 0 M).
Definition massN (th : vec) (zs : list C) q y : C := nmul N (pN N n (wt ws q y) th) (zi zs q).
Definition dmassN (th : vec) (zs : list C) q y (p : C) (dz : vec) : vec :=
  vscal N n (zi zs q) (vadd N n (gN N n (wt ws q y) th) (vscal N n (nmul N (nQ N (-1)) p) dz)).
Definition side_of (A rho : C) (flat : bool) : option bool :=
  match nsgn N A with
  | Eq => Some false
  | Gt => match nsgn N (nsub N rho (nQ N (1 + sp_eps sp)%Q)) with Lt => Some true | Gt => Some false | Eq => if flat then Some false else None end
  | Lt => match nsgn N (nsub N rho (nQ N (1 - sp_eps sp)%Q)) with Gt => Some true | Lt => Some false | Eq => if flat then Some false else None end
  end.
(** sum over the samples of one prompt: sides and accumulated vector *)
Fixpoint smp_sum (th : vec) (zs : list C) q (dz : vec) (smp : list (nat * (C * C))) : list (option bool) * vec :=
  match smp with
  | [] => ([], vzero N n)
  | (y, (a, p0i)) :: r =>
    let p := massN th zs q y in
    let d := dmassN th zs q y p dz in
    let sd := side_of a (nmul N p p0i) (vis0 N n d) in
    let '(ss, acc) := smp_sum th zs q dz r in
    (sd :: ss, match sd with Some true => vadd N n (vscal N n (nmul N a p0i) d) acc | _ => acc end)
  end.
Definition prm_sum (th : vec) (zs : list C) (o : ostep) q := smp_sum th zs q (gN N n (psum (wl ws q)) th) (nth q (o_smp o) []).
Fixpoint all_sum th zs o (qs : list nat) : list (list (option bool)) * vec :=
  match qs with
  | [] => ([], vzero N n)
  | q :: r => let '(ss, v) := prm_sum th zs o q in let '(sss, acc) := all_sum th zs o r in (ss :: sss, vadd N n v acc)
  end.
Definition defined (sss : list (list (option bool))) : bool := forallb (forallb (fun s => match s with None => false | _ => true end)) sss.
Definition wgt : Q := (1 / (inject_Z (Z.of_nat M) * inject_Z (Z.of_nat G)))%Q.
Definition optb_dec : forall a b : option bool, {a = b} + {a <> b}. Proof. decide equality. apply bool_dec. Defined.
Definition chk_grad (th : vec) (o : ostep) (s : tstep) : bool :=
  chk_z th (t_zinv s) &&
  (let '(sss, v) := all_sum th (t_zinv s) o (seq 0 M) in
   (if list_eq_dec (list_eq_dec optb_dec) sss (t_side s) then true else false) &&
   match t_grad s with
   | Some g => defined sss && veqb N n g (vscal N n (nQ N wgt) v)
   | None => negb (defined sss)
   end).

Fixpoint chk_inner (o : ostep) (t k m : nat) (th : vec) (steps : list tstep) : option (option status * vec) :=
  match m, steps with
  | O, [] => Some (None, th)
  | S m', s :: rest =>
    if chk_grad th o s then
      match t_grad s with
      | None => match rest with [] => Some (Some UndefinedGradient, th) | _ => None end
      | Some g =>
        if veqb N n (t_prop s) (vadd N n th (vscal N n (nQ N (etaQ t k)) g)) && Bool.eqb (t_in s) (memN (t_prop s)) then
          if t_in s then chk_inner o t (S k) m' (t_prop s) rest
          else match rest with [] => Some (Some InvalidUpdate, th) | _ => None end
        else None
      end
    else None
  | _, _ => None
  end.
Fixpoint chk_outer (t m : nat) (th : vec) (os : list ostep) : option (status * vec) :=
  match m, os with
  | O, [] => Some (Complete, th)
  | S m', o :: rest =>
    if chk_frozen th t o then
      match chk_inner o t 1 K th (o_steps o) with
      | None => None
      | Some (Some st, th') => match rest with [] => Some (st, th') | _ => None end
      | Some (None, th') => chk_outer (S t) m' th' rest
      end
    else None
  | _, _ => None
  end.
Definition st_eqb (a b : status) := match a, b with Complete, Complete | UndefinedGradient, UndefinedGradient | InvalidUpdate, InvalidUpdate => true | _, _ => false end.
Definition chk_spec : bool :=
  negb (Nat.eqb M 0) && Nat.leb 2 G && Nat.leb 1 T && Nat.leb 1 K &&
  negb (Qle_bool (sp_eps sp) 0) && negb (Qle_bool 1 (sp_eps sp)) &&
  forallb (fun l => negb (Nat.eqb (length l) 0)) ws &&
  Nat.eqb (length (sp_th0 sp)) (S n) &&
  forallb (fun t => forallb (fun k => negb (Qle_bool (etaQ t k) 0)) (seq 1 K)) (seq 1 T) && memN (vofl n (sp_th0 sp)).
Definition check_run (tr : trace) : bool :=
  chk_spec &&
  match chk_outer 1 T (vofl n (sp_th0 sp)) (tr_outer tr) with
  | Some (st, th) => st_eqb st (tr_status tr) && veqb N n th (tr_th tr)
  | None => false
  end.

(** ---------------- meaning over the reals ---------------- *)
Notation vv := (vev N n).
Notation U := (Urat n ws (sp_cons sp)).
Notation B := (Brat ws).
Notation prompts := (prompts_rat ws).
Notation pi := (pirat n ws).
Notation Dpi := (Dpirat n ws).
Variable pref : nat -> nat -> R.
Hypothesis pref_pos : forall q y, In q prompts -> In y (B q) -> 0 < pref q y.
Variable memU : Rvec n -> bool.
Hypothesis memU_exact : forall th, memU th = true <-> U th.
Variable draw : nat -> Rvec n -> nat -> nat -> nat.
Hypothesis draw_is : forall t th q i, (1 <= t <= T)%nat -> (q < M)%nat -> (i < G)%nat -> draw t th q i = drawS t q i.
Notation Data := (Rvec n * (nat -> list nat))%type.
Variable oracle : Data -> Rvec n -> option (Rvec n).
Hypothesis oracle_exact : forall d th g, data_ok prompts B U d -> U th ->
  (oracle d th = Some g <-> gradient_at (Fobj prompts B pi pref rewR epsR 0 d) th g).
Notation frz := (freeze Nat.eq_dec).
Notation updR := (upd etaR).
Definition real_run (th0 : Rvec n) := grpo prompts G T K etaR memU draw oracle Nat.eq_dec th0.

Lemma memN_iff th : memN th = true <-> U (vv th).
Proof. unfold memN, Urat. rewrite forallb_forall. split; intros H p Hp; specialize (H p Hp).
  - apply npos_iff in H. rewrite ev_pN in H. exact H.
  - apply npos_iff. rewrite ev_pN. exact H. Qed.
Lemma memU_memN th : memU (vv th) = memN th.
Proof. pose proof (memU_exact (vv th)) as H1. pose proof (memN_iff th) as H2.
  destruct (memU (vv th)), (memN th); auto; [symmetry|]; tauto. Qed.

Section Frozen.
Variables (t : nat) (thf : vec) (o : ostep) (d : Data).
Hypothesis spec_ok : chk_spec = true.
Hypothesis HUf : U (vv thf).
Hypothesis Hfr : chk_frozen thf t o = true.
Hypothesis d_fst : fst d = vv thf.
Hypothesis d_snd : forall q, In q prompts -> snd d q = groupS t q.
Notation smp q := (nth q (o_smp o) []).

Lemma in_prompts q : In q prompts <-> In q (seq 0 M).
Proof. reflexivity. Qed.
Lemma G_pos : (2 <= G)%nat.
Proof. unfold chk_spec in spec_ok. rewrite !andb_true_iff in spec_ok. destruct spec_ok as [[[[[[[[[_ H] _] _] _] _] _] _] _] _]. apply Nat.leb_le; auto. Qed.
Lemma M_pos : prompts <> [].
Proof. unfold chk_spec in spec_ok. rewrite !andb_true_iff in spec_ok. destruct spec_ok as [[[[[[[[[H _] _] _] _] _] _] _] _] _].
  unfold prompts_rat in *. destruct (length ws); [discriminate|discriminate]. Qed.
Lemma eps_rng : 0 < epsR < 1.
Proof. unfold chk_spec in spec_ok. rewrite !andb_true_iff in spec_ok. destruct spec_ok as [[[[[[[[[_ _] _] _] H1] H2] _] _] _] _].
  unfold epsR. rewrite <- Q2R_0', <- Q2R_1'. split; apply Qlt_Rlt, Qnot_le_lt; intros H; apply Qle_bool_iff in H; rewrite H in *; discriminate. Qed.

Lemma smp_ok q : In q prompts -> map fst (smp q) = groupS t q /\
  forall y a p0i, In (y, (a, p0i)) (smp q) -> In y (B q) /\ e a = Adv rewR (snd d) q y /\ e p0i = / pi (fst d) q y.
Proof. intros Hq. unfold chk_frozen in Hfr. rewrite forallb_forall in Hfr. specialize (Hfr q Hq).
  unfold chk_prompt in Hfr. cbv zeta in Hfr.
  set (rs := map (rewQ q) (groupS t q)) in *.
  set (m := Qred (qsum rs (fun r => r) / qlen rs)%Q) in *.
  set (v := Qred (qsum rs (fun r => (r - m) * (r - m))%Q / qlen rs)%Q) in *.
  set (s := nth q (o_std o) (n0 N)) in *.
  rewrite !andb_true_iff in Hfr. destruct Hfr as [[[[H1 H2] H3] H4] H5].
  destruct (list_eq_dec Nat.eq_dec (map fst (smp q)) (groupS t q)) as [E|]; [|discriminate].
  split; auto. intros y a p0i Hin. rewrite forallb_forall in H5. specialize (H5 _ Hin). cbv beta iota in H5.
  rewrite !andb_true_iff in H5. destruct H5 as [[H5 H6] H7].
  assert (Hy : In y (B q)). { unfold Brat. apply in_seq. apply Nat.ltb_lt in H5. unfold wl in *. lia. }
  split; auto. apply check_group_sound in H1. destruct H1 as [Mn Va].
  assert (Ers : map (rewR q) (snd d q) = map Q2R rs).
  { rewrite d_snd by auto. unfold rs. rewrite map_map. reflexivity. }
  assert (Es : sd (map Q2R rs) = e s).
  { unfold sd. rewrite Va. apply neqb_iff in H3. rewrite ev_mul, ev_Q in H3. rewrite <- H3. apply sqrt_square.
    pose proof (ev_sgn N s) as Sg. destruct (nsgn N s); try discriminate; lra. }
  split.
  - unfold Adv, adv. rewrite Ers, Es, Mn. destruct (npos N s) eqn:Ps.
    + apply npos_iff in Ps. destruct (Rlt_dec 0 (e s)); [|lra]. apply neqb_iff in H6. rewrite ev_mul, ev_Q, Q2R_minus in H6.
      unfold rewR. rewrite <- H6. field. lra.
    + assert (~ 0 < e s) by (intros Hs; apply npos_iff in Hs; congruence). destruct (Rlt_dec 0 (e s)); [lra|].
      apply neqb_iff in H6. rewrite H6. apply e_n0.
  - apply neqb_iff in H7. rewrite ev_mul, !ev_pN in H7. rewrite d_fst. unfold pirat.
    pose proof (wt_pos n ws (sp_cons sp) (vv thf) HUf q y Hq Hy) as P1.
    change (pR n (psum (wl ws q)) (vv thf)) with (Zr n ws q (vv thf)) in H7.
    assert (P2 : 0 < Zr n ws q (vv thf)). { apply (Zr_pos n ws (sp_cons sp)); auto. intros E0; rewrite E0 in Hy; inversion Hy. }
    rewrite <- H7 in *. field. split; [lra|]. intros Z. rewrite Z in P2. lra. Qed.
Lemma d_ok : data_ok prompts B U d.
Proof. split; [rewrite d_fst; auto|]. intros q Hq. rewrite d_snd by auto. split.
  - unfold groupS. pose proof G_pos. destruct G; [lia|discriminate].
  - intros y Hy. destruct (smp_ok q Hq) as [E H]. rewrite <- E in Hy. apply in_map_iff in Hy.
    destruct Hy as [[y' [a p]] [<- Hin]]. apply (H y' a p Hin). Qed.

Section Query.
Variables (th : vec) (s : tstep).
Hypothesis HU : U (vv th).
Hypothesis Hz : chk_z th (t_zinv s) = true.
Notation zs := (t_zinv s).
Lemma zi_ok q : In q prompts -> e (zi zs q) = / Zr n ws q (vv th) /\ Zr n ws q (vv th) <> 0.
Proof. intros Hq. unfold chk_z in Hz. rewrite forallb_forall in Hz. specialize (Hz q Hq). apply neqb_iff in Hz.
  rewrite ev_mul, ev_pN, e_n1 in Hz. change (pR n (psum (wl ws q)) (vv th)) with (Zr n ws q (vv th)) in Hz.
  assert (Zr n ws q (vv th) <> 0) by (intros Z; rewrite Z in Hz; lra). split; auto.
  apply Rmult_eq_reg_r with (Zr n ws q (vv th)); auto. rewrite Hz. field. auto. Qed.
Lemma mass_ok q y : In q prompts -> e (massN th zs q y) = pi (vv th) q y.
Proof. intros Hq. unfold massN, pirat. rewrite ev_mul, ev_pN, (proj1 (zi_ok q Hq)). reflexivity. Qed.
Lemma dmass_ok q y : In q prompts -> vv (dmassN th zs q y (massN th zs q y) (gN N n (psum (wl ws q)) th)) = Dpi (vv th) q y.
Proof. intros Hq. unfold dmassN, Dpirat. rewrite vev_scal, vev_add, vev_scal, !vev_gN, (proj1 (zi_ok q Hq)), ev_mul, ev_Q, Q2R_m1, mass_ok by auto.
  unfold DZr. do 3 f_equal. ring. Qed.

Notation L := (fun q y h => dot n (Dpi (vv th) q y) h).
Notation cond q y := (Adv rewR (snd d) q y <> 0 -> ratio pi (fst d) q y (vv th) = kink epsR (Adv rewR (snd d) q y) -> forall h, L q y h = 0).
Definition coef q y := gate epsR (Adv rewR (snd d) q y) (ratio pi (fst d) q y (vv th)) * Adv rewR (snd d) q y * / pi (fst d) q y.

Lemma side_ok q y a p0i : In q prompts -> In (y, (a, p0i)) (smp q) ->
  match side_of a (nmul N (massN th zs q y) p0i) (vis0 N n (dmassN th zs q y (massN th zs q y) (gN N n (psum (wl ws q)) th))) with
  | None => ~ cond q y
  | Some b => cond q y /\ gate epsR (Adv rewR (snd d) q y) (ratio pi (fst d) q y (vv th)) = (if b then 1 else 0)
  end.
Proof. intros Hq Hin. destruct (smp_ok q Hq) as [_ Sm]. destruct (Sm _ _ _ Hin) as [Hy [Ea Ep]].
  pose proof eps_rng as Er.
  set (dm := dmassN th zs q y (massN th zs q y) (gN N n (psum (wl ws q)) th)).
  assert (Ed : vis0 N n dm = true <-> forall h, L q y h = 0).
  { rewrite vis0_iff. unfold dm. rewrite dmass_ok by auto. reflexivity. }
  assert (Rho : e (nmul N (massN th zs q y) p0i) = ratio pi (fst d) q y (vv th)).
  { rewrite ev_mul, mass_ok, Ep by auto. reflexivity. }
  rewrite <- Ea, <- Rho. unfold side_of. pose proof (ev_sgn N a) as Sa. destruct (nsgn N a).
  - rewrite Sa. split; [intros; lra|]. unfold gate, gate2. destruct (Rlt_dec 0 0); [lra|]. destruct (Rlt_dec 0 0); [lra|auto].
  - assert (Kk : kink epsR (e a) = 1 - epsR) by (unfold kink; destruct (Rle_dec 0 (e a)); lra). rewrite Kk.
    assert (E1 : Q2R (1 - sp_eps sp) = 1 - epsR) by (rewrite Q2R_minus, Q2R_1'; auto).
    pose proof (ev_sgn N (nsub N (nmul N (massN th zs q y) p0i) (nQ N (1 - sp_eps sp)))) as Sr.
    rewrite e_sub, ev_Q, E1 in Sr. unfold gate, gate2. destruct (Rlt_dec 0 (e a)) as [?H|?H]; [lra|]. destruct (Rlt_dec (e a) 0) as [?H|?H]; [|lra].
    destruct (nsgn N (nsub N (nmul N (massN th zs q y) p0i) (nQ N (1 - sp_eps sp)))).
    + destruct (vis0 N n dm) eqn:Ez.
      * split; [intros _ _; apply Ed; auto|]. destruct (Rlt_dec _ _); lra.
      * intros Hc. assert (X : forall h, L q y h = 0) by (apply Hc; lra). apply Ed in X. congruence.
    + split; [intros; lra|]. destruct (Rlt_dec _ _); lra.
    + split; [intros; lra|]. destruct (Rlt_dec _ _); lra.
  - assert (Kk : kink epsR (e a) = 1 + epsR) by (unfold kink; destruct (Rle_dec 0 (e a)); lra). rewrite Kk.
    assert (E1 : Q2R (1 + sp_eps sp) = 1 + epsR) by (rewrite Q2R_plus, Q2R_1'; auto).
    pose proof (ev_sgn N (nsub N (nmul N (massN th zs q y) p0i) (nQ N (1 + sp_eps sp)))) as Sr.
    rewrite e_sub, ev_Q, E1 in Sr. unfold gate, gate2. destruct (Rlt_dec 0 (e a)) as [?H|?H]; [|lra].
    destruct (nsgn N (nsub N (nmul N (massN th zs q y) p0i) (nQ N (1 + sp_eps sp)))).
    + destruct (vis0 N n dm) eqn:Ez.
      * split; [intros _ _; apply Ed; auto|]. destruct (Rlt_dec _ _); lra.
      * intros Hc. assert (X : forall h, L q y h = 0) by (apply Hc; lra). apply Ed in X. congruence.
    + split; [intros; lra|]. destruct (Rlt_dec _ _); lra.
    + split; [intros; lra|]. destruct (Rlt_dec _ _); lra. Qed.

Notation isdef := (fun x : option bool => match x with None => false | _ => true end).
Lemma smp_sum_ok q l : In q prompts -> incl l (smp q) ->
  let '(ss, v) := smp_sum th zs q (gN N n (psum (wl ws q)) th) l in
  (forallb isdef ss = true <-> forall y, In y (map fst l) -> cond q y) /\
  (forallb isdef ss = true -> vv v = Vsum (map fst l) (fun y => scal (coef q y : R_AbsRing) (Dpi (vv th) q y))).
Proof. intros Hq. induction l as [|[y [a p0i]] l IH]; intros Hi.
  - simpl. split; [split; [intros _ y []|auto]|]. intros _. apply vev_zero.
  - simpl smp_sum. assert (Hin : In (y, (a, p0i)) (smp q)) by (apply Hi; left; auto).
    pose proof (side_ok q y a p0i Hq Hin) as Hs.
    destruct (smp_ok q Hq) as [_ Sm]. destruct (Sm _ _ _ Hin) as [Hy [Ea Ep]].
    set (dm := dmassN th zs q y (massN th zs q y) (gN N n (psum (wl ws q)) th)) in *.
    assert (IH' : incl l (smp q)) by (intros z Hz'; apply Hi; right; auto). specialize (IH IH').
    destruct (smp_sum th zs q (gN N n (psum (wl ws q)) th) l) as [ss acc]. destruct IH as [I1 I2].
    destruct (side_of a (nmul N (massN th zs q y) p0i) (vis0 N n dm)) as [b|]; simpl forallb.
    + destruct Hs as [Hc Hg]. split.
      * rewrite I1. simpl. split; [intros H z [<-|Hz']; auto|intros H z Hz'; auto].
      * intros Hd. specialize (I2 Hd). simpl. unfold coef at 1. rewrite Hg. destruct b.
        -- rewrite vev_add, vev_scal, ev_mul, Ea, Ep, I2. unfold dm. rewrite dmass_ok by auto. f_equal. f_equal. ring.
        -- rewrite I2. apply dot_sub0. intros h. rewrite dot_plus, dot_scal. ring.
    + split; [|discriminate]. split; [discriminate|]. intros H. exfalso. apply Hs, H. left; auto. Qed.

Lemma all_sum_ok qs : incl qs prompts ->
  let '(sss, v) := all_sum th zs o qs in
  (defined sss = true <-> forall q y, In q qs -> In y (snd d q) -> cond q y) /\
  (defined sss = true -> vv v = Vsum qs (fun q => Vsum (snd d q) (fun y => scal (coef q y : R_AbsRing) (Dpi (vv th) q y)))).
Proof. induction qs as [|q qs IH]; intros Hi.
  - simpl. split; [split; [intros _ q y []|auto]|]. intros _. apply vev_zero.
  - simpl all_sum. assert (Hq : In q prompts) by (apply Hi; left; auto).
    pose proof (smp_sum_ok q (smp q) Hq (incl_refl _)) as S1. unfold prm_sum.
    destruct (smp_ok q Hq) as [E _]. rewrite <- d_snd in E by auto. rewrite E in S1.
    assert (IH' : incl qs prompts) by (intros z Hz'; apply Hi; right; auto). specialize (IH IH').
    destruct (smp_sum th zs q (gN N n (psum (wl ws q)) th) (smp q)) as [ss v].
    destruct (all_sum th zs o qs) as [sss acc]. destruct IH as [I1 I2], S1 as [S1 S2].
    unfold defined in *. simpl forallb. rewrite andb_true_iff. split.
    + rewrite S1, I1. simpl. split; [intros [H1 H2] q' y [<-|Hq'] Hy; auto|intros H; split; intros; apply H; auto].
    + intros [H1 H2]. rewrite vev_add, S2, I2 by auto. reflexivity. Qed.

Lemma chk_grad_ok : chk_grad th o s = true -> oracle d (vv th) = option_map vv (t_grad s).
Proof. unfold chk_grad. rewrite Hz. rewrite andb_true_l.
  pose proof (all_sum_ok (seq 0 M) (incl_refl _)) as S1. destruct (all_sum th zs o (seq 0 M)) as [sss v]. destruct S1 as [S1 S2].
  destruct (list_eq_dec _ sss (t_side s)) as [Es|]; [|discriminate]. rewrite andb_true_l. clear Es.
  pose proof d_ok as Dk.
  assert (PD : forall th0 q y, U th0 -> In q prompts -> In y (B q) -> gradient_at (fun t1 => pi t1 q y) th0 (Dpi th0 q y)).
  { intros th0 q y H1 H2 H3. apply (pirat_diff n ws (sp_cons sp)); auto. }
  assert (PP : forall th0 q y, U th0 -> In q prompts -> In y (B q) -> 0 < pi th0 q y).
  { intros th0 q y H1 H2 H3. apply (pirat_pos n ws (sp_cons sp)); auto. }
  pose proof eps_rng as Er. destruct Er as [Er _].
  pose proof (smooth_iff prompts B U pi pref rewR epsR 0 Dpi Er M_pos PP pref_pos PD d (vv th) Dk HU) as SI.
  assert (SC : smooth_at prompts pi rewR epsR Dpi d (vv th) <-> defined sss = true).
  { rewrite S1. unfold smooth_at, smooth_cond. split; intros H q y Hq Hy; apply (H q y); auto. }
  destruct (t_grad s) as [g|]; simpl option_map.
  - rewrite andb_true_iff. intros [H1 H2]. apply (oracle_exact d (vv th) _ Dk HU).
    assert (Hs : smooth_at prompts pi rewR epsR Dpi d (vv th)) by (apply SC; auto).
    pose proof (smooth_gradient prompts B U pi pref rewR epsR 0 Dpi Er PP pref_pos PD d (vv th) Dk HU Hs) as Gd.
    replace (vv g) with (gvec prompts B pi pref rewR epsR 0 Dpi d (vv th)); [exact Gd|].
    apply veqb_iff in H2. rewrite H2, vev_scal, S2, ev_Q by auto. apply dot_sub0. intros h.
    unfold gvec. rewrite !dot_scal, !dot_Vsum. rewrite <- Rsum_scal. rewrite <- Rsum_scal.
    apply Rsum_ext. intros q Hq. rewrite dot_plus, !dot_scal, !dot_Vsum.
    rewrite d_snd by auto. unfold groupS at 1. rewrite map_length, seq_length.
    assert (EW : Q2R wgt = / INR (length prompts) * / INR G).
    { unfold wgt, prompts_rat. rewrite seq_length. pose proof G_pos as GP. pose proof M_pos as MP.
      assert (M0 : (0 < M)%nat). { unfold prompts_rat in MP. destruct (length ws); [simpl in MP; congruence|lia]. }
      rewrite Q2R_div, Q2R_mult, Q2R_1'.
      - unfold Q2R, inject_Z; simpl. rewrite !Rinv_1, !Rmult_1_r, <- !INR_IZR_INZ. 
        assert (0 < INR M) by (apply lt_0_INR; auto). assert (0 < INR G) by (apply lt_0_INR; lia). field. lra.
      - unfold Qeq; simpl. nia. }
    rewrite EW. unfold coef. ring.
  - rewrite negb_true_iff. intros Hd. destruct (oracle d (vv th)) as [g|] eqn:Eo; auto. exfalso.
    apply (oracle_exact d (vv th) g Dk HU) in Eo. 
    assert (X : defined sss = true). { apply SC, SI. exists (dot n g). exact Eo. } congruence. Qed.
End Query.

(** the log written in the trace *)
Notation event := (event (Rvec n) nat nat).
Notation EvD := (EvDraw (Rvec n) nat nat).
Notation EvG := (EvGrad (Rvec n) nat nat).
Notation EvM := (EvMem (Rvec n) nat nat).
Fixpoint iev (k : nat) (th : vec) (steps : list tstep) : list event :=
  match steps with [] => []
  | s :: r => EvG t k (vv th) :: match t_grad s with None => [] | Some _ => EvM t k (vv (t_prop s)) :: iev (S k) (t_prop s) r end
  end.
Fixpoint lastp (th : vec) (steps : list tstep) : vec :=
  match steps with [] => th | s :: r => match t_grad s with None => th | Some _ => lastp (t_prop s) r end end.
(** every gradient claim and every domain verdict of the trace is true *)
Fixpoint steps_true (th : vec) (steps : list tstep) : Prop :=
  match steps with [] => True
  | s :: r => oracle d (vv th) = option_map vv (t_grad s) /\
     match t_grad s with None => True | Some _ => (t_in s = true <-> U (vv (t_prop s))) /\ steps_true (t_prop s) r end
  end.
Lemma chk_inner_ok m : forall k th steps st th', U (vv th) -> chk_inner o t k m th steps = Some (st, th') ->
  inner (Rvec n) (Rvec n) nat nat _ memU oracle updR d t k m (vv th) = (st, vv th', iev k th steps) /\ U (vv th')
  /\ steps_true th steps /\ (st = None -> th' = lastp th steps).
Proof. induction m as [|m IH]; intros k th [|s rest] st th' HU H; simpl chk_inner in H; try discriminate.
  - injection H as <- <-. simpl. auto.
  - destruct (chk_grad th o s) eqn:Eg; [|discriminate].
    assert (Hz : chk_z th (t_zinv s) = true). { unfold chk_grad in Eg. apply andb_true_iff in Eg. tauto. }
    pose proof (chk_grad_ok th s HU Hz Eg) as Or. simpl inner. rewrite Or.
    destruct (t_grad s) as [g|] eqn:Es; simpl option_map in *.
    + destruct (veqb N n (t_prop s) (vadd N n th (vscal N n (nQ N (etaQ t k)) g)) && Bool.eqb (t_in s) (memN (t_prop s))) eqn:Ev; [|discriminate].
      apply andb_true_iff in Ev. destruct Ev as [Ev Em]. apply veqb_iff in Ev. apply Bool.eqb_prop in Em.
      rewrite vev_add, vev_scal, ev_Q in Ev. change (updR t k (vv th) (vv g)) with (plus (vv th) (scal (Q2R (etaQ t k) : R_AbsRing) (vv g))).
      rewrite <- Ev, memU_memN, <- Em. simpl iev. simpl steps_true. rewrite Es.
      assert (TU : t_in s = true <-> U (vv (t_prop s))) by (rewrite Em; apply memN_iff).
      destruct (t_in s) eqn:Ei.
      * destruct (IH (S k) (t_prop s) rest st th' (proj1 TU eq_refl) H) as [I1 [I2 [I3 I4]]]. rewrite I1.
        repeat split; auto; try tauto. intros. simpl. rewrite Es. auto.
      * destruct rest; [|discriminate]. injection H as <- <-. repeat split; auto; try tauto; try discriminate.
    + destruct rest; [|discriminate]. injection H as <- <-. simpl iev. simpl steps_true. rewrite Es. repeat split; auto; discriminate. Qed.
End Frozen.

Notation event := (event (Rvec n) nat nat).
Notation EvD := (EvDraw (Rvec n) nat nat).
Definition sev (t : nat) : list event := flat_map (fun q => map (fun i => EvD t q i (drawS t q i)) (seq 0 G)) (seq 0 M).
Fixpoint oev (t : nat) (th : vec) (os : list ostep) : list event :=
  match os with [] => [] | o :: r => sev t ++ iev t 1 th (o_steps o) ++ oev (S t) (lastp th (o_steps o)) r end.
Definition trace_events (tr : trace) : list event := oev 1 (vofl n (sp_th0 sp)) (tr_outer tr).
Definition frz_at t (th : vec) : Data := frz (vv th) (groups (Rvec n) nat nat draw prompts G t (vv th)).
(** every deviation, advantage, gradient and verdict claimed by the trace is true *)
Fixpoint outer_true (t : nat) (th : vec) (os : list ostep) : Prop :=
  match os with [] => True
  | o :: r => (forall q, In q prompts -> sd (map (rewR q) (groupS t q)) = e (nth q (o_std o) (n0 N)) /\
       map fst (nth q (o_smp o) []) = groupS t q /\
       map (fun x => e (fst (snd x))) (nth q (o_smp o) []) = advantages (map (rewR q) (groupS t q)))
     /\ steps_true (frz_at t th) th (o_steps o) /\ outer_true (S t) (lastp th (o_steps o)) r
  end.
Definition trace_true (tr : trace) := outer_true 1 (vofl n (sp_th0 sp)) (tr_outer tr).

Lemma sample_events_sev t th : (1 <= t <= T)%nat -> sample_events (Rvec n) nat nat draw prompts G t th = sev t.
Proof. intros Ht. unfold sample_events, sev, prompts_rat.
  assert (E : forall l, (forall q, In q l -> (q < M)%nat) ->
    flat_map (fun q => map (fun i => EvD t q i (draw t th q i)) (seq 0 G)) l = flat_map (fun q => map (fun i => EvD t q i (drawS t q i)) (seq 0 G)) l).
  { induction l as [|q l IH]; intros Hl; auto. simpl. f_equal; [|apply IH; intros; apply Hl; right; auto].
    apply map_ext_in. intros i Hi. apply in_seq in Hi. rewrite draw_is; auto; [apply Hl; left; auto|lia]. }
  apply E. intros q Hq. apply in_seq in Hq. lia. Qed.

Lemma chk_outer_ok (spec_ok : chk_spec = true) m : forall t th os st th', U (vv th) -> (1 <= t)%nat -> (t + m = S T)%nat ->
  chk_outer t m th os = Some (st, th') ->
  outer (Rvec n) (Rvec n) nat nat _ memU draw frz oracle updR prompts G K t m (vv th) = (st, vv th', oev t th os) /\ outer_true t th os.
Proof. induction m as [|m IH]; intros t th [|o rest] st th' HU Ht Hm H; simpl chk_outer in H; try discriminate.
  - injection H as <- <-. simpl. auto.
  - destruct (chk_frozen th t o) eqn:Ef; [|discriminate].
    assert (Ht' : (1 <= t <= T)%nat) by lia.
    assert (D2 : forall q, In q prompts -> snd (frz_at t th) q = groupS t q).
    { intros q Hq. unfold frz_at. simpl. rewrite look_groups by auto. unfold groupS. apply map_ext_in. intros i Hi.
      apply in_seq in Hi. apply in_seq in Hq. apply draw_is; auto; lia. }
    assert (D1 : fst (frz_at t th) = vv th) by reflexivity.
    destruct (chk_inner o t 1 K th (o_steps o)) as [[si th1]|] eqn:Ei; [|discriminate].
    destruct (chk_inner_ok t th o (frz_at t th) spec_ok HU Ef D1 D2 K 1 th (o_steps o) si th1 HU Ei) as [I1 [I2 [I3 I4]]].
    assert (AT : forall q, In q prompts -> sd (map (rewR q) (groupS t q)) = e (nth q (o_std o) (n0 N)) /\
       map fst (nth q (o_smp o) []) = groupS t q /\
       map (fun x => e (fst (snd x))) (nth q (o_smp o) []) = advantages (map (rewR q) (groupS t q))).
    { intros q Hq. split.
      - pose proof Ef as Ef'. unfold chk_frozen in Ef'. rewrite forallb_forall in Ef'. specialize (Ef' q Hq). unfold chk_prompt in Ef'. cbv zeta in Ef'.
        rewrite !andb_true_iff in Ef'. destruct Ef' as [[[[H1 H2] H3] H4] H5]. apply check_group_sound in H1. destruct H1 as [_ Va].
        rewrite map_map in Va. unfold sd. change (map (rewR q) (groupS t q)) with (map (fun x => Q2R (rewQ q x)) (groupS t q)). rewrite Va.
        apply neqb_iff in H3. rewrite ev_mul, ev_Q in H3. rewrite <- H3. apply sqrt_square.
        pose proof (ev_sgn N (nth q (o_std o) (n0 N))) as Sg. destruct (nsgn N (nth q (o_std o) (n0 N))); try discriminate; lra.
      - destruct (smp_ok t th o (frz_at t th) HU Ef D1 D2 q Hq) as [S1 S2]. split; auto.
        unfold advantages. rewrite map_map.
        transitivity (map (fun y => adv (map (rewR q) (groupS t q)) (rewR q y)) (map fst (nth q (o_smp o) []))); [|rewrite S1; auto].
        rewrite map_map. apply map_ext_in. intros [y [a p0i]] Hin. simpl.
        destruct (S2 _ _ _ Hin) as [_ [S3 _]]. rewrite S3. unfold Adv. rewrite D2 by auto. reflexivity. }
    simpl outer. change (frz (vv th) (groups (Rvec n) nat nat draw prompts G t (vv th))) with (frz_at t th). unfold Grpo.Data in *. rewrite I1.
    rewrite sample_events_sev by auto. destruct si as [si|].
    + destruct rest; [|discriminate]. injection H as <- <-. simpl. rewrite app_nil_r. auto.
    + rewrite (I4 eq_refl) in *. destruct (IH (S t) _ rest st th' I2 ltac:(lia) ltac:(lia) H) as [J1 J2]. rewrite J1. simpl. auto. Qed.

(** MAIN THEOREM *)
Theorem check_run_sound (tr : trace) : check_run tr = true ->
  real_run (vv (vofl n (sp_th0 sp))) = (tr_status tr, vv (tr_th tr), trace_events tr) /\ trace_true tr.
Proof. unfold check_run. rewrite andb_true_iff. intros [Hs H].
  destruct (chk_outer 1 T (vofl n (sp_th0 sp)) (tr_outer tr)) as [[st th]|] eqn:E; [|discriminate].
  apply andb_true_iff in H. destruct H as [H1 H2]. apply veqb_iff in H2.
  assert (HU : U (vv (vofl n (sp_th0 sp)))). { apply memN_iff. unfold chk_spec in Hs. rewrite !andb_true_iff in Hs. tauto. }
  destruct (chk_outer_ok Hs T 1 _ _ _ _ HU (le_n 1) eq_refl E) as [O1 O2]. split; auto.
  unfold real_run, grpo, run. unfold trace_events. rewrite <- H2. rewrite O1. f_equal. f_equal.
  destruct st, (tr_status tr); auto; discriminate. Qed.
End Check.
