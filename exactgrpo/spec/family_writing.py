"""From policy families back to the tables of a file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from exactgrpo.errors import PolicyError
from exactgrpo.numbers import expression as ex
from exactgrpo.numbers.arithmetic import Exact
from exactgrpo.numbers.expression import Expression
from exactgrpo.numbers.written import fraction_text, number_text
from exactgrpo.policies.expression import Expressions
from exactgrpo.policies.family import PolicyFamily
from exactgrpo.policies.protocol import GenerationProtocol
from exactgrpo.policies.rational import Rational
from exactgrpo.policies.simplex import Simplex
from exactgrpo.policies.softmax import Softmax
from exactgrpo.policies.terms import Terms
from exactgrpo.policies.tokens import ANY_CONTEXT, Tokens

Named = Sequence[tuple[str, Sequence[str]]]
"""The prompts of a policy: name and responses of each."""

def family_data(family: PolicyFamily, names: Sequence[str], prompts: Named) -> dict[str, Any]:
    """What a file says of a family with these names of parameters and prompts: its own keys of [policy] with `family`, without
    parameters and theta0; and for tokens the `protocol`, which stands beside [policy].

    Raises PolicyError for a family that files do not describe.

    >>> family_data(Rational.of([["t", "1 - t"]], parameters=["t"]), ["t"], [("q", ["a", "b"])])
    {'family': 'rational', 'weights': {'q': ['t', '1 - t']}}
    """
    of_prompt = [(name, row) for (name, _), row in zip(prompts, family.rows, strict=True)]
    match family:
        case Simplex(inequalities=bounds):
            data: dict[str, Any] = {"family": "simplex"}
        case Rational(weights=weights, inequalities=bounds):
            texts = _polynomials(weights, names)
            data = {"family": "rational", "weights": {q: texts[row.start : row.stop] for q, row in of_prompt}}
        case Softmax(base=base, inequalities=bounds):
            dense = [[number_text(x, "policy.features") for x in row] for row in _dense(family)]
            data = {"family": "softmax", "features": {q: dense[row.start : row.stop] for q, row in of_prompt}}
            if base is not None:
                data["base"] = {q: [number_text(base[i], "policy.base") for i in row] for q, row in of_prompt}
        case Tokens(conditionals=inner):
            bounds = inner.inequalities if isinstance(inner, (Softmax, Rational)) else None
            data = _tokens(family, names, prompts)
        case Expressions(weights=formulas, inequalities=inequalities, parameters=own):
            if tuple(names) != own:
                raise PolicyError("policy.parameters", ", ".join(names), f"the formulas of this policy name {', '.join(own)}")
            data = {"family": "expression", "weights": {q: [str(formulas[i]) for i in row] for q, row in of_prompt}}
            return data | ({"domain": [f"{bound} > 0" for bound in inequalities]} if inequalities else {})
        case other:
            rule = "a family that can be written: simplex, rational, softmax, tokens or expression"
            raise PolicyError("policy", type(other).__name__, rule)
    return data if bounds is None else data | {"domain": [f"{text} > 0" for text in _polynomials(bounds, names)]}


def _dense(family: Softmax) -> list[list[Exact]]:
    rows = [dict(row) for row in family.features.rows]
    return [[row.get(j, Fraction(0)) for j in range(family.size)] for row in rows]


def _polynomials(terms: Terms, names: Sequence[str]) -> list[str]:
    products = list(terms.product)

    def term(k: int) -> tuple[Exact, list[str]]:
        return terms.coefficient[k], [names[int(terms.path[i])] for i in products[k]]

    return [_sum_text(map(term, row)) for row in terms.sum]


def _sum_text(terms: Iterable[tuple[Exact, Sequence[str]]]) -> str:
    """Text of a sum of rational coefficients times names."""
    text = ""
    for coefficient, factors in terms:
        if not isinstance(coefficient, Fraction):
            raise PolicyError("policy", repr(coefficient), "polynomials have rational coefficients")
        size = abs(coefficient)
        product = "*".join(([] if size == 1 and factors else [fraction_text(size, "policy")]) + list(factors))
        if text:
            text += (" - " if coefficient < 0 else " + ") + product
        else:
            text = ("-" if coefficient < 0 else "") + product
    return text or "0"


def _tokens(family: Tokens, names: Sequence[str], prompts: Named) -> dict[str, Any]:
    """The tables of the contexts, each given where it is not that of the next shorter context."""
    inner = family.conditionals
    width = inner.rows.lengths[0]
    paths = [[int(i) for i in family.masses.path[row.start : row.stop]] for row in family.masses.product]
    protocol = _protocol(family, prompts, paths, width)
    row_of: dict[tuple[str, tuple[str, ...]], int] = {}
    responses = protocol.responses()
    for (name, _), row in zip(prompts, family.rows, strict=True):
        for response, k in zip(responses, row, strict=True):
            for i, entry in enumerate(paths[k]):
                row_of.setdefault((name, response[:i]), entry // width)
    default = row_of[prompts[0][0], ()]
    chosen = {ANY_CONTEXT: default}
    for (name, prefix), used in row_of.items():
        if used != (row_of[name, prefix[:-1]] if prefix else default):
            chosen[" ".join((name, *prefix))] = used
    entries = _logits(inner, names) if isinstance(inner, Softmax) else _weights(inner, names)
    tables = {c: dict(zip(protocol.tokens, entries[row * width : (row + 1) * width], strict=True)) for c, row in chosen.items()}
    is_softmax = isinstance(inner, Softmax)
    return {
        "family": "tokens",
        "conditional": "softmax" if is_softmax else "rational",
        "logits" if is_softmax else "weights": tables,
        "protocol": {"vocabulary": list(protocol.vocabulary), "end": protocol.end, "max_length": protocol.max_length},
    }


def _protocol(family: Tokens, prompts: Named, paths: list[list[int]], width: int) -> GenerationProtocol:
    """The protocol whose responses, joined by blanks, are those of the prompts."""
    named: dict[int, str] = {}
    for row, (_, responses) in zip(family.rows, prompts, strict=True):
        for i, response in zip(row, responses, strict=True):
            for entry, token in zip(paths[i], response.split(" "), strict=False):
                named.setdefault(entry % width, token)
    rule = "for a file, the responses of a tokens policy are the token sequences of its protocol, joined by blanks"
    try:
        tokens = [named[i] for i in range(width)]
        protocol = GenerationProtocol.of(tokens[:-1], end=tokens[-1], max_length=max(map(len, paths)))
    except (KeyError, PolicyError):
        raise PolicyError("prompts[0].responses", list(prompts[0][1]), rule) from None
    expected = [" ".join(response) for response in protocol.responses()]
    for q, (_, responses) in enumerate(prompts):
        if list(responses) != expected:
            raise PolicyError(f"prompts[{q}].responses", list(responses), rule)
    return protocol


def _weights(inner: PolicyFamily, names: Sequence[str]) -> list[str]:
    if not isinstance(inner, Rational):
        raise PolicyError("policy", type(inner).__name__, "tokens whose conditionals are softmax or rational")
    return _polynomials(inner.weights, names)


def _logits(inner: Softmax, names: Sequence[str]) -> list[str]:
    """Affine logits: the features and the logarithms of the bases."""
    texts = []
    for j, row in enumerate(_dense(inner)):
        base = Fraction(1) if inner.base is None else inner.base[j]
        if base == 1:
            constant = Fraction(0)
        elif isinstance(base, Expression) and base.kind == ex.EXP and base.args[0].kind == ex.RATIONAL:
            constant = Fraction(int(base.args[0].payload.p), int(base.args[0].payload.q))
        else:
            raise PolicyError("policy.logits", repr(base), "logits with a rational constant")
        terms: list[tuple[Exact, list[str]]] = [(x, [name]) for x, name in zip(row, names, strict=True) if x != 0]
        texts.append(_sum_text(terms + ([(constant, [])] if constant else [])))
    return texts
