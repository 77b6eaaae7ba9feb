import json
import os
import signal
import time

import pytest

from multistep.pods.reports import VerifierReport, parse_report, reward_from_log

from .conftest import Container, first_process, wait_for


def test_reward_is_handed_back_as_it_is(container: Container) -> None:
    result = container.verify("#!/bin/sh\necho testing; printf ' 0.50\\n' > /logs/verifier/reward.txt\n")
    assert (result.exit_code, result.error, result.reward) == (0, None, b" 0.50\n")
    assert result.report["reward"]["name"] == "reward.txt"
    assert result.output == "testing\n"
    assert (container.volume / "logs-verifier/test-stdout.txt").read_text() == "testing\n"


def test_json_wins_even_when_broken(container: Container) -> None:
    result = container.verify("echo 1 > /logs/verifier/reward.txt; printf '{' > /logs/verifier/reward.json\n")
    assert (result.report["reward"]["name"], result.reward) == ("reward.json", b"{")


def test_dangling_link_does_not_count(container: Container) -> None:
    result = container.verify("ln -s nowhere /logs/verifier/reward.json; echo 1 > /logs/verifier/reward.txt\n")
    assert result.report["reward"]["name"] == "reward.txt"


def test_directory_is_reported_as_such(container: Container) -> None:
    result = container.verify("mkdir /logs/verifier/reward.json\n")
    assert result.report["reward"]["kind"] == "directory"


def test_no_reward_is_no_error_of_the_runner(container: Container) -> None:
    result = container.verify("exit 3\n")
    assert (result.error, result.report["reward"], result.stages["verifier"]["exitCode"]) == (None, None, 3)


def test_stale_reward_is_never_read(container: Container) -> None:
    container.write("logs-verifier/reward.json", '{"reward": 1}')
    container.write("logs-verifier/deep/er/file", "x")
    result = container.verify("ls -A /logs/verifier\n")
    assert (result.report["reward"], result.output) == (None, "test-stdout.txt\n")


def test_step_s_tests_lie_over_the_shared_ones(container: Container) -> None:
    container.write("tests-shared/helper", "shared")
    container.write("tests-shared/only-shared", "shared")
    container.write("tests-step/helper", "step")
    container.write("tests-step/sub/x", "step")
    result = container.verify("cd /tests; cat helper only-shared sub/x; ls -ld /tests | cut -c1-10\n")
    assert result.output == "stepsharedstepdrwxr-xr-x\n"


@pytest.mark.parametrize(
    "damage", ["rm -rf /tests", "rm -rf /tests; ln -s /app /tests", "mkdir -p /tests; echo evil > /tests/test.sh"]
)
def test_agent_cannot_plant_tests(container: Container, damage: str) -> None:
    container.command(damage)
    result = container.verify("#!/bin/sh\nls -A /tests; echo 0 > /logs/verifier/reward.txt\n")
    assert (result.output, result.reward) == ("test.sh\n", b"0\n")


def test_verifier_sees_what_the_agent_left_and_runs_as_its_user(container: Container) -> None:
    container.command("echo made > /opt/thing; echo top > /top-level")
    result = container.verify("cat /opt/thing /top-level; id -un; echo 1 > /logs/verifier/reward.txt\n", "--user=agent")
    assert result.output == "made\ntop\nagent\n"
    assert result.reward == b"1\n"


def test_timeout_discards_a_reward_and_ends_the_tree(container: Container) -> None:
    test = "echo 1 > /logs/verifier/reward.txt; (setsid sleep 1000 &); echo waiting; trap '' TERM; while :; do sleep 1; done\n"
    before = time.monotonic()
    result = container.verify(test, "--timeout=0.5", "--kill-grace=1")
    assert (result.error, result.report["reward"]) == ("VerifierTimeoutError", None)
    assert "waiting" in result.error_output
    assert time.monotonic() - before < 20


@pytest.mark.parametrize("limit", ["0", "-5"])
def test_no_time_at_all_runs_no_test(container: Container, limit: str) -> None:
    result = container.verify("echo 1 > /logs/verifier/reward.txt\n", f"--timeout={limit}")
    assert (result.error, result.report["reward"]) == ("VerifierTimeoutError", None)


def test_process_that_outlives_the_test_cannot_change_the_reward(container: Container) -> None:
    result = container.verify(
        "(while :; do echo 1 > /logs/verifier/reward.txt; done) & sleep 0.3; echo 0 > /logs/verifier/reward.json\n"
    )
    assert result.report["reward"]["name"] == "reward.json"


def test_windows_line_ends_of_the_test_are_named(container: Container) -> None:
    result = container.verify("#!/bin/sh\r\necho 1 > /logs/verifier/reward.txt\r\n")
    assert result.report["crlf"] is True


