import os
import signal
import subprocess
import time

import pytest

from .conftest import Container


def test_stages_run_in_order_in_the_working_directory(container: Container) -> None:
    container.write("step/workdir/data.txt", "new\n")
    container.write("step/workdir/setup.sh", "#!/bin/sh\ncat data.txt > from-setup; pwd > where; echo setting up\n")
    container.write("solution/solve.sh", "cat from-setup > result; echo solving\n")
    container.rootfs("/app/data.txt").write_text("old\n")
    result = container.step()
    assert (result.exit_code, result.error) == (0, None)
    assert list(result.stages) == ["workdir", "setup", "agent"]
    assert container.rootfs("/app/result").read_text() == "new\n"
    assert container.rootfs("/app/where").read_text() == "/app\n"
    assert result.output == "setting up\nsolving\n"
    assert (container.volume / "logs-agent/oracle.txt").read_text() == "solving\n"
    assert container.rootfs("/app/setup.sh").exists()


def test_failing_setup_keeps_the_agent_from_running(container: Container) -> None:
    container.write("step/workdir/setup.sh", "#!/bin/sh\necho oops >&2\nexit 3\n")
    container.write("solution/solve.sh", "touch /app/ran\n")
    result = container.step()
    assert (result.exit_code, result.error) == (0, "SetupError")
    assert result.report["error"]["exitCode"] == 3
    assert result.error_output == "oops\n"
    assert not container.rootfs("/app/ran").exists()


def test_setup_that_hangs_is_ended(container: Container) -> None:
    container.write("step/workdir/setup.sh", "sleep 1000\n")
    container.write("solution/solve.sh", "touch /app/ran\n")
    result = container.step("--setup-timeout=0.5")
    assert result.error == "SetupError"
    assert "did not end within 0.5 seconds" in result.error_output
    assert not container.rootfs("/app/ran").exists()


def test_windows_line_ends_of_setup_are_named(container: Container) -> None:
    container.write("step/workdir/setup.sh", "#!/bin/sh\r\nfalse\r\n")
    result = container.step(agent="nop")
    assert (result.error, result.report["error"]["crlf"]) == ("SetupError", True)


def test_second_start_of_a_step_runs_nothing(container: Container) -> None:
    container.write("solution/solve.sh", "echo x >> /app/ran\n")
    assert container.step(run="same").error is None
    second = container.step(run="same")
    assert (second.exit_code, second.error) == (0, "StepAlreadyStartedError")
    assert container.rootfs("/app/ran").read_text() == "x\n"


def test_oracle_s_failure_is_no_error_but_leaves_its_exit_code(container: Container) -> None:
    container.write("solution/solve.sh", "exit 7\n")
    result = container.step()
    assert result.error is None
    assert result.stages["agent"]["exitCode"] == 7
    assert (container.volume / "logs-agent/exit-code.txt").read_text() == "7"


def test_exit_code_is_never_written_through_the_agent_s_link(container: Container) -> None:
    container.write("solution/solve.sh", "ln -s /etc/passwd /logs/agent/exit-code.txt; exit 7\n")
    container.step("--agent-user=agent")
    assert "agent" in container.rootfs("/etc/passwd").read_text()
    assert (container.volume / "logs-agent/exit-code.txt").read_text() == "7"


def test_oracle_without_solution_is_an_error(container: Container) -> None:
    assert container.step().error == "SolutionNotFoundError"


def test_command_gets_the_instruction_and_reports_its_failure(container: Container) -> None:
    result = container.command(
        'cat > stdin.txt; cat "$MULTISTEP_INSTRUCTION_FILE" > file.txt; echo "$MULTISTEP_STEP_NAME"; exit 4'
    )
    assert (result.error, result.report["error"]["exitCode"]) == ("NonZeroAgentExitCodeError", 4)
    assert container.rootfs("/app/stdin.txt").read_text() == "say hello\n"
    assert container.rootfs("/app/file.txt").read_text() == "say hello\n"
    assert (container.volume / "logs-agent/command.txt").read_text() == "one\n"


def test_environment_of_the_agent_has_nothing_of_the_runner_s(container: Container) -> None:
    container.command("env | cut -d= -f1 | sort > /app/env")
    found = container.rootfs("/app/env").read_text().split()
    assert set(found) - {"PWD", "OLDPWD", "SHLVL", "_"} == {
        "HOME",
        "PATH",
        "MULTISTEP_INSTRUCTION_FILE",
        "MULTISTEP_STEP_NAME",
    }


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ("", "0 0 /root"),
        ("agent", "1000 1000 /home/agent"),
        ("1000", "1000 1000 /home/agent"),
        ("1000:2000", "1000 2000 /home/agent"),
    ],
)
def test_agent_runs_as_its_user(container: Container, user: str, expected: str) -> None:
    container.rootfs("/app").chmod(0o777)
    container.command('echo "$(id -u) $(id -g) $HOME" > /app/who', f"--agent-user={user}")
    assert container.rootfs("/app/who").read_text().strip() == expected


