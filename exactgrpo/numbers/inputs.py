"""The doors for lists and counts from Python: anything else is refused in one line before the work starts.

A list may be any sized iterable in a fixed order, so a tuple, a range or a NumPy array too; text, tables, sets and generators are
not lists. A count may be a NumPy integer; a float is no count, even if it is whole.
"""

from __future__ import annotations

import numbers
from collections.abc import Collection, Mapping, Sequence, Set
from contextlib import suppress
from typing import Any

from exactgrpo.errors import InexactInputError, InputError
from exactgrpo.numbers.rational import Exact, exact

LIST = "a list is needed"


def listed(values: object, place: str, rule: str = LIST, *, error: type[InputError] = InputError) -> Sequence[Any]:
    """Return the values as a list or tuple, or raise `error` with the rule.

    >>> listed(range(3), "steps")
    [0, 1, 2]
    >>> listed("abc", "responses")
    Traceback (most recent call last):
    exactgrpo.errors.InputError: responses: 'abc': a list is needed
    """
    if isinstance(values, (list, tuple)):
        return values
    if isinstance(values, Collection) and not isinstance(values, (str, bytes, bytearray, Mapping, Set)):
        with suppress(TypeError):  # an array without dimensions
            return list(values)
    raise refusal(place, values, rule, error)


def whole(value: object, place: str, *, least: int, error: type[InputError] = InputError) -> int:
    """Return the count as an int of at least `least`, or raise `error`.

    >>> whole(2.0, "group_size", least=2)
    Traceback (most recent call last):
    exactgrpo.errors.InexactInputError: group_size: 2.0: an integer of at least 2
    """
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        with suppress(TypeError, ValueError):  # NumPy's time spans call themselves integers
            if (count := int(value)) >= least:
                return count
    raise refusal(place, value, f"an integer of at least {least}", error)


def exact_list(values: object, place: str, rule: str = LIST, *, error: type[InputError] = InputError) -> list[Exact]:
    """Return the exact numbers of a list, each as `rational.exact` reads it.

    >>> exact_list([1, "0.5"], "theta0")
    [Fraction(1, 1), Fraction(1, 2)]
    """
    row = listed(values, place, rule, error=error)
    try:
        return [exact(x) for x in row]
    except InputError:  # places are written only now: most lists are good
        return [exact(x, f"{place}[{i}]") for i, x in enumerate(row)]


def refusal(place: str, value: object, rule: str, error: type[InputError]) -> InputError:
    """Return the error to raise: `error`, or InexactInputError where the value is a float."""
    is_float = isinstance(value, numbers.Real) and not isinstance(value, numbers.Rational)
    return (InexactInputError if is_float else error)(place, value, rule)
