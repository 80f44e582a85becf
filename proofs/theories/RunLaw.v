(** * The law joined to the run

    Later laws depend on earlier draws: a tree of draws whose leaves carry the deterministic run on their tape.

      slots, coords th  prompt and sample pairs, and their laws at th
      read w q i        the draw of slot (q, i) in the word w
      leaves n t th     (probability, tape) of every sequence of draws
      run_mean          expectation of a function of the result

    Python: exactgrpo.update.draws.Tape
    Python, to come: exactgrpo.update.law *)
From Coq Require Import Reals List Lra Lia Arith Bool.
From Coquelicot Require Import Coquelicot.
From ExactGRPO Require Import FinSum Law Procedure Kink Objective Rd Grpo Family.
Import ListNotations.
Open Scope nat_scope.

Section RunLaw.
Variables (Param Grad Prompt Resp Data : Type).
Variable U : Param -> Prop.
Variable memU : Param -> bool.
Hypothesis memU_exact : forall th, memU th = true <-> U th.
Variable freeze : Param -> list (Prompt * list Resp) -> Data.
Variable grad : Data -> Param -> option Grad.
Variable upd : nat -> nat -> Param -> Grad -> Param.
Variables (prompts : list Prompt) (G K : nat).
Variable eqQ : forall a b : Prompt, {a = b} + {a <> b}.
Variables (B : Prompt -> list Resp) (pi : Param -> Prompt -> Resp -> R).
Variable some_response : Prompt -> Resp.
Hypothesis some_supp : forall q, In q prompts -> In (some_response q) (B q).
Notation result := (status * Param * list (event Param Prompt Resp))%type.
Notation inner := (inner Param Grad Prompt Resp Data memU grad upd).
Notation outer draw := (outer Param Grad Prompt Resp Data memU draw freeze grad upd prompts G K).
Notation groups draw := (groups Param Prompt Resp draw prompts G).
Notation logged draw := (sample_events Param Prompt Resp draw prompts G).

(** The draws of one outer iteration: one independent coordinate per prompt and sample. *)
Definition slots : list (Prompt * nat) := flat_map (fun q => map (pair q) (seq 0 G)) prompts.
Definition coords (th : Param) : list (list Resp * (Resp -> R)) := map (fun c => (B (fst c), pi th (fst c))) slots.
Fixpoint find (l : list (Prompt * nat * Resp)) (q : Prompt) (i : nat) : Resp :=
  match l with
  | [] => some_response q
  | (q', i', y) :: r => if eqQ q' q then (if Nat.eqb i' i then y else find r q i) else find r q i
  end.
Definition read (w : list Resp) (q : Prompt) (i : nat) : Resp := find (combine slots w) q i.
(** a tape holds one word of draws per outer iteration from [t0] on *)
Definition draw_tape (t0 : nat) (tape : list (list Resp)) (t : nat) (_ : Param) (q : Prompt) (i : nat) : Resp :=
  read (nth (t - t0) tape []) q i.

(** Every slot is read back: the word is exactly the family of draws. *)
Theorem read_word w : NoDup slots -> length w = length slots -> map (fun c => read w (fst c) (snd c)) slots = w.
Proof. unfold read. generalize slots as l. revert w.
  assert (H : forall l w, NoDup l -> length w = length l -> map (fun c => find (combine l w) (fst c) (snd c)) l = w).
  { induction l as [|[q i] l IH]; intros [|y w] ND L; simpl in L; try discriminate; [reflexivity|]. inversion ND as [|? ? N1 N2]; subst.
    cbn [map combine find fst snd]. destruct (eqQ q q) as [_|]; [|congruence]. rewrite Nat.eqb_refl. f_equal.
    transitivity (map (fun c => find (combine l w) (fst c) (snd c)) l); [|apply IH; auto; lia]. apply map_ext_in. intros [q' i'] Hc. cbn [fst snd].
    destruct (eqQ q q') as [->|]; [|auto]. destruct (Nat.eqb_spec i i') as [->|]; [contradiction|auto]. }
  intros w l. apply H. Qed.
