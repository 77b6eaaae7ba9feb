"""The walk through the steps: rewards, strategies, early stops, errors of setup, agent and verifier."""

import json

import pytest
import yaml

from .conftest import PASS, ROOT, Namespace, kubectl, reward_if


def test_example_passes_and_tells_its_story(namespace: Namespace) -> None:
    document = yaml.safe_load((ROOT / "examples/hello/trial.yaml").read_text())
    kubectl("-n", namespace.name, "apply", "-f", "-", stdin=json.dumps(document))
    kubectl("-n", namespace.name, "wait", "--for=condition=Complete", "mst/hello", "--timeout=120s", seconds=130)
    status = namespace.status("hello")
    assert (status["phase"], status["reward"]) == ("Succeeded", "1")
    assert status["rewards"] == {"reward": 1, "lines": pytest.approx(2 / 3)}
    assert (status["gradedSteps"], status["totalSteps"], status["rewardValid"]) == (3, 3, True)
    header, row = kubectl("-n", namespace.name, "get", "mst", "hello").splitlines()
    assert header.split() == ["NAME", "PHASE", "STEP", "REWARD", "REASON", "AGE"]
    assert row.split()[:5] == ["hello", "Succeeded", "3/3", "1", "AllStepsRan"]
    wide = kubectl("-n", namespace.name, "get", "mst", "hello", "-o", "wide").splitlines()[0]
    assert {"AGENT", "GRADED", "VALID", "NODE"} <= set(wide.split())
    story = kubectl("-n", namespace.name, "describe", "mst", "hello")
    for reason in ("TaskAccepted", "Prepared", "StepStarted", "StepGraded", "AllStepsRan"):
        assert reason in story
    for pod in namespace.pods():
        assert pod.spec.automount_service_account_token is False
        assert not [m for c in pod.spec.containers for m in c.volume_mounts if "serviceaccount" in m.mount_path]


def test_agent_that_does_nothing_scores_nothing(namespace: Namespace) -> None:
    files = namespace.files({"a": {}, "b": {}}, tests__test_sh=reward_if("[ -e /app/done ]"))
    namespace.create(files, agent="nop")
    status = namespace.finish()
    assert (status["phase"], status["rewards"]) == ("Succeeded", {"reward": 0})


def test_number_stops_early(namespace: Namespace) -> None:
    test = "echo 0.4 > /logs/verifier/reward.txt\n"
    namespace.create(namespace.files({"a": {"config": "min_reward = 0.5"}, "b": {}}, tests__test_sh=test), agent="nop")
    status = namespace.finish()
    assert (status["phase"], status["reason"], status["rewards"]) == ("Stopped", "MinRewardNotMet", {"reward": 0.4})
    assert (status["earlyStop"]["thresholds"], status["earlyStop"]["observed"]) == ({"reward": 0.5}, {"reward": 0.4})
    assert [step["phase"] for step in status["steps"]] == ["Completed", "Skipped"]
    kubectl("-n", namespace.name, "wait", "--for=condition=Complete", "mst/trial", "--timeout=5s")


def test_object_stops_early_and_names_the_missing_key(namespace: Namespace) -> None:
    test = 'echo \'{"a": 1, "reward": 1}\' > /logs/verifier/reward.json\n'
    config = "min_reward = { a = 0.5, segment_pass = 0.0 }"
    namespace.create(namespace.files({"a": {"config": config}, "b": {}}, tests__test_sh=test), agent="nop")
    status = namespace.finish()
    assert (status["phase"], status["earlyStop"]["missing"]) == ("Stopped", ["segment_pass"])
    assert (status["gradedSteps"], status["totalSteps"]) == (1, 2)


def test_final_is_the_last_step_s_reward(namespace: Namespace) -> None:
    steps = {"a": {"tests/test.sh": PASS}, "b": {"tests/test.sh": "echo '{\"x\": 3}' > /logs/verifier/reward.json\n"}}
    namespace.create(namespace.files(steps, toml='multi_step_reward_strategy = "final"'), agent="nop")
    status = namespace.finish()
    assert (status["rewards"], status["reward"]) == ({"x": 3}, "x=3")


def test_failing_setup_stops_the_trial_without_a_valid_reward(namespace: Namespace) -> None:
    steps = {"a": {}, "b": {"workdir/setup.sh": "#!/bin/sh\necho no database >&2\nexit 3\n"}, "c": {}}
    namespace.create(namespace.files(steps, tests__test_sh=PASS), agent="nop")
    status = namespace.finish()
    assert (status["phase"], status["error"]["type"], status["error"]["step"]) == ("Failed", "SetupError", "b")
    assert "no database" in status["error"]["message"] and "exit code 3" in status["error"]["message"]
    assert (status["rewards"], status["rewardValid"], status["gradedSteps"]) == ({"reward": 1}, False, 1)
    assert "reward" not in status
    assert [step["phase"] for step in status["steps"]] == ["Completed", "Failed", "Skipped"]
    assert not [pod for pod in namespace.pods() if pod.metadata.name.endswith("-verifier-2")]


