import os
from pathlib import Path

import pytest

from multistep.stage import stage
from multistep.task import TaskTreeError, extract, pack, tree_from_bundle, tree_from_directory


def test_files_links_modes_and_empty_directories_are_read(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir(mode=0o700)
    (tmp_path / "a/run.sh").write_bytes(b"x\r\n")
    (tmp_path / "a/run.sh").chmod(0o4755)
    (tmp_path / "a/link").symlink_to("run.sh")
    (tmp_path / "empty").mkdir()
    tree = tree_from_directory(tmp_path)
    assert list(tree) == ["a", "a/link", "a/run.sh", "empty"]
    assert (tree["a/run.sh"].mode, tree["a/run.sh"].content) == (0o4755, b"x\r\n")
    assert tree["a/link"].target == "run.sh"


def test_times_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "b").write_text("1")
    first = pack(tree_from_directory(tmp_path))
    os.utime(tmp_path / "b", (0, 0))
    assert pack(tree_from_directory(tmp_path)) == first


def test_links_to_directories_are_not_walked(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d/loop").symlink_to("..")
    assert list(tree_from_directory(tmp_path)) == ["d", "d/loop"]


def test_only_the_tasks_own_repository_is_left_out(tmp_path: Path) -> None:
    for path in (".git/config", "steps/s1/workdir/.git/config", "steps/s1/workdir/__pycache__/m.pyc"):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text("x")
    tree = tree_from_directory(tmp_path)
    assert ".git" not in tree
    assert "steps/s1/workdir/.git/config" in tree
    assert "steps/s1/workdir/__pycache__/m.pyc" in tree


def test_what_is_no_file_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    os.mkfifo(tmp_path / "other")
    with pytest.raises(TaskTreeError) as caught:
        tree_from_directory(tmp_path)
    assert [problem.file for problem in caught.value.problems] == ["fifo", "other"]


def test_a_missing_directory_is_a_problem(tmp_path: Path) -> None:
    with pytest.raises(TaskTreeError, match="No such file"):
        tree_from_directory(tmp_path / "nothing")


def test_operator_and_stage_agree_on_the_digest(tmp_path: Path) -> None:
    """The stage container compares what it unpacked with what the operator accepted."""
    task = tmp_path / "task"
    for path in ("task.toml", ".git/x", "tests/test.sh", "tests/venv/python", "tests/.DS_Store", "a/__pycache__/b"):
        (task / path).parent.mkdir(parents=True, exist_ok=True)
        (task / path).write_text("x")
    (task / "tests/.harborignore").write_text("venv/\n")
    (task / "tests/venv/out").symlink_to("/usr/bin/python3")
    tree = tree_from_directory(task)
    assert "tests/venv" not in tree
    bundle = pack(tree)
    extract(bundle, tmp_path / "out")
    assert tree.digest() == tree_from_bundle(bundle).digest() == tree_from_directory(tmp_path / "out").digest()


def test_harborignore_is_on_no_volume(tmp_path: Path) -> None:
    for name in ("tests/.harborignore", "steps/one/solution/.harborignore", "steps/one/workdir/.harborignore"):
        target = tmp_path / "task" / name
        target.parent.mkdir(parents=True)
        target.write_text("*.tmp\n")
    tree = tree_from_directory(tmp_path / "task")
    (tmp_path / "bundle").mkdir()
    (tmp_path / "bundle/part-0000").write_bytes(pack(tree))
    (tmp_path / "tools").mkdir()
    (tmp_path / "volume").mkdir()
    stage(tmp_path / "bundle", tmp_path / "volume", tree.digest(), tmp_path / "tools")
    left = [
        path.relative_to(tmp_path / "volume/task").as_posix()
        for path in (tmp_path / "volume/task").rglob(".harborignore")
    ]
    assert left == ["steps/one/workdir/.harborignore"]
