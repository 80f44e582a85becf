"""The KL estimators at hand-worked masses: field reports 36 to 39 and 42."""

from __future__ import annotations

import pytest

from exactgrpo import InexactInputError, InputError, Real, kl_policy_from_reference
from exactgrpo.field.kl import derivative_in_log_mass, k1, k2, k3
from exactgrpo.field.kl_expectations import expected_gradient, expected_value, kl_gradient, kl_gradient_from_policy

HALF, REFERENCE, SLOPES = ["1/2", "1/2"], ["1/4", "3/4"], ["1/4", "-1/4"]  # softmax(t, 0) at t = 0: pi' = pi (1 - pi) = 1/4
OLD = ["3/4", "1/4"]
TRUE = Real.of("log(3)/4")


def test_36_values_on_policy() -> None:
    # pi_ref/pi = (1/2, 3/2): k1 and k3 have mean KL, k2 has (log^2 2 + log^2(3/2))/4
    kl = kl_policy_from_reference(HALF, REFERENCE)
    assert expected_value("k1", HALF, REFERENCE) == kl == Real.of("log(4/3)/2")
    assert expected_value("k2", HALF, REFERENCE) == Real.of("(log(2)*log(2) + log(3/2)*log(3/2))/4")
    assert expected_value("k2", HALF, REFERENCE).digits(10) == "0.1612137420"
    assert expected_value("k3", HALF, REFERENCE) == kl


def test_36_gradients_on_policy() -> None:
    assert expected_gradient("k1", HALF, SLOPES, REFERENCE) == 0
    assert expected_gradient("k2", HALF, SLOPES, REFERENCE) == TRUE == kl_gradient(HALF, SLOPES, REFERENCE)
    assert expected_gradient("k3", HALF, SLOPES, REFERENCE) == Real.of("1/4") == kl_gradient_from_policy(HALF, SLOPES, REFERENCE)


def test_37_values_off_policy() -> None:
    # (3/4)(log 2 - 1/2) + (1/4)(1/2 - log(3/2)); with the weights (2/3, 2) the policy's own mean
    assert expected_value("k3", HALF, REFERENCE, sampler=OLD).digits(10) == "0.1684941084"
    assert expected_value("k3", HALF, REFERENCE, sampler=OLD, weights="ratio") == kl_policy_from_reference(HALF, REFERENCE)


@pytest.mark.parametrize(
    ("estimator", "weights", "digits"),
    [("k2", "ratio", "0.3141594547"), ("k2", "none", "0.3106133312"), ("k3", "none", "0.2500000000")],
)
def test_37_wrong_gradients_off_policy(estimator: str, weights: str, digits: str) -> None:
    assert expected_gradient(estimator, HALF, SLOPES, REFERENCE, sampler=OLD, weights=weights).digits(10) == digits


@pytest.mark.parametrize(("estimator", "weights"), [("k3", "ratio"), ("k2", "detached ratio")])
def test_37_right_gradients_off_policy(estimator: str, weights: str) -> None:
    assert expected_gradient(estimator, HALF, SLOPES, REFERENCE, sampler=OLD, weights=weights) == TRUE


def test_38_ratio_weights_on_policy_keep_the_value_and_move_the_gradient() -> None:
    assert expected_value("k3", HALF, REFERENCE, weights="ratio") == expected_value("k3", HALF, REFERENCE)
    assert expected_gradient("k3", HALF, SLOPES, REFERENCE) == Real.of("1/4")
    assert expected_gradient("k3", HALF, SLOPES, REFERENCE, weights="ratio") == TRUE


def test_39_values_of_single_draws() -> None:
    assert k3("1/2", "1/4") == Real.of("log(2) - 1/2")
    assert k3("1/2", "3/4") == Real.of("1/2 - log(3/2)")
    assert k1("1/2", "3/4") == -Real.of("log(3/2)")
    assert k2("1/2", "3/4") == k2("3/4", "1/2")


def test_42_k3_is_not_clamped() -> None:
    # log(pi_ref/pi) = 5: k3 = e^5 - 6, derivative 1 - e^5
    policy = (Real.of(5).exp() * 2) ** -1
    assert k3(policy, "1/2").digits(10) == "142.4131591"
    assert derivative_in_log_mass(k3, policy, "1/2") == 1 - Real.of(5).exp()


@pytest.mark.parametrize("name", ["k1", "k2", "k3"])
def test_gradients_are_derivatives_of_the_sampled_mean(name: str) -> None:
    # pi_t = (1/2 + t/4, 1/2 - t/4) along the slopes, sampler fixed: a central difference of the exact mean
    h = Real.of("1/1000000")
    values = []
    for t in (h, -h):
        moved = [Real.of("1/2") + t / 4, Real.of("1/2") - t / 4]
        values.append(expected_value(name, moved, REFERENCE, sampler=OLD, weights="ratio"))
    slope = (values[0] - values[1]) / (2 * h)
    exact = expected_gradient(name, HALF, SLOPES, REFERENCE, sampler=OLD, weights="ratio")
    assert abs(slope - exact) < Real.of("1/10000000000")


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        ((["1/2", "1/4"], REFERENCE), "policy"),
        ((HALF, ["1/4", "1/4", "1/2"]), "reference"),
        ((HALF, ["0", "1"]), r"reference\[0\]"),
        (("12", REFERENCE), "policy"),
    ],
)
def test_bad_masses_are_named(arguments: tuple[object, object], place: str) -> None:
    with pytest.raises(InputError, match=place):
        expected_value("k3", *arguments)  # type: ignore[arg-type]


def test_bad_names_slopes_and_floats_are_refused() -> None:
    with pytest.raises(InputError, match="estimator"):
        expected_value("k4", HALF, REFERENCE)
    with pytest.raises(InputError, match="weights"):
        expected_value("k3", HALF, REFERENCE, weights="clip")
    with pytest.raises(InputError, match="derivatives"):
        expected_gradient("k3", HALF, [1, 1], REFERENCE)
    with pytest.raises(InexactInputError, match="policy"):
        k1(0.5, "1/2")
