"""What a policy family is: positive masses that are differentiable in theta, and how a cotangent on masses pulls back.

The update depends on theta only through the masses, so nothing else in the library knows families.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from exactgrpo.numbers.arithmetic import Arithmetic, Rows


@dataclass(frozen=True, slots=True)
class Policy:
    """A family at one theta, in one arithmetic.

    `mass` holds pi_theta(y|q) for all prompts and responses, flat over the family's `rows`.
    `log_mass()` holds log pi_theta(y|q).
    `log_weight()`, if given, is log_mass() up to one number for each prompt, for less: what a cotangent needs of it.
    `pullback(c)` is sum_j c_j grad mass_j, a vector of one entry for each parameter: it takes dF/d(mass) to dF/d(theta).
    A constant added to c inside one prompt changes nothing, since masses sum to one.
    """

    mass: Any
    log_mass: Callable[[], Any]
    pullback: Callable[[Any], Any]
    log_weight: Callable[[], Any] | None = None


class PolicyFamily:
    """Base class of policy families; a family of your own defines `rows`, `size` and `at`, and `domain` where U is not R^d.

    `rows` is the ordered policy support: one row for each prompt, one position for each response. `size` is the number of
    parameters d; `parameters` may name them. The promises that a family makes, for every theta in U: each mass is positive, the
    masses of a prompt sum to one, and `pullback` is the adjoint of the derivative of the masses. `exactgrpo` checks positivity
    and the sums at theta0.
    Theorems: family_grpo, family_oracle_exact (Family.v): what holds of the update holds of every such family.
    """

    rows: Rows
    size: int
    parameters: tuple[str, ...] = ()
    masses_by_construction: ClassVar[bool] = False

    def at(self, arithmetic: Arithmetic, theta: Any) -> Policy:
        """The masses at theta with their pullback; theta is a vector of `size` entries of the arithmetic."""
        raise TypeError(f"{type(self).__name__} does not define its masses: write a method at(arithmetic, theta)")

    def domain(self, arithmetic: Arithmetic, theta: Any) -> Iterator[Any]:
        """Vectors that are all positive exactly when theta lies in the open domain U (here R^d).

        A vector is asked for only after all entries of the vectors before it were found positive, so a later one may use
        logarithms, roots or quotients of what an earlier one has made safe.
        """
        yield from ()
