"""From problems back to files, and JSON files that are whole or not there."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from exactgrpo.errors import InputError, LimitError, PolicyError
from exactgrpo.numbers import expression as ex
from exactgrpo.numbers.arithmetic import Column, Exact
from exactgrpo.numbers.decision import full_expansion
from exactgrpo.numbers.display import exact_text
from exactgrpo.numbers.expression import Expression
from exactgrpo.numbers.rational import MAX_DIGITS
from exactgrpo.numbers.symbols import node
from exactgrpo.numbers.text import parse_exact
from exactgrpo.policies.expression import Expressions
from exactgrpo.policies.family import PolicyFamily
from exactgrpo.policies.protocol import GenerationProtocol
from exactgrpo.policies.rational import Rational
from exactgrpo.policies.simplex import Simplex
from exactgrpo.policies.softmax import Softmax
from exactgrpo.policies.terms import Terms
from exactgrpo.policies.tokens import ANY_CONTEXT, Tokens
from exactgrpo.spec.loading import loaded
from exactgrpo.update.draws import Seed, Tape
from exactgrpo.update.problem import Problem
from exactgrpo.update.reference import ReferenceLogits, ReferenceMasses, ReferenceParameter

Named = Sequence[tuple[str, Sequence[str]]]
"""The prompts of a policy: name and responses of each."""

MAX_NODES = 2000
MAX_TEXT = 20_000
"""Of an irrational number: nodes of its expression, characters of its text."""


def problem_data(problem: Problem) -> dict[str, Any]:
    """JSON data of kind "update", numbers as exact texts, that `loaded` and `problem` take back to the same problem.

    Raises PolicyError for a family that files do not describe, InputError for a reference, draws or names that they do not
    describe, and LimitError for a number without an exact text of reasonable length, each with its place.

    >>> from exactgrpo import Seed, Simplex, Prompt, Problem
    >>> written = problem_data(Problem.of(
    ...     prompts=[Prompt.of("q", ["a", "b"], [1, "sqrt(8)"])], family=Simplex.of([2]), theta0=["1/2"], group_size=2,
    ...     outer_iterations=1, inner_steps=3, epsilon="0.2", beta=0, step_size="1/16", draws=Seed(7),
    ... ))
    >>> written["prompts"][0]["rewards"], written["update"]["epsilon"], written["policy"]
    (['1', '2*sqrt(2)'], '1/5', {'family': 'simplex', 'parameters': ['theta1'], 'theta0': ['1/2']})
    """
    named = [(p.name, p.responses) for p in problem.prompts]
    policy = family_data(problem.family, problem.parameters, named)
    protocol = policy.pop("protocol", None)
    theta0 = [number_text(x, f"policy.theta0[{i}]") for i, x in enumerate(problem.theta0)]
    kind = policy.pop("family")
    data: dict[str, Any] = {"kind": "update"}
    if protocol is not None:
        data["protocol"] = protocol
    prompts: list[dict[str, Any]] = [
        {"name": p.name, "rewards": [number_text(r, f"prompts[{q}].rewards[{j}]") for j, r in enumerate(p.rewards)]}
        | ({"responses": list(p.responses)} if protocol is None else {})
        for q, p in enumerate(problem.prompts)
    ]
    data |= {"prompts": prompts, "policy": {"family": kind, "parameters": list(problem.parameters), "theta0": theta0, **policy}}
    _write_reference(problem, data)
    low, high = number_text(problem.epsilon_low, "update.epsilon_low"), number_text(problem.epsilon_high, "update.epsilon_high")
    data["update"] = {
        "group_size": problem.group_size,
        "outer_iterations": problem.outer_iterations,
        "inner_steps": problem.inner_steps,
        **({"epsilon": low} if low == high else {"epsilon_low": low, "epsilon_high": high}),
        "beta": number_text(problem.beta, "update.beta"),
        "step_size": _steps(problem),
        "draws": _draws(problem),
    }
    loaded(data)  # names and sizes that a file may not have are refused here
    return data


def write_json(path: str | os.PathLike[str], data: Any) -> None:
    """Write JSON to a file: a temporary file beside it first, then a rename. InputError if that cannot be done.

    Whatever happens, the file is either as it was or whole, and no temporary file stays.
    """
    target = Path(path)
    name = None
    try:
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
            name = file.name
            json.dump(data, file, indent=2, ensure_ascii=False, allow_nan=False)
            file.write("\n")
        Path(name).chmod(target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask())
        Path(name).replace(target)
    except OSError as error:
        raise InputError("file name", str(path), f"the file cannot be written: {error.strerror}") from None
    finally:
        if name is not None:
            Path(name).unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)  # there is no way to read it alone
    os.umask(mask)
    return mask


# ---- numbers


def number_text(x: Exact, place: str = "number") -> str:
    """Exact text of a number that the grammar reads back: canonical if short, else as its expression is built.

    LimitError for a number of more than 10,000 digits, 2,000 nodes or 20,000 characters.

    >>> number_text(Fraction(7, 5)), number_text(node(Fraction(8)).sqrt())
    ('7/5', '2*sqrt(2)')
    >>> number_text(Expression.of(2).sqrt() + Fraction(1, 10**100))[:20]
    '(2)^(1/2) + 1/100000'
    """
    if isinstance(x, Fraction):
        return _fraction_text(x, place)
    text = exact_text(x)
    if text is None:
        text = _expression_text(x, place)
        if len(text) > MAX_TEXT:
            raise LimitError(place, f"a text of {len(text)} characters", f"numbers are written with at most {MAX_TEXT} characters")
        parse_exact(text, place)  # deeper or larger than the grammar reads: refused now and not when the file is read
    return text


def _fraction_text(x: Fraction, place: str) -> str:
    if max(x.numerator.bit_length(), x.denominator.bit_length()) > 3.3 * MAX_DIGITS:
        raise LimitError(place, x, f"numbers are written with at most {MAX_DIGITS} digits")
    value = node(x).payload
    return str(value.p) if value.q == 1 else f"{value.p}/{value.q}"


def _expression_text(x: Expression, place: str) -> str:
    expanded = full_expansion(x, MAX_NODES)
    if expanded is None:
        raise LimitError(place, repr(x), f"numbers are written with at most {MAX_NODES} operations")
    texts: dict[Expression, tuple[str, int]] = {}  # with the binding strength: 0 sum, 1 product or quotient, 2 atom

    def inside(y: Expression, strength: int) -> str:
        text, own = texts[y]
        return text if own >= strength else f"({text})"

    for y in ex.cone(expanded):
        a = y.args
        match y.kind:
            case ex.RATIONAL:
                text = _fraction_text(Fraction(int(y.payload.p), int(y.payload.q)), place)
                made = (text, 2 if text.isdigit() else 0 if text.startswith("-") else 1)
            case ex.SUM:
                made = (" + ".join(inside(b, 1) for b in a), 0)
            case ex.PRODUCT:
                made = ("*".join(inside(b, 2) for b in a), 1)
            case ex.QUOTIENT:
                made = (f"{inside(a[0], 2)}/{inside(a[1], 2)}", 1)
            case ex.POWER:
                made = (f"({texts[a[0]][0]})^({y.payload})", 1)
            case ex.ROOT:
                made = (f"({texts[a[0]][0]})^(1/{y.payload})", 1)
            case _:
                made = (f"{ex.KIND_NAMES[y.kind]}({texts[a[0]][0]})", 2)
        if len(made[0]) > MAX_TEXT:
            raise LimitError(place, repr(x), f"numbers are written with at most {MAX_TEXT} characters")
        texts[y] = made
    return texts[expanded][0]


# ---- draws, step sizes, reference


def _write_reference(problem: Problem, data: dict[str, Any]) -> None:
    def place(key: str, column: Column) -> None:
        for q, (prompt, row) in enumerate(zip(data["prompts"], problem.family.rows, strict=True)):
            prompt[key] = [number_text(column[i], f"prompts[{q}].{key}[{j}]") for j, i in enumerate(row)]

    match problem.reference:
        case ReferenceMasses(masses=column):
            place("reference", column)
        case ReferenceLogits(logits=column):
            place("reference_logits", column)
        case ReferenceParameter(theta=theta):
            data["reference"] = {"theta": [number_text(x, f"reference.theta[{i}]") for i, x in enumerate(theta)]}
        case None:
            pass
        case other:
            raise InputError("reference", type(other).__name__, "a reference that files describe: masses, logits or a parameter")


def _steps(problem: Problem) -> Any:
    texts, K = [number_text(x, "update.step_size") for x in problem.step_sizes], problem.inner_steps
    return texts[0] if len(texts) == 1 else [texts[i : i + K] for i in range(0, len(texts), K)]


def _draws(problem: Problem) -> Any:
    match problem.draws:
        case Seed(seed=seed):
            return {"seed": int(seed)}
        case Tape(positions=positions):
            names = [p.responses for p in problem.prompts]
            return [[[names[q][y] for y in group] for q, group in enumerate(outer)] for outer in positions]
        case other:
            raise InputError("update.draws", type(other).__name__, "draws that files describe: a tape or a seed")


# ---- policies


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
        product = "*".join(([] if size == 1 and factors else [_fraction_text(size, "policy")]) + list(factors))
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
