"""Normal forms: an expression as a fraction over a tower, and what a normal form that is not zero proves.

Zero is proved by a chain of identities. Not zero is a theorem in three classes: algebraic numbers; linear forms in logarithms of
algebraic numbers with algebraic coefficients (Baker: logarithms that are independent over Q are, with 1, independent over the
algebraic numbers); polynomials in exponentials of algebraic numbers (Lindemann and Weierstrass). Everything else is conditional
on Schanuel's conjecture, which is used to name the class and for nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

from exactgrpo.numbers import expression as ex
from exactgrpo.numbers.coprime import split_rational
from exactgrpo.numbers.exponentials import exp_of, hides_relations
from exactgrpo.numbers.expression import Expression, cone
from exactgrpo.numbers.logarithms import log_of
from exactgrpo.numbers.plan import NoNormalForm, Plan, Restart
from exactgrpo.numbers.polynomials import Polynomial, factor
from exactgrpo.numbers.radicals import root_of
from exactgrpo.numbers.separation import sign_by_separation
from exactgrpo.numbers.tower import Element, Tower

RATIONAL_CLASS = "rational"
MULTIQUADRATIC = "multiquadratic"
ALGEBRAIC = "real algebraic"
BAKER = "linear forms in logarithms (Baker)"
LINDEMANN = "exponential polynomial (Lindemann-Weierstrass)"
CONDITIONAL = "conditional (Schanuel)"
OPAQUE = "opaque leaves"
TOO_LARGE = "no normal form within the budget"

_MAX_ATTEMPTS = 40
_MAX_NODES = 4000


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a normal form says: proved zero, or not; `complete`: not being zero formally is a proof of not being zero.

    `provisional`: the proof rests on relations of bounded height having been searched for; search again with more bits.
    `simplified` is the number that the normal form denotes: cancellation may spare many bits of precision.
    """

    is_zero: bool
    number_class: str
    complete: bool
    provisional: bool
    detail: str
    simplified: Expression | None = None


@dataclass(frozen=True, slots=True)
class NormalForm:
    """An element of a tower that denotes the same number as the expression it was made from."""

    tower: Tower
    element: Element


def normal_form(x: Expression, *, relation_bits: int = 192, work: int = 2_000_000) -> NormalForm:
    """The normal form of x; raises NoNormalForm when a budget is exhausted."""
    nodes = cone(x)
    if len(nodes) > _MAX_NODES:
        raise NoNormalForm("too many nodes")
    plan = Plan(relation_bits=relation_bits, work=work)
    for node in nodes:
        if node.kind in (ex.ROOT, ex.LOG) and node.args[0].kind == ex.RATIONAL:
            _announce(plan, node)
    for _ in range(_MAX_ATTEMPTS):
        tower = Tower(plan)
        try:
            return NormalForm(tower, _element(tower, nodes))
        except Restart:
            continue
    raise NoNormalForm("the plan does not settle")


def _announce(plan: Plan, node: Expression) -> None:
    q = node.args[0].payload
    for n in (int(q.p), int(q.q)):
        if n > 1:
            plan.request(n, node.payload if node.kind == ex.ROOT else 1)
    if split_rational(plan.base, q) is None:
        raise NoNormalForm("a coprime base that does not split its own elements")


def _element(tower: Tower, nodes: list[Expression]) -> Element:
    values: dict[Expression, Element] = {}
    for node in nodes:
        values[node] = _step(tower, node, [values[a] for a in node.args])
    return values[nodes[-1]]


