"""What the bundled claims range over: instances stay inside the domain, and files cannot leave it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction as F
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from exactgrpo.claims.claim import Claim
from exactgrpo.claims.registry import bundled
from exactgrpo.claims.saved import FORMAT, KIND, replay
from exactgrpo.claims.variable import Variable
from exactgrpo.errors import InputError
from exactgrpo.numbers.real import Real

CLAIMS = bundled()
VARIABLES = [(id, name) for id, claim in CLAIMS.items() for name, variable in claim.variables.items() if isinstance(variable, Variable)]


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=list(CLAIMS))
def test_every_variable_of_a_bundled_claim_has_a_domain(claim: Claim) -> None:
    assert all(isinstance(variable, (Variable, Sequence)) for variable in claim.variables.values())


@pytest.mark.parametrize(("id", "name"), VARIABLES)
def test_what_is_tried_lies_in_the_domain(id: str, name: str) -> None:
    variable = CLAIMS[id].variables[name]

    @hypothesis.given(variable.strategy)
    @hypothesis.settings(max_examples=10, database=None, deadline=None, suppress_health_check=list(hypothesis.HealthCheck))
    def check(value: Any) -> None:
        variable.check(value, name)

    check()


@pytest.mark.parametrize(("id", "name"), VARIABLES)
@pytest.mark.parametrize("value", [True, "text", None, [], [[]], (), F(-9), [F(1)] * 99, {"a": F(1)}], ids=repr)
def test_what_lies_outside_every_domain_is_refused(id: str, name: str, value: Any) -> None:
    variable = CLAIMS[id].variables[name]
    plain = variable.domain == "a number"
    unbounded = "at least 2 numbers" in variable.domain
    if (plain and value == F(-9)) or (unbounded and value == [F(1)] * 99):
        variable.check(value, name)
        return
    with pytest.raises(InputError, match=name):
        variable.check(value, name)


K2 = {"policy": ["1/2", "1/2"], "reference": ["1/4", "3/4"]}
COIN = {"policy": ["2/3", "1/3"], "features": ["1", "0"], "rewards": ["1", "0"], "group_size": "2"}
STEP = {"policy": ["1/3", "1/3", "1/3"], "rewards": ["0", "0", "1"], "drawn": ["0", "1"], "step_size": "1"}
TERM = {"rho": "2", "advantage": "1", "epsilon": "1/4"}
BENT = {"terms": [["1", "1", "1"], ["1", "1", "1"]], "epsilon": "1/4", "ceiling_place": "2"}


@pytest.mark.parametrize(
    ("id", "instance", "changed", "rule"),
    [
        ("k2-value-is-kl", K2, {"policy": ["1", "1"]}, "instance.policy: '[1, 1]': 2 masses above 0 that sum to 1"),
        ("k2-value-is-kl", K2, {"policy": ["0", "1"]}, "instance.policy: '[0, 1]': 2 masses above 0 that sum to 1"),
        ("k2-value-is-kl", K2, {"policy": ["1/3", "1/3", "1/3"]}, "2 masses above 0"),
        ("k2-value-is-kl", K2, {"reference": ["sqrt(2)/2", "1/2"]}, "2 masses above 0 that sum to 1"),
        ("centring-unbiased", COIN, {"group_size": "5/2"}, "instance.group_size: '5/2': one of 2, 3"),
        ("centring-unbiased", COIN, {"group_size": "1"}, "one of 2, 3"),
        ("binary-groups-unbiased", COIN, {"rewards": ["1/2", "0"]}, "a list of 2, each a whole number from 0 to 1"),
        ("step-never-lowers-expected-reward", STEP, {"drawn": ["1/2", "0"]}, "each a whole number from 0 to 2"),
        ("step-never-lowers-expected-reward", STEP, {"drawn": ["3", "0"]}, "each a whole number from 0 to 2"),
        ("step-never-lowers-expected-reward", STEP, {"step_size": "0"}, "a number above 0"),
        ("geometric-ratio-mean-one", {"policy": ["1/2", "1/2"], "old": ["1/4", "3/4"]}, {"length": "5/2"}, "one of 2, 3"),
        ("min-before-advantage", TERM, {"rho": "0"}, "a ratio above 0"),
        ("min-before-advantage", TERM, {"epsilon": "1"}, "a threshold above 0 and below 1"),
        ("dual-clip-changes-nothing", TERM, {"ceiling": "1"}, "a ceiling above 1"),
        ("dual-clip-kinks-never-cancel", BENT, {"terms": [["1", "1"], ["1", "1"]]}, "each an advantage, a place and a slope"),
        ("token-mean-is-mean-of-means", {}, {"losses": [["1"], []]}, "rows of at least 1 number"),
        ("k1-nonnegative", {"mass": "1/2"}, {"reference_mass": "3/2"}, "a probability above 0"),
        ("run-within-budget", {}, {"problem": "1"}, "a problem"),
    ],
)  # fmt: skip
def test_an_instance_outside_the_domain_is_bad_input(id: str, instance: dict[str, Any], changed: dict[str, Any], rule: str) -> None:
    data = {"format": FORMAT, "kind": KIND, "claim": id, "instance": {**instance, **changed}}
    with pytest.raises(InputError) as caught:
        replay(data)
    assert rule in str(caught.value)


def test_irrational_values_are_in_the_domain_where_the_claim_speaks_of_numbers() -> None:
    root = Real.of("sqrt(2)")
    CLAIMS["k2-value-is-kl"].check({"policy": [root / 2, 1 - root / 2], "reference": [F(1, 2), F(1, 2)]}, "instance")
    CLAIMS["min-before-advantage"].check({"rho": root, "advantage": -root, "epsilon": root / 2}, "instance")


@hypothesis.given(st.lists(st.fractions(min_value=F(1, 9), max_value=9), min_size=2, max_size=2))
def test_weights_that_do_not_sum_to_one_are_never_a_law(weights: list[F]) -> None:
    variable = CLAIMS["k2-value-is-kl"].variables["policy"]
    assert variable.contains(weights) == (sum(weights) == 1)
    assert variable.contains([w / sum(weights) for w in weights])
