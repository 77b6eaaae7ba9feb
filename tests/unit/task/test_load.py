import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.task.trees import FILES, STEP, load, tree_of

from multistep.task import (
    Entry,
    EnvironmentConfig,
    FileTree,
    LoadedTask,
    Problem,
    StepConfig,
    TaskConfig,
    load_task,
)
from multistep.task.unknown import unknown_keys
from multistep.task.validation import validate


def _where(loaded: LoadedTask) -> list[tuple[str, str | None]]:
    return [(problem.file, problem.key) for problem in loaded.problems]


def test_a_task() -> None:
    loaded = load(
        STEP + '[[steps]]\nname = "s2"\n',
        {
            "steps/s1/workdir/setup.sh": "x",
            "steps/s1/solution/notes": "x",
            "steps/s2/instruction.md": "x",
            "tests/test.sh": "x",
            "tests/Dockerfile": "x",
            "solution/solve.sh": "x",
        },
    )
    assert loaded.problems == loaded.warnings == ()
    task = loaded.task
    assert task is not None
    assert task.is_multi_step
    assert task.has_shared_tests
    assert task.has_shared_tests_definition
    first, second = task.steps
    assert (first.index, first.name, first.has_workdir, first.has_setup, first.has_tests) == (1, "s1", True, True, True)
    assert (second.index, second.name, second.has_workdir, second.has_setup, second.has_tests) == (
        2,
        "s2",
        *[False] * 3,
    )
    assert (first.test_script, second.test_script) == ("step", "shared")
    # A solution/ of its own hides the shared one, even where it cannot solve anything.
    assert (first.solution, first.has_solve_script) == ("step", False)
    assert (second.solution, second.has_solve_script) == ("shared", True)


def test_a_task_without_steps_is_parsed() -> None:
    loaded = load_task(tree_of({"task.toml": "", "instruction.md": "x", "tests/test.sh": "x"}))
    assert loaded.task is not None
    assert not loaded.task.is_multi_step
    assert loaded.task.steps == []


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
def test_line_ends_of_windows_and_old_macs_and_a_missing_last_one(end: str) -> None:
    loaded = load(end.join(["[agent]", "timeout_sec = 5", "[[steps]]", 'name = "s1"']))
    assert loaded.task is not None
    assert loaded.task.config.agent.timeout_sec == 5


def test_all_problems_are_reported_at_once() -> None:
    """Wrong types, wrong values, wrong names, wrong numbers, links and missing files: one look is enough to mend the task."""
    toml = """
[agent]
timeout_sec = "abc"
[environment]
cpus = -1
network_mode = "sometimes"
[[steps]]
name = "s1"
min_reward = nan
[steps.agent]
timeout_sec = -5
user = 1.5
[[steps]]
name = "no/slash"
[[steps]]
name = "S1"
[steps.verifier]
timeout_sec = nan
[[steps]]
[steps.agent]
timeout_sec = []
[[steps]]
name = "s5"
artifacts = [{ destination = "x" }]
"""
    loaded = load(toml, {"steps/s5/instruction.md": "x", "tests/l": "@link:/etc"})
    assert loaded.task is None
    assert set(_where(loaded)) == {
        ("task.toml", "agent.timeout_sec"),
        ("task.toml", "environment.cpus"),
        ("task.toml", "environment.network_mode"),
        ("task.toml", "steps"),
        ("task.toml", "steps[0].min_reward"),
        ("task.toml", "steps[0].agent.timeout_sec"),
        ("task.toml", "steps[0].agent.user"),
        ("task.toml", "steps[1].name"),
        ("task.toml", "steps[2].verifier.timeout_sec"),
        ("task.toml", "steps[3].name"),
        ("task.toml", "steps[3].agent.timeout_sec"),
        ("task.toml", "steps[4].artifacts[0].source"),
        ("steps/s5/tests/test.sh", None),
        ("tests/l", None),
    }


def test_all_missing_files_are_reported_in_the_order_of_the_steps() -> None:
    toml = "".join(f'[[steps]]\nname = "{name}"\n' for name in "abc")
    loaded = load_task(tree_of({"task.toml": toml, "steps/a/x": "", "steps/c/instruction.md": "x"}))
    expected = ["steps/a/instruction.md", "steps/a/tests/test.sh", "steps/b", "steps/c/tests/test.sh"]
    assert [problem.file for problem in loaded.problems] == expected


def test_what_was_taken_out_makes_no_problems_of_its_own() -> None:
    toml = '[environment]\nnetwork_mode = "sometimes"\nallowed_hosts = ["a.com"]\n' + STEP
    assert _where(load(toml)) == [("task.toml", "environment.network_mode")]


@pytest.mark.parametrize(
    "steps", ["steps = 1", 'steps = "x"', "steps = [1]", "[steps]\nname = 1", 'steps = ["a", {name = "s1"}]']
)
def test_steps_of_the_wrong_type_do_not_look_like_missing_files(steps: str) -> None:
    loaded = load(steps)
    assert loaded.task is None
    assert {file for file, _ in _where(loaded)} == {"task.toml"}


def test_artifacts_of_the_wrong_form_do_not_hide_missing_files() -> None:
    loaded = load('artifacts = ["../up"]\n' + STEP + '[[steps]]\nname = "s2"\n')
    assert {file for file, _ in _where(loaded)} == {"task.toml", "steps/s2"}


