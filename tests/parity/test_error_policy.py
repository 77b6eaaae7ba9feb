from typing import Any

import pytest
from parity_vectors import cases, load
from pydantic import ValidationError

from multistep.scoring import PolicyOverride, error_policy, is_known


@pytest.mark.parametrize("case", cases("error_policy"))
def test_policy_is_the_reference_s(case: dict[str, Any]) -> None:
    override = PolicyOverride(**case["override"]) if case["override"] else None
    policy = error_policy(case["exception_type"], override)
    assert policy.model_dump() == {key: case[key] for key in ("should_retry", "should_grade", "has_valid_reward")}
    assert is_known(case["exception_type"]) == case["known"]


@pytest.mark.parametrize("name", sorted(load("error_policy")["override_validation"]))
def test_override_is_accepted_as_in_the_reference(name: str) -> None:
    given = {
        "unknown-key": {"retry": True},
        "string-bool": {"should_retry": "true"},
        "int-bool": {"should_retry": 1},
        "int-two": {"should_retry": 2},
        "null": {"should_retry": None},
    }[name]
    expected = load("error_policy")["override_validation"][name]
    if expected["accept"]:
        assert PolicyOverride.model_validate(given).model_dump() == expected["value"]
    else:
        with pytest.raises(ValidationError) as caught:
            PolicyOverride.model_validate(given)
        assert caught.value.errors()[0]["type"] == expected["error"]
