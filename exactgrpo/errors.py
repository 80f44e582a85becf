"""Every error class of exactgrpo. An undefined gradient, an invalid update and an undecided question are results, not errors."""

from __future__ import annotations

import reprlib
from fractions import Fraction


class ExactGRPOError(Exception):
    """Base class of all errors raised on purpose by this package."""


class InputError(ExactGRPOError, ValueError):
    """Bad input: the place where it stands, the offending value and the rule that it breaks, in one line."""

    def __init__(self, place: str, value: object, rule: str) -> None:
        self.place, self.value, self.rule = place, value, rule
        super().__init__(place, value, rule)

    def __str__(self) -> str:
        return f"{_line(self.place)}: {_shown(self.value)}: {_line(self.rule)}"


class InexactInputError(InputError, TypeError):
    """A binary float where an exact number is needed."""


class ParseError(InputError):
    """A text that the grammar of exact numbers and formulas does not accept."""


class LimitError(InputError):
    """An input that exceeds a size limit; limits are checked before work starts."""


class DomainError(InputError, ArithmeticError):
    """A number that does not exist: division by zero, logarithm or root of a negative number."""


class PromptError(InputError):
    """Prompts are a non-empty list of distinct names, each with a non-empty list of distinct responses."""


class RewardError(InputError):
    """Rewards are one finite real number for each response."""


class ReferenceMassError(InputError):
    """The reference is a probability mass function, positive on exactly the policy support."""


class PolicyError(InputError):
    """A policy family that does not fit its prompts, or whose masses are not a positive probability mass function."""


class ThetaError(InputError):
    """theta0 has one number for each parameter and lies in the open domain U."""


class UpdateError(InputError):
    """Group size, iteration counts, epsilon, beta or step sizes outside the range that the update is defined for."""


class DrawError(InputError):
    """A tape of draws with the wrong shape, or a draw outside the support."""


class ClaimError(InputError):
    """A claim that is not well formed: a free variable, a side that raises, a predicate that is not true or false, an unknown id."""


class UndecidedError(ExactGRPOError, ArithmeticError):
    """A comparison that neither an identity nor a separated enclosure has decided within the budget.

    `question` says what was asked, `enclosure` is an interval that certainly contains the number whose sign is open,
    `number_class` names the class of numbers that it belongs to, and `formally_nonzero` is True when the search for an
    identity ended without one.
    """

    def __init__(self, question: str, enclosure: str, number_class: str, formally_nonzero: bool) -> None:
        self.question, self.enclosure, self.number_class, self.formally_nonzero = question, enclosure, number_class, formally_nonzero
        super().__init__(question, enclosure, number_class, formally_nonzero)

    def __str__(self) -> str:
        formal = "no identity makes it zero" if self.formally_nonzero else "it may be zero"
        return f"undecided: {self.question}: the value lies in {self.enclosure} ({self.number_class}; {formal})"


# ---- any value in one short line: whatever is thrown at the library, saying so costs little and cannot fail -----------------

_MAX_TEXT = 80
_MAX_BITS = 2000  # Python may refuse to write out integers of more than 640 digits
_MAX_LINE = 1000


class _Repr(reprlib.Repr):
    """`repr` with bounded work inside containers: parts that are long or fail are named by their type."""

    def repr_int(self, x: int, level: int) -> str:
        return f"an integer of {x.bit_length()} bits" if x.bit_length() > _MAX_BITS else repr(x)

    def repr_Fraction(self, x: Fraction, level: int) -> str:
        bits = x.numerator.bit_length() + x.denominator.bit_length()
        return f"a fraction of {bits} bits" if bits > _MAX_BITS else repr(x)

    def repr_dict(self, x: dict[object, object], level: int) -> str:
        return super().repr_dict(x, level) if len(x) <= 100 else f"a dict of {len(x)}"

    def repr_set(self, x: set[object], level: int) -> str:
        return super().repr_set(x, level) if len(x) <= 100 else f"a set of {len(x)}"

    def repr_instance(self, x: object, level: int) -> str:
        if hasattr(type(x), "__dataclass_fields__"):
            return f"<{type(x).__name__}>"
        try:
            return repr(x)
        except Exception:
            return f"<{type(x).__name__}>"


def _shown(value: object) -> str:
    if isinstance(value, str):
        head = " ".join(value[:_MAX_LINE].split())
        return repr(head if len(value) <= _MAX_LINE and len(head) <= _MAX_TEXT else f"{head[:60]}... ({len(value)} characters)")
    shown = _Repr().repr(value)
    text = " ".join(shown[:_MAX_LINE].split())
    return _line(text if len(shown) <= _MAX_LINE and len(text) <= _MAX_TEXT else f"{text[:60]}... ({len(shown)} characters)")


def _line(text: str) -> str:
    """The text in one line of printable characters."""
    text = text if len(text) <= _MAX_LINE else f"{text[: _MAX_LINE - 60]}... ({len(text)} characters)"
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