def test_root_only_files_stay_closed_to_the_agent(container: Container) -> None:
    container.rootfs("/opt/answer").write_text("42")
    container.rootfs("/opt/answer").chmod(0o600)
    result = container.command("cat /opt/answer; ls /.multistep/run /.multistep/carry", "--agent-user=agent")
    assert "42" not in result.output
    assert result.output.count("denied") == 3


def test_unknown_user_is_named(container: Container) -> None:
    result = container.command("true", "--agent-user=nobody-here")
    assert (result.error, result.error_output) == ("UserNotFoundError", "user nobody-here")


def test_timeout_ends_the_whole_tree_but_not_setup_s_server(container: Container) -> None:
    container.write(
        "step/workdir/setup.sh",
        "(while :; do read -r up rest < /proc/uptime; echo $up > /app/s; mv /app/s /app/server; sleep 0.1; done) >/dev/null 2>&1 &\n",
    )
    daemon = "(setsid sh -c "
    daemon += "'while :; do read -r up rest < /proc/uptime; echo $up > /app/d; mv /app/d /app/daemon; sleep 0.1; done' >/dev/null 2>&1 &) ; echo started; "
    process = container.popen(
        "step", "--workdir=/app", "--agent=command", "--agent-timeout=1.5", "--kill-grace=1",
        "--healthcheck-step-command=true", "--", "sh", "-c", daemon + "trap '' TERM; while :; do sleep 1; done",
    )  # fmt: skip
    result = container.finish(process)
    assert (result.error, result.stages["agent"]["timedOut"]) == ("AgentTimeoutError", True)
    assert "started" in result.output
    # Both files were written at the end of their writers' lives: the server's is the younger one, as the daemon was ended first.
    server, daemon = (float(container.rootfs(f"/app/{name}").read_text()) for name in ("server", "daemon"))
    assert server > daemon + 0.5


@pytest.mark.parametrize("limit", ["0", "-1", "0.0"])
def test_no_time_at_all_does_not_start_the_agent(container: Container, limit: str) -> None:
    result = container.command("touch /app/ran", f"--agent-timeout={limit}")
    assert result.error == "AgentTimeoutError"
    assert not container.rootfs("/app/ran").exists()


def test_what_a_timed_out_agent_wrote_stays(container: Container) -> None:
    result = container.command("echo partial > /app/work; echo thinking; sleep 1000", "--agent-timeout=0.5")
    assert result.error == "AgentTimeoutError"
    assert container.rootfs("/app/work").read_text() == "partial\n"
    assert "thinking" in result.error_output


def test_background_process_that_holds_the_output_does_not_hang_the_step(container: Container) -> None:
    before = time.monotonic()
    result = container.command("sleep 1000 & echo done")
    assert (result.error, result.output) == (None, "done\n")
    assert time.monotonic() - before < 20


def test_healthcheck_counts_failures_only_after_its_start_period(container: Container) -> None:
    check = "echo x >> /app/tries; [ $(wc -l < /app/tries) -ge 3 ]"
    flags = (
        f"--healthcheck-step-command={check}",
        "--healthcheck-step-start-period=60",
        "--healthcheck-step-start-interval=0.1",
    )
    result = container.command("touch /app/ran", *flags, "--healthcheck-step-retries=1")
    assert result.error is None
    assert container.rootfs("/app/ran").exists()
    assert list(result.stages) == ["healthcheck", "agent"]


@pytest.mark.parametrize("retries", ["0", "1", "-3"])
def test_failed_healthcheck_keeps_the_agent_from_running(container: Container, retries: str) -> None:
    result = container.command(
        "touch /app/ran", "--healthcheck-step-command=echo not ready; false", f"--healthcheck-step-retries={retries}"
    )
    assert (result.error, result.error_output) == ("HealthcheckError", "not ready\n")
    assert not container.rootfs("/app/ran").exists()


def test_healthcheck_that_hangs_counts_as_a_failure(container: Container) -> None:
    flags = ("--healthcheck-environment-command=sleep 1000", "--healthcheck-environment-timeout=0.3")
    result = container.command(
        "true", *flags, "--healthcheck-environment-retries=2", "--healthcheck-environment-interval=0.1"
    )
    assert result.error == "HealthcheckError"
    assert "did not end within 0.3 seconds" in result.error_output