def test_agent_that_times_out_is_graded_by_what_it_wrote(namespace: Namespace) -> None:
    steps = {"a": {"config": "[steps.agent]\ntimeout_sec = 2"}, "b": {"config": "[steps.agent]\ntimeout_sec = 30"}}
    script = "if [ -e /app/first ]; then exit 0; fi; echo partial > /app/first; (setsid sleep 1000 &); trap '' TERM; while :; do sleep 1; done"
    files = namespace.files(steps, tests__test_sh=reward_if('[ "$(cat /app/first)" = partial ]'))
    namespace.create(files, agent={"name": "command", "command": ["sh", "-c", script]})
    status = namespace.finish()
    assert (status["phase"], status["rewards"], status["rewardValid"]) == ("Succeeded", {"reward": 1}, True)
    assert status["steps"][0]["error"]["type"] == "AgentTimeoutError"
    assert "error" not in status["steps"][1]


def test_command_gets_the_instruction_and_its_failure_is_graded(namespace: Namespace) -> None:
    script = 'cat > /app/stdin; cp "$MULTISTEP_INSTRUCTION_FILE" /app/file; echo "$KEY" > /app/key; exit 7'
    test = reward_if(
        '[ "$(cat /app/stdin /app/file)" = "$(printf \'solve\\nsolve\')" ] && [ -z "${KEY-}" ] && grep -q abc /app/key'
    )
    files = namespace.files({"a": {"instruction": "solve\n"}}, tests__test_sh=test)
    env = [{"name": "KEY", "value": "abc$(HOME)"}]
    namespace.create(files, agent={"name": "command", "command": ["sh", "-c", script], "env": env})
    status = namespace.finish()
    assert status["rewards"] == {"reward": 1}
    assert status["steps"][0]["error"]["type"] == "NonZeroAgentExitCodeError"


def test_verifier_that_times_out_gives_no_reward(namespace: Namespace) -> None:
    test = "echo 1 > /logs/verifier/reward.txt; while :; do sleep 1; done\n"
    namespace.create(
        namespace.files({"a": {"config": "[steps.verifier]\ntimeout_sec = 2"}, "b": {}}, tests__test_sh=test),
        agent="nop",
    )
    status = namespace.finish()
    assert (status["phase"], status["error"]["type"]) == ("Failed", "VerifierTimeoutError")
    assert "rewards" not in status and status["rewardValid"] is False


@pytest.mark.parametrize(
    ("test", "error", "words"),
    [
        ("exit 1\n", "RewardFileNotFoundError", "neither"),
        (": > /logs/verifier/reward.txt\n", "RewardFileEmptyError", "is empty"),
        ("echo nan > /logs/verifier/reward.txt\n", "VerifierOutputParseError", "finite"),
        ("#!/bin/sh\r\necho 1 > /logs/verifier/reward.txt\r\n", "RewardFileNotFoundError", "CRLF"),
    ],
    ids=["missing", "empty", "nan", "crlf"],
)
def test_reward_that_cannot_be_used_is_a_typed_error(namespace: Namespace, test: str, error: str, words: str) -> None:
    namespace.create(namespace.files({"a": {}}, tests__test_sh=test), agent="nop")
    status = namespace.finish()
    assert (status["phase"], status["error"]["type"]) == ("Failed", error)
    assert words in status["error"]["message"]
    assert status["error"]["pod"].endswith("-verifier-1")
    assert "rewards" not in status


def test_large_reward_arrives_whole(namespace: Namespace) -> None:
    keys = "for i in $(seq 400); do printf '\"a long name of a key %s\": 0.125, ' $i; done"
    test = f"{{ printf '{{'; {keys}; printf '\"reward\": 1}}'; }} > /logs/verifier/reward.json; ls -la /logs/verifier\n"
    namespace.create(namespace.files({"a": {}}, tests__test_sh=test), agent="nop")
    status = namespace.finish()
    assert status["phase"] == "Succeeded"
    assert len(status["rewards"]) == 401 and status["rewards"]["a long name of a key 400"] == 0.125


def test_shared_tests_lie_below_the_step_s(namespace: Namespace) -> None:
    steps = {
        "a": {},
        "b": {
            "tests/expected": "two",
            "tests/test.sh": reward_if("[ $(cat /tests/expected) = two ] && [ -e /tests/helper ]"),
        },
    }
    files = namespace.files(
        steps, tests__test_sh=reward_if("[ $(cat /tests/expected) = one ]"), tests__expected="one", tests__helper="x"
    )
    namespace.create(files, agent="nop")
    assert namespace.finish()["rewards"] == {"reward": 1}


def test_healthcheck_is_waited_for_and_its_failure_fails_the_step(namespace: Namespace) -> None:
    good = '[steps.healthcheck]\ncommand = "test -e /app/ready"\ninterval_sec = 0.2\nretries = 50'
    bad = '[steps.healthcheck]\ncommand = "echo not yet; false"\ninterval_sec = 0.1\nretries = 2'
    setup = "(sleep 1; touch /app/ready) >/dev/null 2>&1 &\n"
    files = namespace.files(
        {"a": {"config": good, "workdir/setup.sh": setup}, "b": {"config": bad}}, tests__test_sh=PASS
    )
    namespace.create(files, agent="nop")
    status = namespace.finish()
    assert status["steps"][0]["phase"] == "Completed"
    assert (status["error"]["type"], status["error"]["step"]) == ("HealthcheckError", "b")
    assert "not yet" in status["error"]["message"]
