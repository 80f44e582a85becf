"""The chain of states that an MDP walks under its policy: recurrent classes, stationary law, occupancies."""

from __future__ import annotations

from fractions import Fraction
from math import lcm

from exactgrpo.errors import InputError, LimitError
from exactgrpo.tabular.matrices import matrix, table
from exactgrpo.tabular.mdp import Law, Mdp, Table, checked_horizon

MAX_GROWTH = 1 << 19
"""Bits of a number after all steps."""
MAX_WORK = 2 * 10**9
"""That, times pairs of state and action, times states + 16: about the time of a sum over the steps."""
MAX_KEPT = 1 << 31
"""Bits of all numbers that are kept together."""


def state_chain(mdp: Mdp) -> Table:
    """P_pi[s][s'] = sum_a pi(a|s) P(s'|s, a).

    >>> state_chain(Mdp.of([[[1, 0], [0, 1]], [[1, 0], [1, 0]]], [["1/4", "3/4"]] * 2, {"r": [[0, 0]] * 2}, discount=0, horizon=1))
    ((Fraction(1, 4), Fraction(3, 4)), (Fraction(1, 1), Fraction(0, 1)))
    """
    return table(matrix(policy_blocks(mdp)) * matrix(transition_rows(mdp)))


def transition_rows(mdp: Mdp) -> Table:
    """P with a row for each pair of a state and an action, in order."""
    return tuple(row for rows in mdp.transition for row in rows)


def policy_blocks(mdp: Mdp) -> Table:
    """pi with a row for each state, and a column for each pair of a state and an action."""
    zeros, size = (Fraction(0),) * mdp.actions, mdp.states
    return tuple(tuple(x for t in range(size) for x in (mdp.policy[s] if s == t else zeros)) for s in range(size))


def recurrent_classes(mdp: Mdp) -> tuple[tuple[int, ...], ...]:
    """The sets of states that the chain cannot leave, and within which each state leads to each other.

    >>> recurrent_classes(Mdp.of([[[1, 0]], [[0, 1]]], [[1], [1]], {"r": [[0], [0]]}, discount=0, horizon=1))
    ((0,), (1,))
    """
    after = [1 << s | sum(1 << t for t, x in enumerate(row) if x) for s, row in enumerate(state_chain(mdp))]
    for middle in range(mdp.states):  # Warshall: paths through the states up to `middle`
        after = [reach | after[middle] if reach >> middle & 1 else reach for reach in after]
    members = [tuple(t for t in range(mdp.states) if reach >> t & 1) for reach in after]
    return tuple(states for s, states in enumerate(members) if states[0] == s and all(after[t] == after[s] for t in states))


def stationary_law(mdp: Mdp) -> Law:
    """d with d = d P_pi, undiscounted; it does not depend on the start.

    It is the only one exactly if there is one recurrent class (transient states then have mass zero); else InputError.

    >>> stationary_law(Mdp.of([[["1/2", "1/2"]], [[1, 0]]], [[1], [1]], {"r": [[0], [0]]}, discount=0, horizon=1))
    (Fraction(2, 3), Fraction(1, 3))
    >>> stationary_law(Mdp.of([[[1, 0]], [[0, 1]]], [[1], [1]], {"r": [[0], [0]]}, discount=0, horizon=1))
    Traceback (most recent call last):
    exactgrpo.errors.InputError: transition: '2 recurrent classes: states 0, 1, ...': the stationary law is unique for one class only
    """
    classes = recurrent_classes(mdp)
    if len(classes) > 1:
        shown = ", ".join(str(states[0]) for states in classes[:4])
        rule = "the stationary law is unique for one class only"
        raise InputError("transition", f"{len(classes)} recurrent classes: states {shown}, ...", rule)
    chain, size = state_chain(mdp), mdp.states
    balance = [[chain[s][t] - (s == t) for s in range(size)] for t in range(size - 1)]
    solution = matrix([*balance, [Fraction(1)] * size]).solve(matrix([[Fraction(t == size - 1)] for t in range(size)]))
    return tuple(x for (x,) in table(solution))


def occupancies(mdp: Mdp, steps: int | None = None) -> Table:
    """The law of the state at each of the first `steps` steps (by default the horizon), from the start.

    >>> occupancies(Mdp.of([[[0, 1]], [[1, 0]]], [[1], [1]], {"r": [[0], [0]]}, discount=0, horizon=2, start=[1, 0]))
    ((Fraction(1, 1), Fraction(0, 1)), (Fraction(0, 1), Fraction(1, 1)))
    """
    count = mdp.horizon if steps is None else checked_horizon(steps)
    check_growth(mdp, count, kept=count * mdp.states)
    chain, law = matrix(state_chain(mdp)), matrix([mdp.start])
    laws = [law]
    for _ in range(count - 1):
        law = law * chain
        laws.append(law)
    return tuple(row for law in laws for row in table(law))


def check_growth(mdp: Mdp, steps: int, *, kept: int = 1) -> None:
    """LimitError if exact numbers that grow with each step would become too long, `kept` of them being kept."""
    masses = [x.denominator for rows in (*mdp.transition, mdp.policy) for row in rows for x in row]
    bits = 2 * lcm(*masses).bit_length() + mdp.discount.denominator.bit_length()
    most = min(MAX_GROWTH, MAX_KEPT // kept, MAX_WORK // (mdp.states * mdp.actions * (mdp.states + 16))) // bits
    if steps > most:
        raise LimitError("horizon", steps, f"at most {most} steps, for each lengthens the numbers by up to {bits} bits")
