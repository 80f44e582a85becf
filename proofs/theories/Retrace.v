(** * Retrace

    Corrections of action values over one trajectory; what is left of them on policy.

      retrace_error m s   discounted and traced errors r + gamma E_pi Q(next) - Q over m steps from s
      sarsa_return m s    discounted rewards, and the expected value after m steps

    Python: exactgrpo.field.retrace.retrace_errors *)
From Coq Require Import Reals List Lra Lia Arith.
From ExactGRPO Require Import FinSum VTrace.
Import ListNotations.
Open Scope R_scope.

(** One trajectory: rewards, the values of the actions taken, the expected value [EQ t] at the state of
    step t under the target policy, traces, discount. The trace of the first step does not act. *)
Section Retrace.
Variables (r Qa EQ c : nat -> R) (gamma : R).
Definition q_error (t : nat) : R := r t + gamma * EQ (S t) - Qa t.
Definition retrace_error (m s : nat) : R := Rsum (seq 0 m) (fun j => gamma ^ j * trace_prod c (S s) j * q_error (s + j)).
Definition sarsa_return (m s : nat) : R := Rsum (seq 0 m) (fun j => gamma ^ j * r (s + j)%nat) + gamma ^ m * EQ (s + m)%nat.

(** The recursion by which the errors are computed backwards. *)
Theorem retrace_step m s : retrace_error (S m) s = q_error s + gamma * c (S s) * retrace_error m (S s).
Proof. unfold retrace_error. change (seq 0 (S m)) with (0%nat :: seq 1 m). rewrite Rsum_cons, <- seq_shift, Rsum_map.
  rewrite Nat.add_0_r. cbn [trace_prod pow].
  rewrite (Rsum_ext (seq 0 m) _ (fun j => gamma * c (S s) * (gamma ^ j * trace_prod c (S (S s)) j * q_error (S s + j)))).
  - rewrite Rsum_scal. ring.
  - intros j _. replace (s + S j)%nat with (S s + j)%nat by lia. ring. Qed.
(** On policy (traces one) the target is the n-step return plus the discounted differences between the
    expected value and the value of the action taken, at the later steps. *)
Theorem retrace_on_policy m : (forall t, c t = 1) -> forall s,
  Qa s + retrace_error (S m) s = sarsa_return (S m) s + Rsum (seq 0 m) (fun j => gamma ^ S j * (EQ (s + S j)%nat - Qa (s + S j)%nat)).
Proof. intros Hc. induction m as [|m IH]; intros s.
  - rewrite retrace_step. unfold retrace_error, sarsa_return, q_error. simpl seq. rewrite !Rsum_cons, !Rsum_nil.
    replace (s + 0)%nat with s by lia. replace (s + 1)%nat with (S s) by lia. simpl pow. ring.
  - rewrite retrace_step, Hc.
    assert (E : retrace_error (S m) (S s) = sarsa_return (S m) (S s) + Rsum (seq 0 m) (fun j => gamma ^ S j * (EQ (S s + S j)%nat - Qa (S s + S j)%nat)) - Qa (S s))
      by (rewrite <- IH; ring).
    rewrite E. change (seq 0 (S m)) with (0%nat :: seq 1 m). rewrite Rsum_cons, <- seq_shift, Rsum_map.
    assert (F : sarsa_return (S (S m)) s = r s + gamma * sarsa_return (S m) (S s)) by exact (nstep_step r EQ gamma (S m) s). rewrite F.
    rewrite (Rsum_ext (seq 0 m) (fun j => gamma ^ S (S j) * (EQ (s + S (S j))%nat - Qa (s + S (S j))%nat))
      (fun j => gamma * (gamma ^ S j * (EQ (S s + S j)%nat - Qa (S s + S j)%nat)))).
    2: { intros j _. replace (s + S (S j))%nat with (S s + S j)%nat by lia. simpl. ring. }
    rewrite Rsum_scal. unfold q_error. replace (s + 1)%nat with (S s) by lia. simpl pow. ring. Qed.
(** So it is the n-step return as soon as every later action is worth the expected value of its state. *)
Corollary retrace_is_return m s : (forall t, c t = 1) -> (forall t, (s < t)%nat -> Qa t = EQ t) ->
  Qa s + retrace_error (S m) s = sarsa_return (S m) s.
Proof. intros Hc Hq. rewrite retrace_on_policy by auto. rewrite Rsum_0; [ring|]. intros j _. rewrite Hq by lia. ring. Qed.
End Retrace.
