import pytest

from multistep.task import (
    Entry,
    FileTree,
    TaskTreeError,
    instruction_text,
    load_task,
    parse_env_value,
    tree_from_inline,
)
from multistep.task.load import MAXIMUM_STEPS

STEP = {"steps/a/instruction.md": "do\n", "steps/a/tests/test.sh": "true\n"}


def _load(toml: str, files: dict[str, str] | None = None):
    return load_task(tree_from_inline({"task.toml": toml, **(STEP if files is None else files)}, {}))


def _texts(toml: str, files: dict[str, str] | None = None) -> list[str]:
    return [str(problem) for problem in _load(toml, files).problems]


def test_all_problems_of_task_toml_are_told_at_once() -> None:
    texts = _texts(
        '[agent]\ntimeout_sec = "soon"\n[environment]\ncpus = "many"\n[[steps]]\nname = "a/b"\nmin_reward = "high"\n'
    )
    for start in (
        "task.toml: agent.timeout_sec: found 'soon':",
        "task.toml: environment.cpus: found 'many':",
        "task.toml: steps[0].name: found 'a/b': a step's name",
        "task.toml: steps[0].min_reward: found 'high':",
    ):
        assert any(text.startswith(start) for text in texts), (start, texts)


def test_all_missing_files_are_told_at_once() -> None:
    texts = _texts(
        '[[steps]]\nname = "a"\n[[steps]]\nname = "b"\n[[steps]]\nname = "c"\n',
        {"steps/a/x": "", "steps/c/instruction.md": "x"},
    )
    assert [text.split(":")[0] for text in texts] == [
        "steps/a/instruction.md",
        "steps/a/tests/test.sh",
        "steps/b",
        "steps/c/tests/test.sh",
    ]


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
def test_line_ends_of_windows_and_old_macs_parse(end: str) -> None:
    loaded = _load('[[steps]]\nname = "a"\n'.replace("\n", end))
    assert loaded.task is not None and loaded.task.steps[0].name == "a"


def test_byte_order_mark_is_named() -> None:
    assert "byte order mark" in _texts('\ufeff[[steps]]\nname = "a"\n')[0]


@pytest.mark.parametrize(
    ("toml", "key", "meant"),
    [
        ('[[step]]\nname = "b"\n[[steps]]\nname = "a"\n', "step", "steps"),
        ('[[steps]]\nname = "a"\ntimeout_sec = 5\n', "steps[0].timeout_sec", "known keys"),
        ('[agent]\ntimout_sec = 5\n[[steps]]\nname = "a"\n', "agent.timout_sec", "timeout_sec"),
        (
            '[[steps]]\nname = "a"\n[steps.verifier.environment]\nmemory_gb = 2\n',
            "steps[0].verifier.environment.memory_gb",
            "memory_mb",
        ),
    ],
)
def test_key_that_nothing_reads_is_a_warning_with_advice(toml: str, key: str, meant: str) -> None:
    (warning,) = _load(toml).warnings
    assert (warning.key, meant in warning.message) == (key, True)


def test_free_tables_give_no_warnings() -> None:
    assert (
        _load('version = "1"\n[metadata]\nanything = 1\n[environment.env]\nA = "b"\n[[steps]]\nname = "a"\n').warnings
        == ()
    )


def test_steps_that_would_share_a_directory_are_told() -> None:
    assert "share a directory" in _texts('[[steps]]\nname = "a"\n[[steps]]\nname = "A"\n')[0]


def test_too_many_steps_are_told_quickly() -> None:
    toml = "".join(f'[[steps]]\nname = "{number}"\n' for number in range(MAXIMUM_STEPS + 1))
    assert any(f"may have {MAXIMUM_STEPS} steps" in text for text in _texts(toml))


@pytest.mark.parametrize("toml", ["a = [" * 5000, "[a" + ".a" * 5000 + "]\n", "x = 1\nx = 2\n", "\0"])
def test_hostile_toml_is_a_problem_and_no_crash(toml: str) -> None:
    assert _load(toml).task is None


