"""Flags, the at-most-once marker, files that are overwritten, and what lies directly under /."""

import os
from pathlib import Path

import pytest

from .conftest import Container

STEP = ("step", "--workdir=/app")


def _names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ([*STEP], "--agent"),
        ([*STEP, "--agent=gpt"], "gpt"),
        ([*STEP, "--agent=command"], "program after --"),
        ([*STEP, "--agent=command", "--"], "program after --"),
        ([*STEP, "--agent=nop", "--agent-timeout=soon"], "soon"),
        ([*STEP, "--agent=nop", "--agent-timeout="], "number of seconds"),
        ([*STEP, "--agent=nop", "--kill-grace=1.2.3"], "1.2.3"),
        ([*STEP, "--agent=nop", "--healthcheck-step-retries=1.5"], "whole number"),
        ([*STEP, "--agent=nop", "--healthcheck-other-retries=1"], "--healthcheck-other-retries"),
        ([*STEP, "--agent=nop", "--persistence=Workdir"], "step does not take it"),
        (["step", "--workdir=app", "--agent=nop"], "absolute"),
        (["verify", "--agent=nop"], "verify does not take it"),
        (["seed", "--persistence=all"], "Filesystem nor Workdir"),
        (["probe", "--workdir=/"], "probe does not take it"),
        (["dance"], "no subcommand 'dance'"),
        ([*STEP, "--a$(touch /app/x)=1"], "unknown flag"),
    ],
)
def test_flags_that_make_no_sense_are_refused_before_anything_runs(
    container: Container, words: list[str], named: str
) -> None:
    result = container.run(*words, run="marker")
    assert (result.exit_code, result.error) == (64, "RunnerError")
    assert named in result.error_output and named in result.output
    assert not (container.volume / "marker/started").exists()
    assert _names(container.rootfs("/app")) == []


def test_marker_that_cannot_be_written_is_no_second_start(container: Container) -> None:
    container.write("marker/started", "a file, where a directory is to be")
    result = container.step("--", "touch", "/app/ran", agent="command", run="marker")
    assert (result.error, "marker" in result.error_output) == ("RunnerError", True)
    assert not container.rootfs("/app/ran").exists()


def test_setup_of_an_earlier_step_is_not_run_again(container: Container) -> None:
    container.rootfs("/app/setup.sh").write_text("touch /app/ran\n")
    container.write("step/workdir/other", "x")
    assert list(container.step(agent="nop").stages) == ["workdir"]
    assert not container.rootfs("/app/ran").exists()


def test_setup_may_be_a_link(container: Container) -> None:
    container.write("step/workdir/lib/real.sh", "echo really; pwd\n")
    (container.volume / "step/workdir/setup.sh").symlink_to("/app/lib/real.sh")
    assert container.step(agent="nop").output == "really\n/app\n"


def test_overwriting_changes_no_other_name_of_a_file(container: Container) -> None:
    app = container.rootfs("/app")
    (app / "first").write_text("old")
    os.link(app / "first", app / "second")
    container.write("step/workdir/first", "new", 0o755)
    container.write("step/workdir/.hidden/..odd", "x")
    assert container.step(agent="nop").error is None
    assert ((app / "first").read_text(), (app / "second").read_text()) == ("new", "old")
    assert os.access(app / "first", os.X_OK) and (app / ".hidden/..odd").exists()


def test_links_and_directories_replace_each_other(container: Container) -> None:
    app = container.rootfs("/app")
    (app / "a/b").mkdir(parents=True)
    (app / "file").write_text("x")
    (app / "merged/old").mkdir(parents=True)
    workdir = container.volume / "step/workdir"
    (workdir / "file").mkdir(parents=True)
    (workdir / "merged/new").mkdir(parents=True)
    (workdir / "a").symlink_to("merged")
    (workdir / "dangling").symlink_to("nowhere")
    assert container.step(agent="nop").error is None
    assert (app / "a").is_symlink() and (app / "dangling").is_symlink() and (app / "file").is_dir()
    assert _names(app / "merged") == ["new", "old"]