def test_workdir_overwrites_and_never_follows_links_out(container: Container) -> None:
    app = container.rootfs("/app")
    (app / "keep").write_text("kept")
    (app / "was-directory").mkdir()
    (app / "link").symlink_to("/etc")
    (app / "file-link").symlink_to("/etc/passwd")
    os.chown(app, 1000, 1000)
    container.write("step/workdir/was-directory", "file now")
    container.write("step/workdir/link/passwd", "mine")
    container.write("step/workdir/file-link", "mine")
    container.write("step/workdir/tool", "#!/bin/sh\n", 0o755)
    (container.volume / "step/workdir/inner").symlink_to("tool")
    result = container.step(agent="nop")
    assert result.error is None
    assert (app / "was-directory").read_text() == "file now"
    assert (app / "link").is_dir() and not (app / "link").is_symlink()
    assert (app / "file-link").read_text() == "mine"
    assert "root" in container.rootfs("/etc/passwd").read_text()
    assert os.access(app / "tool", os.X_OK) and (app / "inner").is_symlink()
    assert (app.stat().st_uid, (app / "keep").read_text()) == (1000, "kept")


def test_odd_names_survive(container: Container) -> None:
    name = "a 'b' \"c\" $d `e` ü\n*"
    container.write(f"step/workdir/{name}/{name}", "odd")
    container.write("solution/solve.sh", "echo ok\n")
    result = container.step(f"--step-name={name}")
    assert result.error is None
    assert (container.rootfs("/app") / name / name).read_text() == "odd"


def test_hostile_output_leaves_a_valid_report(container: Container) -> None:
    result = container.command("head -c 100000 /dev/urandom 2>/dev/null || printf '\\000\\377\"\\\\%.0s' 1 2 3; exit 1")
    assert result.error == "NonZeroAgentExitCodeError"


def test_agent_cannot_speak_for_the_runner(container: Container) -> None:
    forged = '{"version":1,"role":"step","stages":[],"error":null,"forged":true}'
    result = container.command(f"for log in /.multistep/reports/termination-*; do echo '{forged}' > $log; done; exit 5")
    assert result.error == "NonZeroAgentExitCodeError"
    assert "forged" not in result.report


def test_told_to_end_it_ends_its_tree_and_says_so(container: Container) -> None:
    process = container.popen(
        "step",
        "--workdir=/app",
        "--agent=command",
        "--kill-grace=1",
        "--",
        "sh",
        "-c",
        "echo up; while :; do sleep 1; done",
    )
    deadline = time.monotonic() + 20
    while not (container.volume / "logs-agent/command.txt").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.3)
    child = int(subprocess.check_output(["pgrep", "-P", str(process.pid)], text=True))
    os.kill(child, signal.SIGTERM)
    result = container.finish(process)
    assert (result.exit_code, result.error) == (143, "TerminatedError")


def test_what_lies_directly_under_root_is_carried(container: Container) -> None:
    first = (
        "mkdir -m 750 /fresh; echo 1 > /fresh/file; echo 2 > /single; ln -s /fresh /linked; chown -R 1000:1000 /fresh"
    )
    assert container.command(first).error is None
    second = container.command(
        "cat /linked/file /single; stat -c '%a %u' /fresh; rm -rf /fresh /linked; touch /tests-are-mine"
    )
    assert second.output == "1\n2\n750 1000\n"
    third = container.command("ls -d /fresh /linked 2>/dev/null; cat /single; ls -d /bin /usr")
    assert third.output == "2\n/bin\n/usr\n"


def test_tests_and_solution_are_never_carried(container: Container) -> None:
    container.command("mkdir -p /tests /solution; touch /tests/a /solution/b")
    assert container.command("ls /tests /solution 2>/dev/null; true").output == ""


@pytest.mark.parametrize("flags", [["--unknown=1"], ["--agent"], ["word"]])
def test_malformed_flags_are_refused_with_a_sentence(container: Container, flags: list[str]) -> None:
    result = container.run("step", *flags)
    assert (result.exit_code, result.error) == (64, "RunnerError")
    assert "flag" in result.error_output


def test_files_of_the_environment_come_before_those_of_the_step(container: Container) -> None:
    container.write("environment/data/seed.txt", "environment")
    container.write("environment/both.txt", "environment")
    container.write("environment/run", "#!/bin/sh\n", 0o755)
    container.write("step/workdir/both.txt", "step")
    result = container.command("cat data/seed.txt both.txt && test -x run")
    assert result.error is None and "environmentstep" in result.output


def test_what_an_agent_left_in_place_of_the_verifier_s_results_is_gone(container: Container) -> None:
    container.rootfs("logs/verifier").mkdir(parents=True)
    container.rootfs("logs/verifier/reward.txt").write_text("1\n")
    assert "[]" in container.command("echo [$(ls -A /logs/verifier)]").output