def _step(tower: Tower, node: Expression, args: list[Element]) -> Element:
    kind = node.kind
    if kind == ex.RATIONAL:
        return tower.ring.constant(node.payload), tower.one
    if kind == ex.SUM:
        return tower.add(args[0], args[1])
    if kind == ex.PRODUCT:
        return tower.mul(args[0], args[1])
    if kind == ex.QUOTIENT:
        return tower.div(args[0], args[1])
    if kind == ex.POWER:
        return tower.normal(tower.power(args[0][0], node.payload), tower.power(args[0][1], node.payload))
    if kind == ex.ROOT:
        return root_of(tower, args[0], node.payload)
    if kind == ex.LOG:
        if args[0][0].is_zero():
            raise NoNormalForm("the argument of a logarithm is formally zero")
        return log_of(tower, args[0])
    if kind == ex.EXP:
        return exp_of(tower, args[0])
    return tower.variable(tower.generator(("leaf", node.serial), "leaf", node)), tower.one


def judge(form: NormalForm) -> Verdict:
    """Whether the normal form is zero, and if it is not, whether that is a proof that the number is not."""
    tower, (numerator, denominator) = form.tower, form.element
    if tower.is_zero(numerator):
        bits = tower.proved_by_separation
        detail = f"normal form zero, algebraic coefficients by separation at {bits} bits" if bits else "normal form zero"
        return Verdict(True, _class_of(tower, numerator)[0], True, False, detail)
    name, complete = _class_of(tower, numerator)
    if name == CONDITIONAL:
        name, complete = _class_by_factors(tower, numerator)
    simplified = tower.express_element((tower.without_zeros(numerator), denominator))
    return Verdict(False, name, complete, _is_provisional(tower), "normal form not zero", simplified)


def _class_of(tower: Tower, p: Polynomial) -> tuple[str, bool]:
    used = tower.used(p)
    kinds = {g.kind for g in used if not g.algebraic}
    if "leaf" in kinds:
        return OPAQUE, False
    if not used:
        return RATIONAL_CLASS, True
    if not kinds:
        multiquadratic = all(g.kind == "root" and g.degree == 2 for g in used)
        return (MULTIQUADRATIC if multiquadratic else ALGEBRAIC), _has_nonzero_coefficient(tower, p)
    if kinds == {"log"} and _is_linear_in_logs(tower, p) and all(tower.is_algebraic(g.meaning) for g in used if g.kind == "log"):
        return BAKER, _has_nonzero_coefficient(tower, p)
    exponents = [g.meaning[0] for g in used if g.kind == "exp"]
    if kinds == {"exp"} and all(tower.is_algebraic(a) and tower.is_algebraic(b) for a, b in exponents):
        return LINDEMANN, _has_nonzero_coefficient(tower, p)
    return CONDITIONAL, False


def _class_by_factors(tower: Tower, p: Polynomial) -> tuple[str, bool]:
    """A product is not zero when every factor is in a class where that is a theorem."""
    _, factors = factor(p)
    classes = [_class_of(tower, f) for f, _ in factors]
    if len(classes) > 1 and all(complete for _, complete in classes):
        return "product of " + " and ".join(sorted({name for name, _ in classes})), True
    return CONDITIONAL, False


def _is_linear_in_logs(tower: Tower, p: Polynomial) -> bool:
    logs = [g.index for g in tower.used(p) if g.kind == "log"]
    return all(sum(monomial[i] for i in logs) <= 1 for monomial in p.monoms())


def _has_nonzero_coefficient(tower: Tower, p: Polynomial) -> bool:
    """True if some algebraic coefficient is certainly not zero: over roots of a coprime base that is so formally."""
    for coefficient in tower.coefficients(p):
        if not any(g.kind == "radical" for g in tower.used(coefficient)):
            return True
        decided = sign_by_separation(tower.express(coefficient))
        if decided is not None and decided[0] != 0:
            return True
    return False


def _is_provisional(tower: Tower) -> bool:
    """True if independence of the generators rests on a search: logarithms of, or exponentials in, nested algebraic numbers."""
    return any(
        (g.kind == "log" and not g.meaning.is_constant())
        or (g.kind == "exp" and hides_relations(tower, g.meaning[0]))
        for g in tower.generators.values()
    )
