import pytest
from unit.task.trees import FILES, STEP, load, tree_of

from multistep.task import load_task, pack, tree_from_bundle, tree_from_inline
from multistep.task.ignore import without_ignored


@pytest.mark.parametrize("path", ["tests/l", "solution/l", "steps/s1/l", "steps/s1/workdir/l"])
@pytest.mark.parametrize("target", ["/etc/passwd", "../../../../x"])
def test_links_that_leave_the_task_are_refused_where_files_are_uploaded(path: str, target: str) -> None:
    (problem,) = load(STEP, {path: f"@link:{target}"}).problems
    assert (problem.file, problem.found) == (path, repr(target))


@pytest.mark.parametrize("path", ["environment/l", "steps/other/l", "l"])
@pytest.mark.parametrize("target", ["/etc/passwd", "../../../../x"])
def test_links_that_leave_the_task_from_elsewhere_are_warnings_and_not_bundled(path: str, target: str) -> None:
    tree = tree_of({"task.toml": STEP, **FILES, path: f"@link:{target}"})
    loaded = load_task(tree)
    assert loaded.task is not None
    assert [warning.file for warning in loaded.warnings] == [path]
    unpacked = tree_from_bundle(pack(tree))
    assert set(tree) - set(unpacked) == {path}
    assert load_task(unpacked).warnings == ()


def test_steps_that_are_a_link_out_of_the_task_are_refused() -> None:
    loaded = load_task(tree_of({"task.toml": STEP, "steps": "@link:/tmp"}))
    assert "steps" in [problem.file for problem in loaded.problems]


def test_links_that_leave_the_task_through_others_are_refused() -> None:
    loaded = load(STEP, {"tests/a/up": "@link:../..", "tests/x": "@link:a/up/.."})
    assert [problem.file for problem in loaded.problems if "leads out" in problem.message] == ["tests/x"]


def test_an_ignored_link_may_lead_anywhere() -> None:
    assert load(STEP, {"tests/.harborignore": "venv\n", "tests/venv/python": "@link:/usr/bin/python3"}).task is not None


@pytest.mark.parametrize(
    "links",
    [
        {"tests/l": "@link:."},
        {"tests/l": "@link:l"},
        {"tests/a/b": "@link:../c", "tests/c/d": "@link:../a"},
        {"steps/s1/workdir/x/up": "@link:../.."},
    ],
)
def test_circles_are_refused_where_they_are_uploaded(links: dict[str, str]) -> None:
    loaded = load(STEP, links)
    assert {problem.file for problem in loaded.problems} == set(links)
    moved = {f"environment/{path.rpartition('/')[2]}": target for path, target in links.items()}
    assert all("circle" not in problem.message for problem in load(STEP, moved).problems)


def test_links_that_go_nowhere_or_to_a_neighbour_are_fine() -> None:
    loaded = load(STEP, {"tests/l": "@link:nothing", "tests/d/x": "y", "tests/m": "@link:d", "steps/s2": "@link:s1"})
    assert loaded.task is not None


def test_ignored_files_are_no_part_of_the_task() -> None:
    tree = tree_of(
        {
            "tests/.harborignore": "*.tmp\nbig/\n!keep.tmp\n",
            "tests/a.tmp": "x",
            "tests/keep.tmp": "x",
            "tests/big/x": "x",
            "tests/d/.harborignore": "!b.tmp\n",
            "tests/d/b.tmp": "x",
            "tests/to-big": "@link:big/x",
            "steps/s1/tests/c.tmp": "x",
            "steps/s1/workdir/.harborignore": "*\n",
            "steps/s1/workdir/c.tmp": "x",
            "environment/.harborignore": "*\n",
            "environment/c.tmp": "x",
        }
    )
    kept = without_ignored(tree)
    assert set(tree) - set(kept) == {"tests/a.tmp", "tests/big", "tests/big/x", "tests/to-big"}
    assert without_ignored(kept).digest() == kept.digest()


def test_an_ignored_test_is_a_problem_that_names_the_cause() -> None:
    files = {"task.toml": STEP, **FILES, "steps/s1/tests/.harborignore": "*.sh\n"}
    for loaded in (load(STEP, files), load_task(tree_from_inline(files, {}))):
        (problem,) = loaded.problems
        assert problem.file == "steps/s1/tests/test.sh"
        assert ".harborignore" in problem.message


def test_rules_that_cannot_be_read_are_problems() -> None:
    (problem,) = load(STEP, {"tests/.harborignore/": "", "tests/test.sh": "x"}).problems
    assert problem.file == "tests/.harborignore"