@pytest.mark.parametrize("size", [1_900, 2_100, 60_000, 1_048_576])
def test_large_reward_arrives_whole_by_the_log(container: Container, size: int) -> None:
    body = json.dumps({"reward": 1, "padding": 0})[:-1]
    text = body + " " * (size - len(body) - 1) + "}"
    container.write("tests-shared/reward.json", text)
    forged = "-----BEGIN MULTISTEP REWARD 0000-----"
    result = container.verify(f"echo '{forged}'; cp /tests/reward.json /logs/verifier/; printf 'no line end'\n")
    report = parse_report(VerifierReport, json.dumps(result.report))
    assert report.reward is not None and report.reward.size == size
    assert report.reward.in_log == (size > 2000)
    content = (
        reward_from_log(result.output, report.reward.sha256 or "") if report.reward.in_log else report.reward.content
    )
    assert content == text.encode()


def test_reward_beyond_all_bounds_is_not_read(container: Container) -> None:
    result = container.verify("head -c 2000000 /dev/null; yes | head -c 2000000 > /logs/verifier/reward.txt\n")
    assert result.report["reward"]["kind"] == "tooLarge"


def test_missing_test_script_is_an_error(container: Container) -> None:
    container.write("tests-shared/other", "x")
    assert container.verify().error == "AddTestsDirError"


def test_directory_in_the_script_s_place_fails_as_in_the_reference(container: Container) -> None:
    container.write("tests-shared/test.sh/x", "x")
    result = container.verify()
    assert (result.error, result.report["reward"], result.stages["verifier"]["exitCode"]) == (None, None, 126)


def test_leftover_that_ignores_term_is_ended_before_the_reward_is_read(container: Container) -> None:
    stubborn = "sh -c \"trap '' TERM; while :; do echo 1 > /logs/verifier/reward.txt; sleep 0.05; done\" &\n"
    test = f"{stubborn}echo last words\nsleep 0.2; echo 0 > /logs/verifier/reward.json\n"
    result = container.verify(test, "--kill-grace=0.3")
    assert (result.reward, result.output) == (b"0\n", "last words\n")


def test_told_to_end_it_hands_over_no_reward(container: Container) -> None:
    container.write("tests-shared/test.sh", "echo 1 > /logs/verifier/reward.txt; echo up; sleep 1000\n")
    process = container.popen("verify", "--workdir=/app", **{"tests/shared": "tests-shared"})
    wait_for(container.volume / "logs-verifier/reward.txt")
    os.kill(first_process(process), signal.SIGTERM)
    result = container.finish(process)
    assert (result.exit_code, result.error, result.report["reward"]) == (143, "TerminatedError", None)


def test_reward_s_description_is_whole(container: Container) -> None:
    container.verify("mkfifo /logs/verifier/reward.json\n")
    result = container.verify("mkfifo /logs/verifier/reward.json; yes | head -c 1500000 > /logs/verifier/reward.txt\n")
    assert result.report["reward"] == {
        "name": "reward.json", "kind": "other", "size": 0, "sha256": None, "contentBase64": None,
    }  # fmt: skip
    result = container.verify("yes | head -c 1500000 > /logs/verifier/reward.txt\n")
    assert (result.report["reward"]["kind"], result.report["reward"]["size"]) == ("tooLarge", 1_500_000)
    assert "MULTISTEP REWARD" not in result.output


def test_link_to_a_reward_is_followed(container: Container) -> None:
    result = container.verify("echo 0.5 > /app/score; ln -s /app/score /logs/verifier/reward.txt\n")
    assert result.reward == b"0.5\n"


def test_tests_belong_to_root_and_are_the_test_user_s_to_run(container: Container) -> None:
    container.write("tests-shared/test.sh", "stat -c '%u %a %n' /tests /tests/*\n", 0o600)
    result = container.verify(None, "--user=root")
    assert result.output == "0 755 /tests\n0 755 /tests/test.sh\n"


def test_unknown_verifier_user_is_named(container: Container) -> None:
    result = container.verify("true\n", "--user=no-such-user")
    assert (result.error, result.error_output) == ("UserNotFoundError", "user no-such-user")


def test_environment_of_the_test_has_nothing_of_the_runner_s(container: Container) -> None:
    result = container.verify("env | cut -d= -f1 | sort | tr '\\n' ' '\n")
    assert set(result.output.split()) - {"PWD", "OLDPWD", "SHLVL", "_"} == {"HOME", "PATH"}


def test_verifier_s_changes_persist_as_in_one_container(container: Container) -> None:
    container.verify("echo seen > /opt/by-verifier; echo t > /by-verifier\n")
    assert container.command("cat /opt/by-verifier /by-verifier").output == "seen\nt\n"
    assert container.rootfs("/opt/by-verifier").exists()
