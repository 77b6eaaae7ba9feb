from typing import Any

import pytest
from parity_vectors import assert_same_number, cases, content

from multistep.scoring import RewardError, RewardFile, choose_reward_file, error_policy, parse_rewards

# Where we differ from the reference, and why. docs/harbor-compatibility.md has a row for each.
DELIBERATE_DIFFERENCES = {
    "json-scalar-int": "VerifierOutputParseError like every other malformed file, not ValidationError, which would count as valid",
    "json-scalar-float": "as json-scalar-int",
    "json-very-deep-nesting": "VerifierOutputParseError, not RecursionError, which would count as valid",
    "txt-directory": "VerifierOutputParseError, not IsADirectoryError, which would count as valid",
    "json-directory": "as txt-directory",
    "json-directory-and-txt": "as txt-directory",
    "json-int-400-digits": "refused at once; the reference accepts it and then loses the whole trial to an OverflowError",
}


def _reward_file(files: dict[str, Any]) -> RewardFile | None:
    present = {
        name
        for name, entry in files.items()
        if not entry.get("kind", "").startswith("@link") or entry["kind"][6:] in files
    }
    name = choose_reward_file(present)
    if name is None:
        return None
    entry = files[name]
    if entry.get("kind", "").startswith("@link"):
        entry = files[entry["kind"][6:]]
    if entry.get("kind") == "@dir":
        return RewardFile(name, "directory", b"")
    return RewardFile(name, "file", content(entry))


@pytest.mark.parametrize("case", cases("rewards_parse"))
def test_reward_file_gives_what_the_reference_gives(case: dict[str, Any]) -> None:
    expected = case["result"]
    try:
        rewards = parse_rewards(_reward_file(case["files"]))
    except RewardError as error:
        if case["name"] in DELIBERATE_DIFFERENCES:
            assert error.error_type == "VerifierOutputParseError" != expected.get("error")
            return
        assert error.error_type == expected["error"]
        assert error_policy(error.error_type).model_dump() == expected["policy"]
        assert len(str(error)) > 20
        return
    assert case["name"] not in DELIBERATE_DIFFERENCES
    wanted = {
        key.encode("utf-8", "surrogatepass").decode("utf-8", "replace"): value
        for key, value in expected["rewards"].items()
    }
    assert list(rewards) == list(wanted)
    for key, value in rewards.items():
        assert_same_number(value, wanted[key], key)