def test_healthchecks_run_around_the_upload_as_the_agent(container: Container) -> None:
    container.rootfs("/app").chmod(0o777)
    container.write("step/workdir/setup.sh", "echo setup >> /app/order\n")
    flags = [
        f"--healthcheck-{name}-command=echo {name} $(id -un) $(ls /app | grep -c setup.sh) >> /app/order"
        for name in ("environment", "step")
    ]
    result = container.step(*flags, "--agent-user=agent", agent="nop")
    assert result.error is None
    assert container.rootfs("/app/order").read_text() == "environment agent 0\nsetup\nstep agent 1\n"
    assert [stage["name"] for stage in result.report["stages"]] == ["healthcheck", "workdir", "setup", "healthcheck"]


def test_retries_are_consecutive_tries(container: Container) -> None:
    check = "echo x >> /app/tries; [ $(wc -l < /app/tries) -ge 3 ]"
    flags = (f"--healthcheck-step-command={check}", "--healthcheck-step-interval=0.02")
    assert container.step(*flags, "--healthcheck-step-retries=3", agent="nop").error is None
    container.rootfs("/app/tries").unlink()
    assert container.step(*flags, "--healthcheck-step-retries=2", agent="nop").error == "HealthcheckError"


def test_solution_is_fresh_and_earlier_files_of_it_are_gone(container: Container) -> None:
    container.write("solution/solve.sh", "ls -A /solution; echo $DEBIAN_FRONTEND\n")
    container.write("solution/.data", "x")
    (container.root / "solution").symlink_to("/app")
    assert container.step().output == ".data\nsolve.sh\nnoninteractive\n"
    assert not container.rootfs("/app/solve.sh").exists()


def test_carry_keeps_odd_names_modes_hard_links_and_changed_links(container: Container) -> None:
    (container.root / "lib64").symlink_to("lib")
    script = r"""
        mkdir -m 2710 '/a "b" *'; echo x > '/a "b" */x'; ln '/a "b" */x' '/a "b" */y'; echo h > /.hidden; echo d > '/-dash'
        ln -sfn opt /lib64; mkfifo /pipe; chown -R 1000:2000 '/a "b" *'; chmod 2710 '/a "b" *'; touch "/new
line"
    """
    assert container.command(script).error is None
    second = container.command(
        "stat -c '%a %u %h' '/a \"b\" *' '/a \"b\" */x'; cat /.hidden /-dash; readlink /lib64; ls -A / | wc -l; rm /lib64"
    )
    assert second.output.splitlines()[:5] == ["2710 1000 2", "644 1000 2", "h", "d", "opt"]
    assert container.command("ls -d /lib64 /pipe 2>&1; [ -e '/new\nline' ] && echo there").output.endswith(
        "/pipe\nthere\n"
    )


def test_carry_never_touches_what_is_mounted(container: Container) -> None:
    container.command("echo 1 > /fresh")
    carried = container.volume / "carry/root"
    assert _names(carried) == ["bin", "fresh", "usr"]
    # A hostile or stale entry with a mount's name must not replace it.
    (carried / "app").mkdir()
    (carried / "etc").symlink_to("/nowhere")
    (carried / "proc").mkdir()
    container.rootfs("/app/kept").write_text("x")
    assert container.command("ls /app; test -f /etc/passwd && test -d /proc/1 && echo fine").output == "kept\nfine\n"


def test_swap_that_was_cut_off_is_settled(container: Container) -> None:
    container.command("echo 1 > /fresh")
    carry = container.volume / "carry"
    # Between the two renames: the new state is whole, and the old one no longer in place.
    (carry / "root").rename(carry / "new")
    (carry / "old").mkdir()
    assert container.command("cat /fresh").output == "1\n"
    # While the new state was being built: it is half, and the old one holds.
    (carry / "new").mkdir()
    (carry / "new/half").write_text("x")
    assert container.command("cat /fresh; ls /half 2>/dev/null").output == "1\n"
    assert _names(carry) == ["root"]


def test_without_a_carry_nothing_is_copied(container: Container) -> None:
    # Persistence Workdir has no carry: the runner must not make one.
    process = container.popen(*STEP, "--agent=command", "--", "sh", "-c", "echo 1 > /fresh", carry="unused")
    assert container.finish(process).error is None
