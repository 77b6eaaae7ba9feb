import pytest

from multistep.task import EnvReference, parse_env_value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${V}", EnvReference("V", None)),
        ("${V:-d}", EnvReference("V", "d")),
        ("${V:-}", EnvReference("V", "")),
        ("${V:-a}b}", EnvReference("V", "a}b")),
        ("${V:-${W}}", EnvReference("V", "${W}")),
        ("${V-d}", EnvReference("V-d", None)),
        ("${V W}", EnvReference("V W", None)),
    ],
)
def test_reference(text: str, expected: EnvReference) -> None:
    assert parse_env_value(text) == expected


@pytest.mark.parametrize(
    "text", ["", "$V", "x${V}", "${V}x", " ${V}", "${V}\n", "${}", "${A}${B}", "${A:b}", "${A:-x\ny}"]
)
def test_literal(text: str) -> None:
    assert parse_env_value(text) == text
