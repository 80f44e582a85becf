"""Every error class of exactgrpo. An undefined gradient, an invalid update and an undecided question are results, not errors."""

from __future__ import annotations


class ExactGRPOError(Exception):
    """Base class of all errors raised on purpose by this package."""


class InputError(ExactGRPOError, ValueError):
    """Bad input: the place where it stands, the offending value and the rule that it breaks, in one line."""

    def __init__(self, place: str, value: object, rule: str) -> None:
        self.place, self.value, self.rule = place, value, rule
        super().__init__(place, value, rule)

    def __str__(self) -> str:
        text = self.value if isinstance(self.value, str) else repr(self.value)
        text = " ".join(text.split())
        shown = text if len(text) <= 80 else f"{text[:60]}... ({len(text)} characters)"
        return f"{self.place}: {shown!r}: {self.rule}" if isinstance(self.value, str) else f"{self.place}: {shown}: {self.rule}"


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