def test_a_problem_is_one_line_that_says_where_what_and_why() -> None:
    (problem,) = load(STEP + '[steps.agent]\ntimeout_sec = "abc"').problems
    assert str(problem).startswith("task.toml: steps[0].agent.timeout_sec: found 'abc': ")
    assert problem.found == "'abc'"
    assert str(Problem("a\nb", None, None, "x\ny")) == "a b: x y"


def test_found_is_short() -> None:
    (problem,) = load(STEP + f'[steps.agent]\ntimeout_sec = "{"x" * 500}"').problems
    assert problem.found is not None
    assert len(problem.found) == 80


@pytest.mark.parametrize(
    ("toml", "advice"),
    [
        ("a = ", "no TOML"),
        ("\ufeff" + STEP, "byte order mark"),
        ("a = " + "1" * 5000, "no TOML"),
        ("a = " + "[" * 5000, "no TOML"),
        ("a = [" * 5000, "no TOML"),
        ("[a" + ".a" * 5000 + "]\n", "no TOML"),
        ("x = 1\nx = 2\n", "no TOML"),
        ("\0", "no TOML"),
        ("[metadata]\n" + ".".join("a" * 300) + " = 1", "nested"),
        ("a = [" + "1," * 600_000 + "]", "limit"),
        ("".join(f'[[steps]]\nname = "s{number}"\n' for number in range(501)), "500 steps: split it"),
    ],
)
def test_what_no_task_may_be(toml: str, advice: str) -> None:
    loaded = load(toml)
    (problem,) = loaded.problems
    assert loaded.task is None
    assert problem.file == "task.toml"
    assert advice in str(problem)
    assert len(str(problem)) < 300


def test_five_hundred_steps_are_fine() -> None:
    toml = "".join(f'[[steps]]\nname = "s{number}"\n' for number in range(500))
    files = {f"steps/s{number}/instruction.md": "x" for number in range(500)}
    loaded = load(toml, {**files, "tests/test.sh": "x"})
    assert loaded.task is not None
    assert len(loaded.task.steps) == 500


def test_number_of_problems_is_limited() -> None:
    toml = "".join(f'[[steps]]\nname = "s{number}"\nmin_reward = nan\n' for number in range(200))
    loaded = load(toml)
    assert len(loaded.problems) == 101
    assert "more problems" in loaded.problems[-1].message


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "-1", "1e300", '"nan"'])
@pytest.mark.parametrize("key", ["agent.timeout_sec", "verifier.timeout_sec", "environment.build_timeout_sec"])
def test_times_that_hide_a_stuck_trial_are_problems(key: str, value: str) -> None:
    loaded = load(f"{key} = {value}\n" + STEP)
    assert [where for _, where in _where(loaded)] == [key]


def test_infinite_thresholds_are_fine() -> None:
    assert load(STEP + "min_reward = { reward = -inf, other = inf }").task is not None


def test_names_that_differ_in_case_only_collide() -> None:
    loaded = load(STEP + '[[steps]]\nname = "S1"\n[[steps]]\nname = "s3"\n')
    assert _where(loaded) == [("task.toml", "steps"), ("steps/s3", None)]


def test_missing_task_toml() -> None:
    assert _where(load_task(FileTree({}))) == [("task.toml", None)]
    assert _where(load_task(tree_of({"task.toml/": ""}))) == [("task.toml", None)]


def test_verification_disabled_needs_no_tests() -> None:
    tree = tree_of({"task.toml": STEP, "steps/s1/instruction.md": "x"})
    assert _where(load_task(tree)) == [("steps/s1/tests/test.sh", None)]
    assert load_task(tree, verification_disabled=True).task is not None


def test_instruction_must_be_text() -> None:
    raw = Entry("file", 0o644, b"\xff")
    assert _where(load_task(FileTree({**tree_of({"task.toml": STEP, **FILES}), "steps/s1/instruction.md": raw}))) == [
        ("steps/s1/instruction.md", None)
    ]
    files = {path: text for path, text in FILES.items() if "instruction" not in path}
    loaded = load_task(tree_of({"task.toml": STEP, **files, "steps/s1/instruction.md/": ""}))
    assert _where(loaded) == [("steps/s1/instruction.md", None)]


_WORDS = st.sampled_from(
    [
        *(name for model in (TaskConfig, StepConfig, EnvironmentConfig) for name in model.model_fields),
        *("timeout_sec", "user", "source", "destination", "command", "collect", "memory", "version", "x"),
    ]
)
_TEXTS = st.text(max_size=8) | st.sampled_from(["s1", "S1", "public", "allowlist", ".."])
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORDS, inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(_WORDS, _VALUES, max_size=6))
@settings(max_examples=100, deadline=None)
def test_no_document_raises(document: dict[str, object]) -> None:
    """The document goes in where the parser would put it: TOML's syntax is tomli's business."""
    validated = validate(document)
    unknown_keys(document)
    if validated.config is None:
        assert validated.problems


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
@settings(max_examples=200, deadline=None)
def test_no_bytes_raise(raw: bytes) -> None:
    loaded = load_task(FileTree({"task.toml": Entry("file", 0o644, raw)}))
    assert (loaded.task is None) == bool(loaded.problems)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, False),
        ({"environment/seed.txt": "x"}, True),
        ({"environment/seed.txt": "x", "environment/Dockerfile": "FROM x"}, False),
    ],
)
def test_files_beside_a_ready_image_are_part_of_the_environment(files: dict[str, str], expected: bool) -> None:
    own = {path: text for path, text in FILES.items() if not path.startswith("environment/")}
    task = load_task(tree_of({"task.toml": STEP, **own, **files})).task
    assert task is not None and task.has_environment_files is expected
