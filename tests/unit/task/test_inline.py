import pytest

from multistep.task import TaskTreeError, pack, tree_from_inline


def test_modes_are_guessed_and_can_be_given() -> None:
    tree = tree_from_inline({"a.sh": "x", "b": "#!/bin/sh", "c": "x", "d": "x"}, {"d": "0600"})
    assert {path: oct(entry.mode) for path, entry in tree.items()} == {
        "a.sh": "0o755",
        "b": "0o755",
        "c": "0o644",
        "d": "0o600",
    }


def test_everything_that_is_wrong_is_reported_at_once() -> None:
    files = {"/abs": "", "../up": "", "": "", "a": "", "./a": "", "d": "", "d/e": "", "\udc80": "", "n" * 256: ""}
    with pytest.raises(TaskTreeError) as caught:
        tree_from_inline(files, {"a": "rwx", "./a": "888", "b": "644", "d": "99999"})
    text = str(caught.value)
    assert len(caught.value.problems) == 6 + 1 + 4
    for expected in ("'/abs'", "'../up'", "two paths name the same file, a", "d/e lies below it", "octal", "'b'"):
        assert expected in text


def test_two_modes_for_one_file_are_refused() -> None:
    with pytest.raises(TaskTreeError, match="two modes"):
        tree_from_inline({"a": ""}, {"a": "644", "./a": "755"})


def test_text_keeps_its_line_ends() -> None:
    assert tree_from_inline({"a": "x\r\ny"}, {}).read("a") == b"x\r\ny"


def test_whatever_is_accepted_can_be_packed() -> None:
    assert pack(tree_from_inline({"ä/🙂": "\ud800"}, {}))
