"""Token policies: next-token families composed by the generation protocol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from exactgrpo.errors import LimitError, PolicyError
from exactgrpo.numbers import expression as ex
from exactgrpo.numbers.arithmetic import Arithmetic, Exact, Rows
from exactgrpo.numbers.inputs import listed
from exactgrpo.numbers.symbols import node
from exactgrpo.policies.family import Policy, PolicyFamily
from exactgrpo.policies.inputs import InequalityInput, Names, PolynomialInput, parameter_names, polynomial, polynomial_bounds
from exactgrpo.policies.protocol import MAX_RESPONSES, GenerationProtocol
from exactgrpo.policies.rational import Rational
from exactgrpo.policies.softmax import Softmax
from exactgrpo.policies.terms import Polynomial, Terms

ANY_CONTEXT = "*"


@dataclass(frozen=True, eq=False)
class Tokens(PolicyFamily):
    """pi_theta(y|q) = prod_i pi_theta(y_i | q, y_1 .. y_{i-1}): the mass of a response is the product of its conditionals.

    Theorems: token_pmf, token_ratio_eq, tokens_family (Tokens.v).

    The conditionals are rows of an inner family (softmax or rational); contexts that use the same table share one row.
    """

    rows: Rows
    size: int
    conditionals: PolicyFamily
    masses: Terms
    parameters: tuple[str, ...] = ()
    masses_by_construction = True

    @classmethod
    def of(
        cls,
        protocol: GenerationProtocol,
        prompts: Sequence[str],
        tables: Mapping[str, Mapping[str, PolynomialInput]],
        *,
        conditional: Literal["softmax", "rational"],
        parameters: Sequence[Any] | None = None,
        size: int | None = None,
        inequalities: Sequence[InequalityInput] = (),
    ) -> Tokens:
        """Return the family of the tables: tables[context][token] is an affine logit (softmax) or a polynomial weight (rational).

        `prompts` are the names of the prompts. The longest matching context wins: ``"q1 x y"``, ``"q1 x"``, ``"q1"``, then ``"*"``.
        Logits, weights, inequalities and parameters may be written in the forms that `exactgrpo.policies.inputs` lists; with `size`
        in place of `parameters` these are called theta1, theta2, ... Raises PolicyError for a wrong shape or kind, LimitError for
        too many responses, and the errors of `numbers.text`, each with its place, such as ``logits['*']['x']``.

        >>> protocol = GenerationProtocol.of(["x"], end=".", max_length=2)
        >>> Tokens.of(protocol, ["q"], {"*": {"x": "t", ".": 0}}, conditional="softmax", parameters=["t"]).rows.lengths
        (3,)
        """
        if not isinstance(protocol, GenerationProtocol):
            raise PolicyError("protocol", protocol, "a GenerationProtocol is needed")
        if not isinstance(conditional, str) or conditional not in ("softmax", "rational"):
            raise PolicyError("conditional", conditional, "conditional is 'softmax' or 'rational'")
        names = parameter_names(parameters, size)
        form = "logits" if conditional == "softmax" else "weights"
        polynomials = _polynomials(tables, protocol.tokens, names, form)
        prompts = listed(prompts, "prompts", error=PolicyError)
        if len(prompts) == 0:
            raise PolicyError("prompts", [], "there is at least one prompt")
        for q, prompt in enumerate(prompts):
            if not isinstance(prompt, str):
                raise PolicyError(f"prompts[{q}]", prompt, "the name of a prompt is text")
        if len(prompts) * protocol.support_size() > MAX_RESPONSES:
            raise LimitError("prompts", f"{len(prompts)} prompts", f"all prompts together have at most {MAX_RESPONSES} responses")
        used, paths = _paths(protocol, prompts, polynomials, form)
        entries = [[polynomials[context][token] for token in protocol.tokens] for context in used]
        bounds = polynomial_bounds(inequalities, names)
        inner: PolicyFamily
        if conditional == "softmax":
            inner = _softmax(entries, list(names), bounds)
        else:
            inner = Rational.of(entries, parameters=list(names), inequalities=bounds)
        rows = Rows([protocol.support_size()] * len(prompts))
        return cls(rows, len(names), inner, Terms([[(Fraction(1), path)] for path in paths], inner.rows.size), tuple(names))

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


def _polynomials(tables: Any, tokens: Sequence[str], names: Names, form: str) -> dict[str, dict[str, Polynomial]]:
    """The tables read and checked: an entry for each token, affine where it is a logit."""
    if not isinstance(tables, Mapping):
        raise PolicyError(form, tables, "a table from contexts to tables of tokens is needed")
    made: dict[str, dict[str, Polynomial]] = {}
    known, missing = set(tokens), object()
    for context, entries in tables.items():
        place = f"{form}[{context!r}]"
        if not isinstance(context, str):
            raise PolicyError(form, context, "a context is text")
        if not isinstance(entries, Mapping):
            raise PolicyError(place, entries, "a table from tokens to polynomials is needed")
        wrong = next((token for token in (*tokens, *entries) if token not in entries or token not in known), missing)
        if wrong is not missing:
            raise PolicyError(place, wrong, f"a context gives one entry for each of the tokens {', '.join(tokens)}")
        made[context] = {token: polynomial(entries[token], names, f"{place}[{token!r}]") for token in tokens}
        for token, logit in made[context].items():
            if form == "logits" and any(sum(powers) > 1 for powers in logit):
                raise PolicyError(f"{place}[{token!r}]", entries[token], "a logit is an affine formula in the parameters")
    return made


def _paths(
    protocol: GenerationProtocol, prompts: Sequence[str], tables: Mapping[str, Any], form: str
) -> tuple[list[str], list[list[int]]]:
    """The contexts that occur, and for each response the positions of its conditionals in their tables."""
    _check_names(protocol, prompts)
    width = len(protocol.tokens)
    position = {token: i for i, token in enumerate(protocol.tokens)}
    responses = protocol.responses()
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
                    row = rows[prefix] = used.setdefault(_matching(tables, prompt, prefix, form), len(used))
                path.append(row * width + position[token])
            paths.append(path)
    return list(used), paths


def _check_names(protocol: GenerationProtocol, prompts: Sequence[str]) -> None:
    """No text is a context of two kinds: of one prompt after some tokens and of another prompt, or of a prompt and of all."""
    known, tokens = set(prompts), set(protocol.tokens)
    for prompt in prompts:
        words = prompt.split(" ")
        for k in range(len(words) - 1, 0, -1):
            if words[k] not in tokens:
                break
            if " ".join(words[:k]) in known:
                rule = f"not the text of the context of prompt {' '.join(words[:k])!r} after the token {words[k]!r}"
                raise PolicyError("prompts", prompt, rule)
    if ANY_CONTEXT in known:
        raise PolicyError("prompts", ANY_CONTEXT, "'*' names the table of every other context, so no prompt has this name")


def _matching(tables: Mapping[str, Any], prompt: str, prefix: tuple[str, ...], form: str) -> str:
    for length in range(len(prefix), -1, -1):
        context = " ".join((prompt, *prefix[:length]))
        if context in tables:
            return context
    if ANY_CONTEXT in tables:
        return ANY_CONTEXT
    raise PolicyError(form, " ".join((prompt, *prefix)), "every context has a table of its own, of a shorter context, or '*'")


def _softmax(entries: list[list[Polynomial]], names: list[str], bounds: list[Polynomial]) -> Softmax:
    """The affine logits of each context as features, their constants as bases."""
    features: list[list[list[Exact | int]]] = []
    base: list[list[Exact | int]] = []
    zero = (0,) * len(names)
    for context in entries:
        features.append([])
        base.append([])
        for logit in context:
            row: list[Exact | int] = [0] * len(names)
            for powers, coefficient in logit.items():
                if powers != zero:
                    row[powers.index(1)] = coefficient
            features[-1].append(row)
            constant = logit.get(zero, 0)
            base[-1].append(1 if constant == 0 else ex.exp(node(constant)))
    plain = all(b == 1 for one in base for b in one)
    return Softmax.of(features, parameters=names, base=None if plain else base, inequalities=bounds)
