"""SymPy sides of a claim: their exact value at an instance, and a proof for all values by the normal form of rational functions."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from exactgrpo.errors import ClaimError, DomainError
from exactgrpo.numbers.formula import Formula, formula
from exactgrpo.numbers.formula_text import FormulaBuilder
from exactgrpo.numbers.from_sympy import bare_names, is_sympy, read
from exactgrpo.numbers.rational_functions import is_rational_zero, value_at
from exactgrpo.numbers.real import Real


def formula_of(side: Any, place: str) -> Formula:
    """A SymPy expression as a formula over its symbols."""
    names = bare_names(side, place, error=ClaimError)
    result: Formula = read(side, FormulaBuilder({name: i for i, name in enumerate(names)}), place, error=ClaimError)
    return result


def value_of(side: Any, instance: Mapping[str, Any]) -> Real:
    """The exact value of a SymPy expression whose symbols are the variables of a claim.

    >>> from sympy import symbols
    >>> p, q = symbols("p q")
    >>> value_of(p / (p + q), {"p": Fraction(1, 2), "q": 1})
    Real('1/3')
    """
    return value_at(formula_of(side, "side"), instance)


def is_identity(left: Any, right: Any) -> bool:
    """True if both sides are rational functions with one normal form: they are equal wherever both are defined.

    False says nothing: the sides may differ, or be outside the class or its budget.

    >>> from sympy import symbols
    >>> p, q = symbols("p q")
    >>> is_identity((p**2 - q**2) / (p - q), p + q), is_identity(p, q), is_identity(p, 1)
    (True, False, False)
    """
    if not (is_sympy(left) or is_sympy(right)):
        return False
    try:
        above, below = (_side(side) for side in (left, right))
    except DomainError:
        return False
    if above is None or below is None:
        return False
    return is_rational_zero(formula("add", (above, formula("mul", (formula("number", value=Fraction(-1)), below)))))


def _side(side: Any) -> Formula | None:
    if is_sympy(side):
        return formula_of(side, "side")
    number = Real.of(side).as_fraction()
    return None if number is None else formula("number", value=number)