def test_files_of_a_step_are_found() -> None:
    files = {**STEP, "steps/a/workdir/setup.sh": "", "steps/a/solution/solve.sh": "", "tests/helper": ""}
    loaded = _load('[[steps]]\nname = "a"\n', files)
    assert loaded.task is not None
    step = loaded.task.steps[0]
    assert (step.has_workdir, step.has_setup, step.has_tests, step.test_script, step.solution) == (
        True,
        True,
        True,
        "step",
        "step",
    )
    assert loaded.task.has_shared_tests
    again = type(loaded.task).model_validate_json(loaded.task.model_dump_json(exclude_defaults=True))
    assert again == loaded.task


@pytest.mark.parametrize(
    ("files", "modes", "words"),
    [
        ({"/abs": ""}, {}, "relative"),
        ({"a/../../b": ""}, {}, "relative"),
        ({"": ""}, {}, "relative"),
        ({"a": "", "./a": ""}, {}, "same file"),
        ({"a": "", "a/b": ""}, {}, "lies below"),
        ({"a": ""}, {"b": "0755"}, "no file"),
        ({"a": ""}, {"a": "rwx"}, "octal"),
    ],
)
def test_inline_files_that_cannot_be_are_refused(files: dict[str, str], modes: dict[str, str], words: str) -> None:
    with pytest.raises(TaskTreeError, match=words):
        tree_from_inline(files, modes)


def test_inline_scripts_are_executable() -> None:
    tree = tree_from_inline({"a.sh": "", "tool": "#!/bin/sh", "text": "x", "own": "x"}, {"own": "0600"})
    assert [oct(tree[path].mode) for path in ("a.sh", "tool", "text", "own")] == ["0o755", "0o755", "0o644", "0o600"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<!-- Canary 1 -->\n# canary GUID\n\n\nDo it.\n# canary stays\n", "Do it.\n# canary stays\n"),
        ("Do it.\n", "Do it.\n"),
        ("# Title\ntext", "# Title\ntext"),
    ],
)
def test_leading_canaries_are_not_shown_to_agents(text: str, expected: str) -> None:
    assert instruction_text(text.encode()) == expected


@pytest.mark.parametrize("text", ["x-${V}", "$V", "${A}${B}", " ${V}", "plain", "${}"])
def test_reference_within_a_value_is_literal(text: str) -> None:
    assert parse_env_value(text) == text


@pytest.mark.parametrize(
    ("text", "name", "default"),
    [
        ("${V}", "V", None),
        ("${V:-d}", "V", "d"),
        ("${V:-}", "V", ""),
        ("${V:-a}b}", "V", "a}b"),
        ("${V-d}", "V-d", None),
    ],
)
def test_whole_value_may_be_a_reference(text: str, name: str, default: str | None) -> None:
    value = parse_env_value(text)
    assert not isinstance(value, str)
    assert (value.name, value.default) == (name, default)


def test_links_out_of_the_task_are_refused_where_files_are_uploaded() -> None:
    entries = {
        path: Entry("file", 0o755, text.encode())
        for path, text in {"task.toml": '[[steps]]\nname = "a"\n', **STEP}.items()
    }
    for link, target in {
        "steps/a/workdir/out": "../../../../etc",
        "tests/abs": "/etc",
        "steps/a/workdir/round": "round",
    }.items():
        loaded = load_task(FileTree({**entries, link: Entry("symlink", 0o777, target=target)}))
        assert [problem.file for problem in loaded.problems] == [link]
    fine = {
        "environment/out": "../../x",
        "steps/undeclared/out": "../../../x",
        "steps/a/workdir/in": "../instruction.md",
    }
    for link, target in fine.items():
        assert load_task(FileTree({**entries, link: Entry("symlink", 0o777, target=target)})).task is not None
