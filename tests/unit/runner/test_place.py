"""A separate verifier: of the agent's environment it has the artifacts at their source paths, and nothing else."""

import os
import subprocess

import pytest

from .conftest import Container, Result

LIST = 'find "$1" | sort; echo 1 >/logs/verifier/reward.txt\n'


def grade(container: Container, *places: str, test: str = "", flags: tuple[str, ...] = ()) -> Result:
    container.persistent = []
    container.artifacts = True
    return container.verify(
        test + "echo 1 >/logs/verifier/reward.txt\n", *flags, *(f"--place={place}" for place in places)
    )


def test_artifacts_lie_at_their_source_paths_and_belong_to_root(container: Container) -> None:
    container.write("artifacts/app/out", "result", 0o755)
    container.write("artifacts/data/a/b", "deep")
    subprocess.check_call(["chown", "-R", "1000:1000", container.volume / "artifacts"])
    result = grade(
        container,
        "app/out\n/somewhere/else/out",
        "data\n/data",
        "data/a\nrelative",
        test="cat /somewhere/else/out /data/a/b /app/relative/b; stat -c '%u %a' /somewhere/else/out /data/a; ls /app\n",
    )
    assert result.output == "resultdeepdeep0 755\n0 755\nrelative\n"
    assert result.reward == b"1\n"


def test_what_was_not_collected_is_not_there_and_no_error(container: Container) -> None:
    result = grade(container, "missing\n/missing", test="ls /missing 2>&1\n")
    assert "No such file" in result.output and result.error is None


def test_directory_of_the_image_is_replaced(container: Container) -> None:
    container.write("artifacts/opt/new", "n")
    (container.root / "opt/old").write_text("o")
    assert grade(container, "opt\n/opt", test="ls /opt\n").output == "new\n"


@pytest.mark.parametrize(
    ("target", "stays"),
    [
        ("b", True), ("sub/c", True), ("sub/../b", True), ("../data/b", True), ("/data/b", False), ("/etc/passwd", False),
        ("../tests", False), ("up/..", False), ("nowhere", False), ("loop", False),
    ],
)  # fmt: skip
def test_links_out_of_an_artifact_or_to_nowhere_are_left_out(container: Container, target: str, stays: bool) -> None:
    container.write("artifacts/data/b", "b")
    container.write("artifacts/data/sub/c", "c")
    data = container.volume / "artifacts/data"
    # Its real parent is the artifact's own: a path over it leaves.
    (data / "sub/top").symlink_to("..")
    (data / "up").symlink_to("sub/top")
    (data / "loop").symlink_to("loop")
    (data / "link").symlink_to(target)
    result = grade(container, "data\n/data", test="[ -L /data/link ] && echo stays; cat /data/b\n")
    assert ("stays" in result.output) is stays, result.output
    assert result.output.endswith("b")


def test_devices_and_setuid_bits_do_not_cross_over(container: Container) -> None:
    data = container.write("artifacts/data/tool", "x").parent
    (data / "tool").chmod(0o6777)
    os.mkfifo(data / "pipe")
    os.mknod(data / "null", 0o20666, os.makedev(1, 3))
    result = grade(container, "data\n/data", test="cd /data && stat -c '%n %a' *\n")
    assert result.output == "tool 755\n"


def test_link_on_the_way_to_an_artifact_is_not_followed(container: Container) -> None:
    (container.volume / "artifacts").mkdir()
    (container.volume / "artifacts/app").symlink_to("/etc")
    result = grade(container, "app/passwd\n/app/passwd", "app\n/copied", test="ls /app /copied 2>&1\n")
    assert "passwd\n" not in result.output


def test_bundled_tests_are_the_image_s(container: Container) -> None:
    (container.root / "tests").mkdir()
    (container.root / "tests/test.sh").write_text("#!/bin/sh\necho bundled; echo 0.5 >/logs/verifier/reward.txt\n")
    (container.root / "tests/test.sh").chmod(0o755)
    container.persistent = []
    result = container.verify(None, "--tests=bundled")
    assert result.output == "bundled\n" and result.reward == b"0.5\n"


def test_image_without_bundled_tests_has_no_reward(container: Container) -> None:
    container.persistent = []
    result = container.verify(None, "--tests=bundled")
    assert result.reward is None and result.error is None


def test_working_directory_and_user_are_the_image_s(container: Container) -> None:
    container.persistent = []
    container.write("probe/user", "1000\n")
    container.write("tests-shared/test.sh", "pwd; id -u; id -G; echo 1 >/logs/verifier/reward.txt\n", 0o755)
    container.directory = "/home/agent"
    result = container.run("verify", "--step-name=one", **{"probe": "probe", "tests/shared": "tests-shared"})
    assert result.output == "/home/agent\n1000\n1000 2000\n" and result.reward == b"1\n"


@pytest.mark.parametrize(("user", "said"), [("0", None), ("1000", "1000\n"), ("1000:5", "1000:5\n"), ("77", "77:77\n")])
def test_probe_tells_a_verifier_in_the_same_pod_who_the_image_s_user_is(
    container: Container, user: str, said: str | None
) -> None:
    container.user = user if user != "77" else "77:77"
    (container.volume / "probe").mkdir(mode=0o777)
    (container.volume / "probe").chmod(0o777)
    container.run("probe", probe="probe")
    told = container.volume / "probe/user"
    assert (told.read_text() if told.exists() else None) == said
