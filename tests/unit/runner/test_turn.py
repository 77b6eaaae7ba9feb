"""The verifier as a second container of the step pod: two runners that share the volume and a directory for whose turn it is."""

import shutil
import subprocess
import time

from .conftest import Container, Result, first_process, wait_for


def both(container: Container, script: str, test: str, *flags: str, between: float = 0.0) -> tuple[Result, Result]:
    agent, verifier = start(container, script, test, *flags, between=between)
    container.number = 2
    graded = container.finish(verifier)
    container.number = 1
    return container.finish(agent), graded


def start(
    container: Container, script: str, test: str, *flags: str, between: float = 0.0
) -> "tuple[subprocess.Popen[str], subprocess.Popen[str]]":
    container.write("tests-shared/test.sh", test, 0o755)
    agent = container.popen(
        "step", "--workdir=/app", "--agent=command", "--step-name=one", "--before-verifier=yes", *flags,
        "--", "sh", "-c", script, turn="turn",
    )  # fmt: skip
    time.sleep(between)
    mounts = {"tests/shared": "tests-shared", "turn": "turn"}
    verifier = container.popen("verify", "--workdir=/app", "--step-name=one", "--after-agent=yes", **mounts)
    return agent, verifier


SERVER = "(while :; do date +%s%N >/app/beat; sleep 0.05; done) >/dev/null 2>&1 & sleep 1; echo done >/app/agent"
TEST = 'first=$(cat /app/beat); sleep 0.4; [ "$first" != "$(cat /app/beat)" ] && cat /app/agent && echo 1 >/logs/verifier/reward.txt\n'


def test_what_the_agent_left_running_lives_while_the_tests_run(container: Container) -> None:
    agent, verifier = both(container, SERVER, TEST)
    assert verifier.reward == b"1\n" and "done" in verifier.output
    assert agent.error is None and agent.exit_code == 0 and "agent" in agent.stages


def test_verifier_that_comes_late_finds_its_turn(container: Container) -> None:
    agent, verifier = both(
        container, "echo done >/app/agent", "cat /app/agent; echo 1 >/logs/verifier/reward.txt\n", between=1.5
    )
    assert verifier.reward == b"1\n" and agent.exit_code == 0


def test_agent_that_failed_is_graded_and_a_setup_that_failed_is_not(container: Container) -> None:
    agent, verifier = both(container, "exit 3", "echo 1 >/logs/verifier/reward.txt\n")
    assert agent.error == "NonZeroAgentExitCodeError" and verifier.reward == b"1\n"
    shutil.rmtree(container.volume / "turn")
    shutil.rmtree(container.volume / "run-1")
    container.number = 0
    container.write("step/workdir/setup.sh", "exit 1\n", 0o755)
    agent, verifier = both(container, "true", "echo ran >/app/ran; echo 1 >/logs/verifier/reward.txt\n")
    assert agent.error == "SetupError" and verifier.reward is None
    assert not container.rootfs("app/ran").exists()


def test_step_that_was_started_before_lets_nobody_verify(container: Container) -> None:
    container.write("run-1/started/x", "")
    agent, verifier = both(container, "true", "echo 1 >/logs/verifier/reward.txt\n")
    assert agent.error == "StepAlreadyStartedError" and verifier.reward is None


def test_agent_s_container_that_is_killed_lets_the_verifier_go_on(container: Container) -> None:
    agent, verifier = start(container, "echo here >/app/here; sleep 60", "echo 1 >/logs/verifier/reward.txt\n")
    wait_for(container.rootfs("app/here"))
    subprocess.check_call(["kill", "-KILL", str(first_process(agent))])
    agent.communicate(timeout=20)
    container.number = 2
    assert container.finish(verifier).reward == b"1\n"


def test_verifier_that_is_killed_lets_the_step_end(container: Container) -> None:
    agent, verifier = start(container, "true", "echo here >/app/here; sleep 60\n")
    wait_for(container.rootfs("app/here"))
    subprocess.check_call(["kill", "-KILL", str(first_process(verifier))])
    verifier.communicate(timeout=20)
    container.number = 1
    assert container.finish(agent).error is None


def test_step_that_is_told_to_end_while_the_tests_run_keeps_its_report(container: Container) -> None:
    agent, verifier = start(container, "true", "echo here >/app/here; sleep 60\n")
    wait_for(container.rootfs("app/here"))
    subprocess.check_call(["kill", "-TERM", str(first_process(agent)), str(first_process(verifier))])
    container.number = 1
    assert container.finish(agent).error is None
    container.number = 2
    assert container.finish(verifier).error == "TerminatedError"
