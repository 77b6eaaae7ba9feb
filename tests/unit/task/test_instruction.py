import pytest

from multistep.task import instruction_text


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("do\n", "do\n"),
        ("# canary 1\ndo\n# canary 2\n", "do\n# canary 2\n"),
        ("<!-- CANARY x -->\r\n\r\n# Canary\r\n\r\ndo\r\n", "# Canary\r\n\r\ndo\r\n"),
        ("<!-- canary -->\n  # canary\n \n\ndo", "do"),
        ("\n# canary\ndo", "# canary\ndo"),
        ("canary\ndo", "canary\ndo"),
        ("<!-- canary\n-->\ndo", "<!-- canary\n-->\ndo"),
        ("# canary", ""),
        ("", ""),
    ],
)
def test_leading_canary_lines_are_dropped(raw: str, expected: str) -> None:
    assert instruction_text(raw.encode()) == expected


def test_what_is_no_text_raises() -> None:
    with pytest.raises(UnicodeDecodeError):
        instruction_text(b"\xff")