Lemma slots_nodup : NoDup prompts -> NoDup slots.
Proof. unfold slots. clear. induction prompts as [|q l IH]; intros ND; [constructor|]. inversion ND as [|? ? N1 N2]; subst. simpl.
  specialize (IH N2). set (rest := flat_map (fun q => map (pair q) (seq 0 G)) l) in *.
  assert (R : forall i, ~ In (q, i) rest).
  { intros i H. apply in_flat_map in H. destruct H as [q' [Hq H]]. apply in_map_iff in H. destruct H as [i' [E _]]. injection E as -> _. contradiction. }
  clearbody rest. pose proof (seq_NoDup G 0) as NS. induction NS as [|i s Hi NS IHs]; [exact IH|]. simpl. constructor; [|auto].
  rewrite in_app_iff. intros [H|H]; [|exact (R i H)]. apply in_map_iff in H. destruct H as [i' [E H]]. injection E as ->. contradiction. Qed.
(** The coordinates are one block of G draws from pi(. | q) per prompt. *)
Theorem coords_blocks th : coords th = blocks (fun q => (B q, pi th q)) G prompts.
Proof. assert (Hg : forall q g a, map (fun c : Prompt * nat => (B (fst c), pi th (fst c))) (map (pair q) (seq a g)) = repeat (B q, pi th q) g).
  { intros q g. induction g as [|g IHg]; intros a; [reflexivity|]. cbn [seq map repeat fst]. rewrite IHg. reflexivity. }
  unfold coords, slots, blocks. generalize prompts as l. induction l as [|q l IH]; [reflexivity|]. cbn [flat_map].
  rewrite map_app, Hg, IH. reflexivity. Qed.
Lemma read_supported th w : In w (tuples (coords th)) -> forall q i, In q prompts -> In (read w q i) (B q).
Proof. intros Hw q i Hq. unfold read, coords in *. revert w Hw. generalize slots as l. induction l as [|[q' i'] l IH]; intros w Hw.
  - simpl. auto.
  - simpl in Hw. apply in_flat_map in Hw. destruct Hw as [y [Hy Hw]]. apply in_map_iff in Hw. destruct Hw as [w' [<- Hw]]. simpl.
    destruct (eqQ q' q) as [->|]; auto. destruct (Nat.eqb i' i); auto. Qed.

(** The inner loop on the data that the word [w] gives at [th]. *)
Definition after (w : list Resp) (t : nat) (th : Param) := inner (freeze th (groups (fun _ _ => read w) t th)) t 1 K th.
(** Expectation of a function of the result over [n] outer iterations: each law depends
    on the parameter that the earlier draws led to. *)
Fixpoint run_mean (n t : nat) (th : Param) (f : result -> R) : R :=
  match n with
  | O => f (Complete, th, [])
  | S n' => E (coords th) (fun w => let r := after w t th in
      match fst (fst r) with
      | Some st => f (st, snd (fst r), logged (fun _ _ => read w) t th ++ snd r)
      | None => run_mean n' (S t) (snd (fst r)) (fun x => f (fst (fst x), snd (fst x), logged (fun _ _ => read w) t th ++ snd r ++ snd x))
      end)
  end.
(** The leaves of the tree of draws: a tape and its probability. *)
Fixpoint leaves (n t : nat) (th : Param) : list (R * list (list Resp)) :=
  match n with
  | O => [(1%R, [])]
  | S n' => flat_map (fun w => let r := after w t th in
      match fst (fst r) with
      | Some _ => [(pmass (coords th) w, [w])]
      | None => map (fun l => ((pmass (coords th) w * fst l)%R, w :: snd l)) (leaves n' (S t) (snd (fst r)))
      end) (tuples (coords th))
  end.

Lemma outer_ext n : forall t th d1 d2, (forall t' th' q i, t <= t' -> d1 t' th' q i = d2 t' th' q i) -> outer d1 t n th = outer d2 t n th.
Proof. induction n as [|n IH]; intros t th d1 d2 H; [reflexivity|]. simpl.
  assert (E1 : groups d1 t th = groups d2 t th).
  { apply map_ext. intros q. f_equal. apply map_ext. intros i. apply H; auto. }
  assert (E2 : logged d1 t th = logged d2 t th).
  { unfold sample_events. rewrite !flat_map_concat_map. f_equal. apply map_ext. intros q. apply map_ext. intros i. rewrite H; auto. }
  rewrite E1, E2. destruct (inner (freeze th (groups d2 t th)) t 1 K th) as [[s th'] ev]. destruct s; auto.
  rewrite (IH (S t) th' d1 d2); [reflexivity|]. intros; apply H; lia. Qed.
Lemma outer_on_tape n t th w tape : outer (draw_tape t (w :: tape)) t (S n) th =
  let r := after w t th in
  match fst (fst r) with
  | Some st => (st, snd (fst r), logged (fun _ _ => read w) t th ++ snd r)
  | None => let x := outer (draw_tape (S t) tape) (S t) n (snd (fst r)) in
      (fst (fst x), snd (fst x), logged (fun _ _ => read w) t th ++ snd r ++ snd x)
  end.
Proof. assert (D0 : forall th' q i, draw_tape t (w :: tape) t th' q i = read w q i) by (intros; unfold draw_tape; rewrite Nat.sub_diag; auto).
  assert (E1 : groups (draw_tape t (w :: tape)) t th = groups (fun _ _ => read w) t th).
  { apply map_ext. intros q. f_equal. apply map_ext. intros i. apply D0. }
  assert (E2 : logged (draw_tape t (w :: tape)) t th = logged (fun _ _ => read w) t th).
  { unfold sample_events. rewrite !flat_map_concat_map. f_equal. apply map_ext. intros q. apply map_ext. intros i. rewrite D0; auto. }
  cbn [Procedure.outer]. rewrite E1, E2. cbv zeta. unfold after.
  destruct (inner (freeze th (groups (fun _ _ => read w) t th)) t 1 K th) as [[s th'] ev]. cbn [fst snd]. destruct s; [reflexivity|].
  rewrite (outer_ext n (S t) th' (draw_tape t (w :: tape)) (draw_tape (S t) tape)).
  - destruct (outer (draw_tape (S t) tape) (S t) n th') as [[st th''] ev']. reflexivity.
  - intros t' th1 q i Ht. unfold draw_tape. replace (t' - t) with (S (t' - S t)) by lia. reflexivity. Qed.

Open Scope R_scope.
(** The law joined to the run: an expectation over the whole run is the sum over the
    leaves of probability times what the deterministic procedure returns on that tape. *)
Theorem run_mean_leaves n : forall t th f,
  run_mean n t th f = Rsum (leaves n t th) (fun l => fst l * f (outer (draw_tape t (snd l)) t n th)).
Proof. induction n as [|n IH]; intros t th f.
  - simpl leaves. rewrite Rsum_cons, Rsum_nil. simpl. ring.
  - cbn [run_mean leaves]. unfold E. rewrite Rsum_flat_map. apply Rsum_ext. intros w _. cbv zeta.
    pose proof (outer_on_tape n t th w) as O. cbv zeta in O. destruct (fst (fst (after w t th))) as [st|].
    + rewrite Rsum_cons, Rsum_nil. cbn [fst snd]. rewrite O. ring.
    + rewrite IH, <- Rsum_scal, Rsum_map. apply Rsum_ext. intros l _. cbn [fst snd]. rewrite O. ring. Qed.

Hypothesis pi_pmf : forall th q, U th -> In q prompts -> ispmf (B q, pi th q).
Lemma coords_pmf th : U th -> List.Forall ispmf (coords th).
Proof. intros H. apply Forall_forall. intros c Hc. apply in_map_iff in Hc. destruct Hc as [[q i] [<- Hc]].
  unfold slots in Hc. apply in_flat_map in Hc. destruct Hc as [q' [Hq Hc]]. apply in_map_iff in Hc. destruct Hc as [i' [E _]]. injection E as -> _. cbn [fst]. auto. Qed.
Lemma after_valid w t th : U th -> U (snd (fst (after w t th))).
Proof. intros H. pose proof (inner_spec Param Grad Prompt Resp Data U memU memU_exact grad upd prompts (freeze th (groups (fun _ _ => read w) t th)) t K 1 th H) as S.
  unfold after. destruct (inner (freeze th (groups (fun _ _ => read w) t th)) t 1 K th) as [[s th'] ev]. simpl. tauto. Qed.
(** The leaves carry a probability law, and every draw on a leaf is a supported response. *)
Theorem leaves_total n : forall t th, U th -> Rsum (leaves n t th) fst = 1.
Proof. intros t th H. transitivity (run_mean n t th (fun _ => 1)).
  { rewrite run_mean_leaves. apply Rsum_ext. intros; ring. }
  revert t th H. induction n as [|n IH]; intros t th H; [reflexivity|]. cbn [run_mean].
  rewrite (E_ext _ _ (fun _ => 1)); [apply E_const, coords_pmf; auto|]. intros w _. cbv zeta.
  destruct (fst (fst (after w t th))); auto. apply IH, after_valid; auto. Qed.
Theorem leaves_nonneg n : forall t th l, U th -> In l (leaves n t th) -> 0 <= fst l.
Proof. induction n as [|n IH]; intros t th l H Hl; [destruct Hl as [<-|[]]; simpl; lra|].
  cbn [leaves] in Hl. apply in_flat_map in Hl. destruct Hl as [w [Hw Hl]]. cbv zeta in Hl.
  pose proof (pmass_nonneg (coords th) w (coords_pmf th H) Hw) as P. destruct (fst (fst (after w t th))).
  - destruct Hl as [<-|[]]. exact P.
  - apply in_map_iff in Hl. destruct Hl as [l' [<- Hl]]. cbn [fst]. apply Rmult_le_pos; auto. apply (IH _ _ l' (after_valid w t th H) Hl). Qed.
Theorem leaves_supported n : forall t0 t th l, In l (leaves n t th) ->
  forall t' th' q i, In q prompts -> In (draw_tape t0 (snd l) t' th' q i) (B q).
Proof. intros t0 t th l Hl t' th' q i Hq. unfold draw_tape. generalize (t' - t0)%nat as j. revert t th l Hl.
  assert (E0 : In (read [] q i) (B q)) by (unfold read; destruct slots; simpl; auto).
  induction n as [|n IH]; intros t th l Hl j; [destruct Hl as [<-|[]]; destruct j; exact E0|].
  cbn [leaves] in Hl. apply in_flat_map in Hl. destruct Hl as [w [Hw Hl]]. cbv zeta in Hl.
  destruct (fst (fst (after w t th))).
  - destruct Hl as [<-|[]]. destruct j as [|[|j]]; cbn [snd nth]; auto. eapply read_supported; eauto.
  - apply in_map_iff in Hl. destruct Hl as [l' [<- Hl]]. destruct j as [|j]; cbn [snd nth]; [eapply read_supported; eauto|eapply IH; eauto]. Qed.
(** A bound that holds on every supported sequence of draws holds for the expectation. *)
Theorem run_mean_le n t th f c : U th ->
  (forall draw, (forall t' th' q i, In q prompts -> In (draw t' th' q i) (B q)) -> f (outer draw t n th) <= c) -> run_mean n t th f <= c.
Proof. intros H Hf. rewrite run_mean_leaves. replace c with (Rsum (leaves n t th) (fun l => fst l * c)).
  2: { rewrite Rsum_scal_r. change (Rsum (leaves n t th) fst * c = c). rewrite leaves_total by auto. ring. }
  apply Rsum_le. intros l Hl. apply Rmult_le_compat_l; [apply (leaves_nonneg n t th l H Hl)|]. apply Hf. eapply leaves_supported; eauto. Qed.
End RunLaw.

(** The update of a policy family: its expectation over all draws is carried by runs to
    each of which the main theorem applies. *)
Open Scope R_scope.
Section FamilyLaw.
Context {n : nat} {Q Y : Type}.
Variables (prompts : list Q) (B : Q -> list Y) (U : Rvec n -> Prop).
Variables (pi : Rvec n -> Q -> Y -> R) (Dpi : Rvec n -> Q -> Y -> Rvec n).
Variables (pref rew : Q -> Y -> R) (eps beta : R) (G T K : nat) (eta : nat -> nat -> R).
Hypothesis family : policy_family prompts B U pi Dpi.
Variable memU : Rvec n -> bool.
Hypothesis memU_exact : forall th, memU th = true <-> U th.
Variable eqQ : forall a b : Q, {a = b} + {a <> b}.
Variable some_response : Q -> Y.
Hypothesis some_supp : forall q, In q prompts -> In (some_response q) (B q).
Definition family_leaves := leaves (Rvec n) (Rvec n) Q Y Data memU (freeze eqQ) (family_oracle prompts B pi Dpi pref rew eps beta) (upd eta) prompts G K eqQ B pi some_response T 1.
Definition family_mean := run_mean (Rvec n) (Rvec n) Q Y Data memU (freeze eqQ) (family_oracle prompts B pi Dpi pref rew eps beta) (upd eta) prompts G K eqQ B pi some_response T 1.
Definition tape_run (tape : list (list Y)) :=
  family_run prompts B pi Dpi pref rew eps beta G T K eta memU (draw_tape (Rvec n) Q Y prompts G eqQ some_response 1 tape) eqQ.
Theorem family_law th0 : U th0 ->
  (forall f, family_mean th0 f = Rsum (family_leaves th0) (fun l => fst l * f (tape_run (snd l) th0)))
  /\ Rsum (family_leaves th0) fst = 1
  /\ (forall l, In l (family_leaves th0) -> 0 <= fst l)
  /\ (forall l, In l (family_leaves th0) -> forall t th q i, In q prompts ->
        In (draw_tape (Rvec n) Q Y prompts G eqQ some_response 1 (snd l) t th q i) (B q)).
Proof. intros H0. destruct family as [F1 F2 F3 F4].
  assert (PM : forall th q, U th -> In q prompts -> ispmf (B q, pi th q)) by (intros th q Ht Hq; split; simpl; [intros; left; auto|apply F3; auto]).
  split; [|split; [|split]].
  - intros f. exact (run_mean_leaves (Rvec n) (Rvec n) Q Y Data memU (freeze eqQ) (family_oracle prompts B pi Dpi pref rew eps beta) (upd eta) prompts G K eqQ B pi some_response T 1 th0 f).
  - exact (leaves_total (Rvec n) (Rvec n) Q Y Data U memU memU_exact (freeze eqQ) (family_oracle prompts B pi Dpi pref rew eps beta) (upd eta) prompts G K eqQ B pi some_response PM T 1 th0 H0).
  - intros l Hl. exact (leaves_nonneg (Rvec n) (Rvec n) Q Y Data U memU memU_exact (freeze eqQ) (family_oracle prompts B pi Dpi pref rew eps beta) (upd eta) prompts G K eqQ B pi some_response PM T 1 th0 l H0 Hl).
  - intros l Hl. exact (leaves_supported (Rvec n) (Rvec n) Q Y Data memU (freeze eqQ) (family_oracle prompts B pi Dpi pref rew eps beta) (upd eta) prompts G K eqQ B pi some_response some_supp T 1 1 th0 l Hl). Qed.
End FamilyLaw.
