"""Token policies: next-token families composed by the generation protocol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from exactgrpo.errors import PolicyError
from exactgrpo.numbers import expression as ex
from exactgrpo.numbers.arithmetic import Arithmetic, Exact, Rows
from exactgrpo.numbers.symbols import node
from exactgrpo.policies.family import Policy, PolicyFamily
from exactgrpo.policies.protocol import GenerationProtocol
from exactgrpo.policies.rational import Rational
from exactgrpo.policies.softmax import Softmax
from exactgrpo.policies.terms import Polynomial, Terms

ANY_CONTEXT = "*"


@dataclass(frozen=True, eq=False)
class Tokens(PolicyFamily):
    """pi_theta(y|q) = prod_i pi_theta(y_i | q, y_1 .. y_{i-1}): the mass of a response is the product of its conditionals.

    The conditionals are rows of an inner family (softmax or rational); contexts that use the same table share one row.
    """

    rows: Rows
    size: int
    conditionals: PolicyFamily
    masses: Terms
    masses_by_construction = True

    @classmethod
    def of(
        cls,
        protocol: GenerationProtocol,
        prompts: Sequence[str],
        tables: Mapping[str, Mapping[str, Polynomial]],
        *,
        size: int,
        conditional: Literal["softmax", "rational"],
        inequalities: Sequence[Polynomial] = (),
    ) -> Tokens:
        """tables[context][token] is an affine logit (softmax) or a polynomial weight (rational) in `size` parameters.

        The longest matching context wins: ``"q1 x y"``, ``"q1 x"``, ``"q1"``, then ``"*"``.
        """
        for context, table in tables.items():
            if set(table) != set(protocol.tokens):
                wrong = sorted(set(table) ^ set(protocol.tokens))
                raise PolicyError(f"logits[{context!r}]", wrong[0], f"a context gives one entry for each of the tokens {', '.join(protocol.tokens)}")
        responses, width = protocol.responses(), len(protocol.tokens)
        position = {token: i for i, token in enumerate(protocol.tokens)}
        used: dict[str, int] = {}
        paths: list[list[int]] = []
        for prompt in prompts:
            rows: dict[tuple[str, ...], int] = {}
            for response in responses:
                path = []
                for i, token in enumerate(response):
                    prefix = response[:i]
                    row = rows.get(prefix)
                    if row is None:
                        row = rows[prefix] = used.setdefault(_matching(tables, prompt, prefix), len(used))
                    path.append(row * width + position[token])
                paths.append(path)
        entries = [[tables[context][token] for token in protocol.tokens] for context in used]
        inner = _softmax(entries, size, inequalities, list(used)) if conditional == "softmax" else Rational.of(entries, size=size, inequalities=inequalities)
        return cls(Rows([len(responses)] * len(prompts)), size, inner, Terms([[(Fraction(1), path)] for path in paths], inner.rows.size))

    def at(self, arithmetic: Arithmetic, theta: Any) -> Policy:
        choice = self.conditionals.at(arithmetic, theta)
        mass, back = self.masses.at(arithmetic, choice.mass)
        return Policy(
            mass,
            lambda: arithmetic.sums(choice.log_mass()[self.masses.path], self.masses.product),
            lambda cotangent: choice.pullback(back(cotangent)),
        )

    def domain(self, arithmetic: Arithmetic, theta: Any) -> Iterator[Any]:
        return self.conditionals.domain(arithmetic, theta)


def _matching(tables: Mapping[str, Any], prompt: str, prefix: tuple[str, ...]) -> str:
    for length in range(len(prefix), -1, -1):
        context = " ".join((prompt, *prefix[:length]))
        if context in tables:
            return context
    if ANY_CONTEXT in tables:
        return ANY_CONTEXT
    raise PolicyError("policy.logits", " ".join((prompt, *prefix)), "every context has a table of its own, of a shorter context, or '*'")


def _softmax(entries: list[list[Polynomial]], size: int, inequalities: Sequence[Polynomial], names: list[str]) -> Softmax:
    features: list[list[list[Exact | int]]] = []
    base: list[list[Exact | int]] = []
    zero = (0,) * size
    for name, context in zip(names, entries, strict=True):
        features.append([])
        base.append([])
        for logit in context:
            row: list[Exact | int] = [0] * size
            for powers, coefficient in logit.items():
                if sum(powers) > 1:
                    raise PolicyError(f"logits[{name!r}]", str(dict(logit)), "a logit is an affine formula in the parameters")
                if powers != zero:
                    row[powers.index(1)] = coefficient
            features[-1].append(row)
            constant = logit.get(zero, 0)
            base[-1].append(1 if constant == 0 else ex.exp(node(constant)))
    plain = all(b == 1 for one in base for b in one)
    return Softmax.of(features, size=size, base=None if plain else base, inequalities=inequalities)
