(** * V-trace

    Targets of one trajectory; on policy they are n-step returns; what identity-kernel injection differs by.

      vtrace m s        the target of step s over m errors
      nstep_return m s  discounted rewards and the last value
      rac_advantage     fast - V plus the injected residual

    Python: exactgrpo.field.vtrace.vtrace_targets, exactgrpo.field.vtrace.vtrace_advantages, exactgrpo.rac.vtrace.decide_vtrace, exactgrpo.rac.vtrace.discounted_kernel *)
From Coq Require Import Reals List Lra Lia Arith.
From ExactGRPO Require Import FinSum.
Import ListNotations.
Open Scope R_scope.

(** One trajectory: rewards, values, ratios already clipped ([rho] on the error,
    [c] on the trace), discount. *)
Section VTrace.
Variables (r V rho c : nat -> R) (gamma : R).
Definition td (t : nat) : R := rho t * (r t + gamma * V (S t) - V t).
(** product of the traces c_s ... c_{s+j-1} *)
Fixpoint trace_prod (s j : nat) : R := match j with O => 1 | S i => c s * trace_prod (S s) i end.
Definition vtrace (m s : nat) : R := V s + Rsum (seq 0 m) (fun j => gamma ^ j * trace_prod s j * td (s + j)).
Definition vtrace_advantage (m s : nat) : R := rho s * (r s + gamma * vtrace m (S s) - V s).
Definition nstep_return (m s : nat) : R := Rsum (seq 0 m) (fun j => gamma ^ j * r (s + j)) + gamma ^ m * V (s + m).

(** The recursion by which the targets are computed backwards. *)
Theorem vtrace_step m s : vtrace (S m) s = V s + td s + gamma * c s * (vtrace m (S s) - V (S s)).
Proof. unfold vtrace. change (seq 0 (S m)) with (0%nat :: seq 1 m). rewrite Rsum_cons, <- seq_shift, Rsum_map.
  rewrite Nat.add_0_r. cbn [trace_prod pow].
  rewrite (Rsum_ext (seq 0 m) _ (fun j => gamma * c s * (gamma ^ j * trace_prod (S s) j * td (S s + j)))).
  - rewrite Rsum_scal. ring.
  - intros j _. replace (s + S j)%nat with (S s + j)%nat by lia. ring. Qed.
Lemma nstep_step m s : nstep_return (S m) s = r s + gamma * nstep_return m (S s).
Proof. unfold nstep_return. change (seq 0 (S m)) with (0%nat :: seq 1 m). rewrite Rsum_cons, <- seq_shift, Rsum_map.
  rewrite Nat.add_0_r. cbn [pow].
  rewrite (Rsum_ext (seq 0 m) _ (fun j => gamma * (gamma ^ j * r (S s + j)))).
  - rewrite Rsum_scal. replace (s + S m)%nat with (S s + m)%nat by lia. ring.
  - intros j _. replace (s + S j)%nat with (S s + j)%nat by lia. ring. Qed.
(** On policy (all ratios and traces one) the target is the n-step return. *)
Theorem vtrace_on_policy m : (forall t, rho t = 1) -> (forall t, c t = 1) -> forall s, vtrace m s = nstep_return m s.
Proof. intros Hr Hc. induction m as [|m IH]; intros s.
  - unfold vtrace, nstep_return. simpl seq. rewrite !Rsum_nil, Nat.add_0_r. simpl. ring.
  - rewrite vtrace_step, nstep_step, IH, Hc. unfold td. rewrite Hr. ring. Qed.
Corollary vtrace_advantage_on_policy m s : (forall t, rho t = 1) -> (forall t, c t = 1) ->
  vtrace_advantage m s = nstep_return (S m) s - V s.
Proof. intros Hr Hc. unfold vtrace_advantage. rewrite vtrace_on_policy, nstep_step, Hr by auto. ring. Qed.
End VTrace.

(** Clipped ratios are one on policy as soon as the ceilings are at least one. *)
Theorem clipped_ratio_on_policy p ceiling : 0 < p -> 1 <= ceiling -> Rmin ceiling (p / p) = 1.
Proof. intros Hp Hc. replace (p / p) with 1 by (field; lra). apply Rmin_right. auto. Qed.

(** One step, or a reward at the end only: what the correction injects against
    what V-trace would use. *)
Definition rac_advantage (rho fast slow v : R) : R := (fast - v) + rho * (slow - fast).
Definition vtrace_one_step (rho slow v : R) : R := rho * (slow - v).
Theorem one_step_gap rho fast slow v : rac_advantage rho fast slow v - vtrace_one_step rho slow v = (1 - rho) * (fast - v).
Proof. unfold rac_advantage, vtrace_one_step. ring. Qed.
Corollary one_step_equal_iff rho fast slow v : rac_advantage rho fast slow v = vtrace_one_step rho slow v <-> rho = 1 \/ fast = v.
Proof. pose proof (one_step_gap rho fast slow v) as H. split.
  - intros E. assert (Z : (1 - rho) * (fast - v) = 0) by lra. apply Rmult_integral in Z. destruct Z; [left|right]; lra.
  - intros [->| ->]; unfold rac_advantage, vtrace_one_step; ring. Qed.
(** [vtrace_one_step] is the V-trace advantage of a one-step episode (the value after the end is zero). *)
Theorem one_step_is_vtrace (r V rho c : nat -> R) gamma s : V (S s) = 0 ->
  vtrace_advantage r V rho c gamma 0 s = vtrace_one_step (rho s) (r s) (V s).
Proof. intros H. unfold vtrace_advantage, vtrace, vtrace_one_step. simpl seq. rewrite Rsum_nil, H. ring. Qed.

(** Several steps, on policy: adding each residual at its own step only leaves out
    the discounted later residuals; nothing is left out when only the first is non-zero. *)
Theorem residual_in_return r X V gamma m s :
  nstep_return (fun t => r t + X t) V gamma m s - nstep_return r V gamma m s = Rsum (seq 0 m) (fun j => gamma ^ j * X (s + j)%nat).
Proof. unfold nstep_return. rewrite (Rsum_ext (seq 0 m) _ (fun j => gamma ^ j * r (s + j)%nat + gamma ^ j * X (s + j)%nat)) by (intros; ring).
  rewrite Rsum_plus. ring. Qed.
Theorem several_steps_gap r X V gamma m s :
  nstep_return (fun t => r t + X t) V gamma (S m) s - (nstep_return r V gamma (S m) s + X s)
  = Rsum (seq 0 m) (fun j => gamma ^ S j * X (s + S j)%nat).
Proof. pose proof (residual_in_return r X V gamma (S m) s) as H.
  change (seq 0 (S m)) with (0%nat :: seq 1 m) in H. rewrite Rsum_cons, <- seq_shift, Rsum_map, Nat.add_0_r in H. rewrite pow_O, Rmult_1_l in H. lra. Qed.
