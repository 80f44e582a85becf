"""From a validated file to the problem that it describes: texts become numbers, polynomials, formulas and features."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from exactgrpo.errors import DrawError, InputError, LimitError, PolicyError, PromptError, ReferenceMassError, RewardError, UpdateError
from exactgrpo.numbers.arithmetic import Column
from exactgrpo.numbers.builders import Budget
from exactgrpo.numbers.formula import Formula
from exactgrpo.numbers.formula_text import FormulaBuilder
from exactgrpo.numbers.polynomial_text import PolynomialBuilder
from exactgrpo.numbers.rational import Exact, exact
from exactgrpo.numbers.text import (
    Table,
    numbered,
    parse_exact,
    parse_formula,
    parse_inequality,
    parse_polynomial,
    parse_polynomial_inequality,
)
from exactgrpo.policies.expression import Expressions
from exactgrpo.policies.family import PolicyFamily
from exactgrpo.policies.protocol import GenerationProtocol
from exactgrpo.policies.rational import Rational
from exactgrpo.policies.simplex import Simplex
from exactgrpo.policies.softmax import Softmax
from exactgrpo.policies.tokens import Tokens
from exactgrpo.spec import schema
from exactgrpo.spec.loading import MAX_RESPONSES, key_place, load
from exactgrpo.spec.reading import located
from exactgrpo.spec.schema import Number, UpdateFile
from exactgrpo.update.domain import shown, sign
from exactgrpo.update.draws import Draws, Seed, Tape
from exactgrpo.update.problem import Problem, Prompt
from exactgrpo.update.reference import Reference, ReferenceLogits, ReferenceMasses, ReferenceParameter

OTHER_RESPONSES = "*"
MAX_TOKENS = 200
"""Of one response; only a vocabulary of a single token could have longer ones within the limit on responses."""


def load_problem(path: str | os.PathLike[str]) -> Problem:
    """Return the checked problem of a .toml or .json file of kind "update".

    Raises InputError, or a class of it, with file, place, value and rule; UndecidedError where irrational data make a check
    undecidable within the budget.

    >>> load_problem("missing.toml")
    Traceback (most recent call last):
    exactgrpo.errors.InputError: missing.toml: file name: 'missing.toml': the file cannot be read: No such file or directory
    """
    file = load(path)
    with located(str(path)):
        return problem(file)


def problem(file: UpdateFile) -> Problem:
    """Return the checked problem of a file: whatever `loads` has left as text is read here.

    Raises InputError, or a class of it, with place, value and rule; UndecidedError where irrational data make a check
    undecidable within the budget (say, whether reference masses sum to one).

    >>> from exactgrpo.spec import loads
    >>> text = '''
    ... kind = "update"
    ... prompts = [{name = "q", responses = ["a", "b"], rewards = [1, 0]}]
    ... policy = {family = "rational", parameters = ["t"], theta0 = ["1/2"], domain = ["0 < t < 1"], weights.q = ["t", "1 - t"]}
    ... [update]
    ... group_size = 2
    ... outer_iterations = 1
    ... inner_steps = 3
    ... epsilon = "1/4"
    ... beta = 0
    ... step_size = 0.0625
    ... draws = [[["a", "b"]]]
    ... '''
    >>> built = problem(loads(text, "toml"))
    >>> built.theta0[0], built.step_size(1, 2), built.prompts[0].rewards
    (Fraction(1, 2), Fraction(1, 16), (Fraction(1, 1), Fraction(0, 1)))
    """
    return _Builder(file).problem()


class _Builder:
    """The file with the budget that all its texts share."""

    def __init__(self, file: UpdateFile) -> None:
        self.file, self.budget = file, Budget()
        self.read: dict[str | int, Exact] = {}
        policy = file.policy
        names = policy.parameters if policy.parameters is not None else [f"theta{i + 1}" for i in range(len(policy.theta0))]
        self.parameters = numbered(names, "policy.parameters")

    def problem(self) -> Problem:
        file, update = self.file, self.file.update
        prompts = self.prompts()
        theta0 = self.numbers(file.policy.theta0, "policy.theta0")
        epsilon = self.epsilon()
        beta = self.number(update.beta, "update.beta")
        draws = self.draws(prompts)
        if file.policy.parameters is not None and len(theta0) != len(self.parameters):
            rule = f"theta0 has one number for each of the {len(self.parameters)} parameters"
            raise PolicyError("policy.theta0", f"{len(theta0)} numbers", rule)
        return Problem.of(
            prompts=prompts,
            family=self.family(prompts),
            theta0=theta0,
            parameters=list(self.parameters),
            reference=self.reference(prompts),
            group_size=update.group_size,
            outer_iterations=update.outer_iterations,
            inner_steps=update.inner_steps,
            epsilon=epsilon,
            beta=beta,
            step_size=self.step_size(),
            draws=draws,
        )

    # ---- numbers

    def number(self, number: Number, place: str) -> Exact:
        raw = number.raw
        if not isinstance(raw, (str, int)):
            return exact(raw, place)
        value = self.read.get(raw)
        if value is None:
            value = self.read[raw] = parse_exact(raw, place, budget=self.budget) if isinstance(raw, str) else exact(raw, place)
        return value

    def numbers(self, numbers: Sequence[Number], place: str) -> list[Exact]:
        return [self.number(x, f"{place}[{i}]") for i, x in enumerate(numbers)]

    def polynomial(self, number: Number, place: str) -> Table:
        if isinstance(number.raw, str):
            return parse_polynomial(number.raw, self.parameters, place, budget=self.budget)
        table: Table = self.constant(PolynomialBuilder(self.parameters, self.budget), number, place)
        return table

    def formula(self, number: Number, place: str) -> Formula:
        if isinstance(number.raw, str):
            return parse_formula(number.raw, self.parameters, place, budget=self.budget)
        tree: Formula = self.constant(FormulaBuilder(self.parameters, self.budget), number, place)
        return tree

    def constant(self, builder: Any, number: Number, place: str) -> Any:
        """What the builder makes of an integer or a decimal, at the cost that its text would have."""
        value = exact(number.raw, place)
        try:
            return builder.finish(builder.number(value))
        except InputError as error:
            raise type(error)(place, number.raw, error.rule) from None

    def epsilon(self) -> Exact | tuple[Exact, Exact]:
        update = self.file.update
        if update.epsilon is not None and update.epsilon_low is None and update.epsilon_high is None:
            return self.number(update.epsilon, "update.epsilon")
        if update.epsilon is not None or update.epsilon_low is None or update.epsilon_high is None:
            given = [name for name in ("epsilon", "epsilon_low", "epsilon_high") if getattr(update, name) is not None]
            raise UpdateError("update", ", ".join(given) or "no epsilon", "either epsilon, or epsilon_low and epsilon_high")
        return self.number(update.epsilon_low, "update.epsilon_low"), self.number(update.epsilon_high, "update.epsilon_high")

    def step_size(self) -> Exact | list[list[Exact]]:
        value = self.file.update.step_size.value
        if isinstance(value, Number):
            return self.number(value, "update.step_size")
        return [self.numbers(row, f"update.step_size[{t}]") for t, row in enumerate(value)]

    # ---- prompts, rewards, draws, reference

    def prompts(self) -> list[Prompt]:
        file = self.file
        generated = self.generated()
        prompts = []
        for q, prompt in enumerate(file.prompts):
            place = f"prompts[{q}].responses"
            if generated is not None and prompt.responses is not None:
                raise PromptError(place, f"{len(prompt.responses)} responses", "a [protocol] generates the responses")
            if generated is None and prompt.responses is None:
                raise PromptError(f"prompts[{q}]", "responses", "this key is missing")
            responses = generated if generated is not None else tuple(prompt.responses or ())
            if not responses:
                raise PromptError(place, "an empty list", "a prompt has at least one response")
            prompts.append(Prompt(prompt.name, responses, tuple(self.rewards(prompt.rewards.value, responses, f"prompts[{q}].rewards"))))
        return prompts

    def generated(self) -> tuple[str, ...] | None:
        """The responses of the protocol of a tokens policy, their tokens joined by blanks."""
        file = self.file
        is_tokens = isinstance(file.policy, schema.TokensPolicy)
        if file.protocol is None:
            if is_tokens:
                raise PolicyError("file", "protocol", "a tokens policy needs a [protocol]")
            return None
        if not is_tokens:
            raise PolicyError("protocol", "[protocol]", "only a tokens policy has a [protocol]")
        protocol = self.protocol(file.protocol)
        size = protocol.support_size()
        if protocol.max_length > MAX_TOKENS:
            raise LimitError("protocol.max_length", str(protocol.max_length), f"at most {MAX_TOKENS} tokens")
        if size * len(file.prompts) > MAX_RESPONSES:
            raise LimitError("protocol", f"{size} responses, {len(file.prompts)} prompts", f"at most {MAX_RESPONSES} responses")
        return tuple(" ".join(tokens) for tokens in protocol.responses())

    def protocol(self, protocol: schema.Protocol) -> GenerationProtocol:
        return GenerationProtocol.of(protocol.vocabulary, end=protocol.end, max_length=protocol.max_length)

    def rewards(self, rewards: Any, responses: tuple[str, ...], place: str) -> list[Exact]:
        if isinstance(rewards, list):
            if len(rewards) != len(responses):
                raise RewardError(place, f"{len(rewards)} numbers", f"one reward for each of the {len(responses)} responses")
            return self.numbers(rewards, place)
        known = {key: self.number(x, place + key_place(key)) for key, x in rewards.items()}
        support = set(responses)
        if OTHER_RESPONSES in support:
            raise RewardError(place, OTHER_RESPONSES, "'*' stands for all other responses; write a list where a response has this name")
        for key in known:
            if key not in support and key != OTHER_RESPONSES:
                raise RewardError(place + key_place(key), key, f"not a response of this prompt{_near(key, responses)}")
        values = [known.get(response, known.get(OTHER_RESPONSES)) for response in responses]
        missing = next((response for response, value in zip(responses, values, strict=True) if value is None), None)
        if missing is not None:
            raise RewardError(place, missing, "no reward for this response, and no '*' for all others")
        return [value for value in values if value is not None]

    def draws(self, prompts: list[Prompt]) -> Draws:
        draws = self.file.update.draws
        if isinstance(draws, schema.SeedDraws):
            if abs(draws.seed) >= 1 << 256:
                raise DrawError("update.draws.seed", f"{draws.seed.bit_length()} bits", "a seed has at most 256 bits")
            return Seed(draws.seed)
        return Tape.of(draws, prompts)

    def reference(self, prompts: list[Prompt]) -> Reference | None:
        file = self.file
        names = ("reference", "reference_logits")
        forms = [(q, name) for q, prompt in enumerate(file.prompts) for name in names if getattr(prompt, name) is not None]
        if file.reference is not None:
            if forms:
                raise ReferenceMassError(f"prompts[{forms[0][0]}]", forms[0][1], "the reference is given once, here or by [reference]")
            return ReferenceParameter(Column(self.numbers(file.reference.theta, "reference.theta")))
        if not forms:
            return None
        (_, form), values = forms[0], []
        if [q for q, _ in forms] != list(range(len(prompts))) or any(name != form for _, name in forms):
            given_by = {q: [name for name in names if getattr(prompt, name) is not None] for q, prompt in enumerate(file.prompts)}
            wrong = next(q for q, found in given_by.items() if found != [form])
            raise ReferenceMassError(f"prompts[{wrong}]", form, f"every prompt gives its reference once, in the same form, here as {form}")
        for q, (given, prompt) in enumerate(zip(file.prompts, prompts, strict=True)):
            place, numbers = f"prompts[{q}].{form}", getattr(given, form)
            if len(numbers) != len(prompt.responses):
                raise ReferenceMassError(place, f"{len(numbers)} numbers", f"one for each of the {len(prompt.responses)} responses")
            values += self.numbers(numbers, place)
        return ReferenceMasses(Column(values)) if form == "reference" else ReferenceLogits(Column(values))

    # ---- policies

    def family(self, prompts: list[Prompt]) -> PolicyFamily:
        policy = self.file.policy
        match policy:
            case schema.SimplexPolicy():
                lengths = [len(prompt.responses) for prompt in prompts]
                self.check_parameters(sum(lengths) - len(lengths))
                return Simplex.of(lengths, inequalities=self.inequalities())
            case schema.RationalPolicy():
                rows = self.rows(policy.weights, prompts, "weights")
                weights = [[self.polynomial(w, f"{place}[{j}]") for j, w in enumerate(row)] for place, row in rows]
                return Rational.of(weights, size=len(self.parameters), inequalities=self.inequalities())
            case schema.ExpressionPolicy():
                rows = self.rows(policy.weights, prompts, "weights")
                formulas = [[self.formula(w, f"{place}[{j}]") for j, w in enumerate(row)] for place, row in rows]
                bounds = [
                    bound
                    for i, text in enumerate(policy.domain)
                    for bound in parse_inequality(text, self.parameters, f"policy.domain[{i}]", budget=self.budget)
                ]
                return Expressions.of(formulas, parameters=list(self.parameters), inequalities=bounds)
            case schema.SoftmaxPolicy():
                return self.softmax(policy, prompts)
            case schema.TokensPolicy():
                return self.tokens(policy, prompts)

    def softmax(self, policy: schema.SoftmaxPolicy, prompts: list[Prompt]) -> Softmax:
        size = len(self.parameters)
        features = []
        for place, matrix in self.rows(policy.features, prompts, "features"):
            for j, row in enumerate(matrix):
                if len(row) != size:
                    raise PolicyError(f"{place}[{j}]", f"{len(row)} numbers", f"a row has one number for each of the {size} parameters")
            features.append([self.numbers(row, f"{place}[{j}]") for j, row in enumerate(matrix)])
        base: list[Sequence[Exact | int]] | None = None
        if policy.base is not None:
            given = {key: self.numbers(row, f"policy.base{key_place(key)}") for key, row in policy.base.items()}
            _check_keys(given, [prompt.name for prompt in prompts], "policy.base", complete=False)
            for key, row in given.items():
                for j, x in enumerate(row):
                    place = f"policy.base{key_place(key)}[{j}]"
                    if sign(x, f"{place} > 0") <= 0:
                        raise PolicyError(place, shown(x), "a base mass is positive")
            base = [given.get(prompt.name) or [1] * len(prompt.responses) for prompt in prompts]
            for prompt, masses in zip(prompts, base, strict=True):
                if len(masses) != len(prompt.responses):
                    rule = f"one number for each of the {len(prompt.responses)} responses"
                    raise PolicyError(f"policy.base{key_place(prompt.name)}", f"{len(masses)} numbers", rule)
        return Softmax.of(features, size=size, base=base, inequalities=self.inequalities())

    def tokens(self, policy: schema.TokensPolicy, prompts: list[Prompt]) -> Tokens:
        form, other = ("logits", "weights") if policy.conditional == "softmax" else ("weights", "logits")
        tables = getattr(policy, form)
        if tables is None or getattr(policy, other) is not None:
            raise PolicyError("policy", form if tables is None else other, f"conditional {policy.conditional!r} takes {form}, not {other}")
        if self.file.protocol is None:
            raise PolicyError("file", "protocol", "a tokens policy needs a [protocol]")
        protocol = self.protocol(self.file.protocol)
        polynomials: dict[str, dict[str, Table]] = {}
        for context, table in tables.items():
            place = f"policy.{form}{key_place(context)}"
            _check_keys(table, protocol.tokens, place)
            polynomials[context] = {token: self.polynomial(x, place + key_place(token)) for token, x in table.items()}
            for token, polynomial in polynomials[context].items():
                if form == "logits" and any(sum(exponents) > 1 for exponents in polynomial):
                    raise PolicyError(place + key_place(token), str(table[token].raw), "a logit is affine in the parameters")
        return Tokens.of(
            protocol,
            [prompt.name for prompt in prompts],
            polynomials,
            size=len(self.parameters),
            conditional=policy.conditional,
            inequalities=self.inequalities(),
        )

    def rows(self, table: Mapping[str, Any], prompts: list[Prompt], name: str) -> Iterable[tuple[str, Any]]:
        """For each prompt the place and the row of a table of the policy: one entry for each response."""
        _check_keys(table, [prompt.name for prompt in prompts], f"policy.{name}")
        for prompt in prompts:
            place, row = f"policy.{name}{key_place(prompt.name)}", table[prompt.name]
            if len(row) != len(prompt.responses):
                raise PolicyError(place, f"{len(row)} entries", f"one entry for each of the {len(prompt.responses)} responses")
            yield place, row

    def inequalities(self) -> list[Table]:
        return [
            bound
            for i, text in enumerate(self.file.policy.domain)
            for bound in parse_polynomial_inequality(text, self.parameters, f"policy.domain[{i}]", budget=self.budget)
        ]

    def check_parameters(self, size: int) -> None:
        if len(self.parameters) != size:
            rule = f"this policy has {size} parameters, one less than responses for each prompt"
            raise PolicyError("policy.theta0", f"{len(self.parameters)} numbers", rule)


def _check_keys(table: Mapping[str, object], names: Sequence[str], place: str, *, complete: bool = True) -> None:
    known = set(names)
    for key in table:
        if key not in known:
            raise PolicyError(place + key_place(key), key, f"unknown name{_near(key, names)}")
    missing = next((name for name in names if name not in table), None) if complete else None
    if missing is not None:
        raise PolicyError(place, missing, "no entry for this name")


def _near(key: str, names: Sequence[str]) -> str:
    near = difflib.get_close_matches(key[:100], [name[:100] for name in names[:200]], n=1)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; the names here are {', '.join(name[:30] for name in names[:5])}{', ...' if len(names) > 5 else ''}"



