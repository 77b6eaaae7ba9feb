from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from multistep.scoring import RewardError, RewardFile, StepScore, aggregate, parse_rewards, stop_decision

numbers = st.one_of(st.integers(-(10**6), 10**6), st.floats(-1e12, 1e12, allow_nan=False))
rewards = st.dictionaries(st.sampled_from(["reward", "a", "b"]), numbers, max_size=3)


@given(st.lists(numbers, min_size=1, max_size=50))
def test_mean_is_the_exact_mean_rounded_once_or_twice(values: list[float]) -> None:
    result = aggregate("mean", [StepScore({"reward": value}, True) for value in values])
    exact = sum(map(Fraction, values)) / len(values)
    assert result is not None
    assert abs(Fraction(result["reward"]) - exact) <= abs(exact) * Fraction(1, 2**51) + Fraction(5e-324)


@given(st.lists(rewards, max_size=6))
def test_aggregation_does_not_depend_on_the_order_of_keys(steps: list[dict[str, float]]) -> None:
    shuffled = [dict(reversed(step.items())) for step in steps]
    first = aggregate("mean", [StepScore(step, True) for step in steps])
    assert first == aggregate("mean", [StepScore(step, True) for step in shuffled])


@given(st.sampled_from(["reward.json", "reward.txt"]), st.binary(max_size=200))
def test_any_bytes_are_finite_rewards_or_a_typed_error(name: str, content: bytes) -> None:
    try:
        found = parse_rewards(RewardFile(name, "file", content))
    except RewardError as error:
        assert str(error)
        return
    assert all(abs(value) < float("inf") for value in found.values())
    assert "".join(found).encode()


@given(rewards, st.dictionaries(st.sampled_from(["reward", "a", "b"]), numbers, max_size=3))
def test_a_higher_threshold_never_lets_more_through(found: dict[str, float], least: dict[str, float]) -> None:
    higher = {key: value + 1 for key, value in least.items()}
    if stop_decision(least, found) is not None:
        assert stop_decision(higher, found) is not None
