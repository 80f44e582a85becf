"""Strategies of policies: every shipped family, small, with a parameter inside its open domain U."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, get_args

from hypothesis import strategies as st

from exactgrpo.errors import InputError
from exactgrpo.numbers.inputs import listed
from exactgrpo.policies.expression import Expressions
from exactgrpo.policies.family import PolicyFamily
from exactgrpo.policies.protocol import GenerationProtocol
from exactgrpo.policies.rational import Rational
from exactgrpo.policies.simplex import Simplex
from exactgrpo.policies.softmax import Softmax
from exactgrpo.policies.tokens import Tokens
from exactgrpo.spec.family_writing import family_data
from exactgrpo.strategies.numbers import Strategy, check_sizes, positive_simplex_points, rationals

Family = Literal["simplex", "rational", "softmax", "tokens", "expression"]
FAMILIES: tuple[Family, ...] = get_args(Family)


@dataclass(frozen=True, slots=True, repr=False)
class PolicyAt:
    """A policy family at a parameter `theta0` inside U, with the names of the `responses` of each prompt, in order."""

    family: PolicyFamily
    theta0: tuple[Fraction, ...]
    responses: tuple[tuple[str, ...], ...]

    @property
    def prompts(self) -> tuple[str, ...]:
        """The names of the prompts: q1, q2, ..."""
        return prompt_names(len(self.responses))

    def __repr__(self) -> str:
        names = self.family.parameters
        data = family_data(self.family, names, list(zip(self.prompts, self.responses, strict=True)))
        point = ", ".join(f"{name} = {x}" for name, x in zip(names, self.theta0, strict=True))
        return f"<{' '.join(f'{key}={value}' for key, value in data.items())} at {point or 'the only parameter'}>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """How Hypothesis prints a failing example."""
        printer.text(repr(self))


def policies(
    *, family: Family | None = None, families: Sequence[Family] = FAMILIES, max_prompts: int = 2, max_responses: int = 3
) -> Strategy[PolicyAt]:
    """Policies of the families (or of one `family`), each prompt with 2 to `max_responses` responses, at a rational theta0 in U.

    They shrink to one prompt, two responses and the first of the families. The token policies of all prompts share one protocol.

    >>> from hypothesis import find
    >>> find(policies(family="softmax"), lambda policy: policy.family.size == 1)
    <family=softmax features={'q1': [['0'], ['0']]} at theta1 = 0>
    """
    chosen = check_families((family,) if family is not None else families)
    check_sizes(1, max_prompts, "prompts")
    check_sizes(2, max_responses, "responses", least=2)
    numbers = st.lists(st.integers(2, max_responses), min_size=1, max_size=max_prompts)
    return st.tuples(numbers, st.sampled_from(chosen)).flatmap(lambda drawn: _MAKERS[drawn[1]](drawn[0]))


def check_families(families: Any, place: str = "families", *, known: Sequence[str] = FAMILIES) -> tuple[Family, ...]:
    """The families as a tuple; InputError for none or an unknown one."""
    names = tuple(listed(families, place))
    for name in names:
        if name not in known:
            raise InputError(place, name, f"one of {', '.join(known)}")
    if not names:
        raise InputError(place, "an empty list", f"some of {', '.join(known)}")
    return names


def prompt_names(count: int) -> tuple[str, ...]:
    """q1, q2, ..."""
    return tuple(f"q{q + 1}" for q in range(count))


def response_names(lengths: Sequence[int]) -> tuple[tuple[str, ...], ...]:
    """y1, y2, ... for each prompt."""
    return tuple(tuple(f"y{j + 1}" for j in range(n)) for n in lengths)


# ---- the families: each maker takes the numbers of responses

_POSITIVE = (Fraction(1), Fraction(1, 2), Fraction(3, 2), Fraction(1, 4), Fraction(3, 4), Fraction(5, 4), Fraction(7, 4))
_POLYNOMIALS = ("1", "t", "1 + t", "2 - t", "1 + t^2", "t*(2 - t)")
_FORMULAS = ("1", "t", "exp(t)", "exp(-t^2)", "sqrt(t)", "1 + 1/t", "log(1 + t)", "t^(1/3)")
_LOGITS = ("0", "t", "-t", "1/2 + t", "2*t - 1")


def _point() -> Strategy[tuple[Fraction, ...]]:
    """A parameter at which all polynomials and formulas above are positive."""
    return st.sampled_from(_POSITIVE).map(lambda t: (t,))


def _entries(entries: Sequence[str], lengths: Sequence[int]) -> Strategy[list[list[str]]]:
    return st.tuples(*(st.lists(st.sampled_from(entries), min_size=n, max_size=n) for n in lengths)).map(list)


def _simplex(lengths: Sequence[int]) -> Strategy[PolicyAt]:
    points = st.tuples(*(positive_simplex_points(size=n, weight=3) for n in lengths))
    family, names = Simplex.of(lengths), response_names(lengths)
    return points.map(lambda rows: PolicyAt(family, tuple(x for row in rows for x in row[:-1]), names))


def _rational(lengths: Sequence[int]) -> Strategy[PolicyAt]:
    names = response_names(lengths)
    return st.builds(lambda rows, t: PolicyAt(Rational.of(rows, parameters=["t"]), t, names), _entries(_POLYNOMIALS, lengths), _point())


def _expression(lengths: Sequence[int]) -> Strategy[PolicyAt]:
    names = response_names(lengths)
    return st.builds(lambda rows, t: PolicyAt(Expressions.of(rows, parameters=["t"]), t, names), _entries(_FORMULAS, lengths), _point())


@st.composite
def _softmax(draw: st.DrawFn, lengths: Sequence[int]) -> PolicyAt:
    size = draw(st.integers(1, 2))
    features = [[draw(st.lists(st.integers(-1, 1), min_size=size, max_size=size)) for _ in range(n)] for n in lengths]
    theta = draw(st.lists(rationals(min=-1, max=1, denominator=2), min_size=size, max_size=size))
    has_base = draw(st.booleans())
    base = [draw(st.lists(st.integers(1, 3), min_size=n, max_size=n)) for n in lengths] if has_base else None
    return PolicyAt(Softmax.of(features, size=size, base=base), tuple(theta), response_names(lengths))


@st.composite
def _tokens(draw: st.DrawFn, lengths: Sequence[int]) -> PolicyAt:
    most = max(lengths)
    shapes = [(V, L) for V in (1, 2, 3) for L in (1, 2, 3) if _support_size(V, L) <= most]
    vocabulary_size, max_length = draw(st.sampled_from(sorted(shapes, key=lambda shape: _support_size(*shape))))
    protocol = GenerationProtocol.of(["x", "y", "z"][:vocabulary_size], end=".", max_length=max_length)
    prompts = prompt_names(len(lengths))
    conditional: Literal["softmax", "rational"] = draw(st.sampled_from(("softmax", "rational")))
    entry = st.sampled_from(_LOGITS if conditional == "softmax" else _POLYNOMIALS)
    table = st.fixed_dictionaries(dict.fromkeys(protocol.tokens, entry))
    contexts = [*prompts, *(f"{q} x" for q in prompts if max_length > 1)]
    tables = {"*": draw(table), **draw(st.dictionaries(st.sampled_from(contexts), table, max_size=2))}
    family = Tokens.of(protocol, prompts, tables, conditional=conditional, parameters=["t"])
    responses = tuple(" ".join(tokens) for tokens in protocol.responses())
    return PolicyAt(family, draw(_point()), (responses,) * len(prompts))


def _support_size(vocabulary: int, max_length: int) -> int:
    return GenerationProtocol(tuple("xyz"[:vocabulary]), ".", max_length).support_size()


_MAKERS: dict[Family, Callable[[Sequence[int]], Strategy[PolicyAt]]] = {
    "simplex": _simplex,
    "rational": _rational,
    "softmax": _softmax,
    "tokens": _tokens,
    "expression": _expression,
}
