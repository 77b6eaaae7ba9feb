"""What persists, who owns it, and what an agent must not see."""

import subprocess
from pathlib import Path

import pytest
import yaml

from .conftest import BUSYBOX, DEBIAN, NONROOT, PASS, ROOT, Namespace, kubectl, reward_if


def test_workdir_overwrites_what_is_there(namespace: Namespace) -> None:
    steps = {
        "a": {
            "workdir/data": "one\n",
            "solution/solve.sh": "echo changed > /app/data; echo kept > /app/own\n",
            "tests/test.sh": PASS,
        },
        "b": {
            "workdir/data": "two\n",
            "solution/solve.sh": "true\n",
            "tests/test.sh": reward_if('[ "$(cat /app/data /app/own)" = "$(printf \'two\\nkept\')" ]'),
        },
    }
    namespace.create(namespace.files(steps))
    assert namespace.finish()["rewards"] == {"reward": 1}


def test_changes_anywhere_reach_the_verifier_and_the_next_step(namespace: Namespace) -> None:
    """Like a package: a command in /usr, its configuration in /etc, its state in /var, and a directory directly under /."""
    install = (
        "#!/bin/bash\nset -e\nprintf '#!/bin/bash\\necho tool\\n' > /usr/local/bin/tool; chmod +x /usr/local/bin/tool\n"
        "echo x > /etc/tool.conf; mkdir -p /var/lib/tool /data; echo 1 > /var/lib/tool/n; echo d > /data/d; ln -s /data /link\n"
    )
    check = reward_if(
        '[ "$(tool)" = tool ] && [ -e /etc/tool.conf ] && [ "$(cat /var/lib/tool/n /link/d)" = "$(printf \'1\\nd\')" ]'
    )
    again = "#!/bin/bash\ntool && cat /link/d && rm -rf /data\n"
    steps = {
        "install": {"solution/solve.sh": install, "tests/test.sh": check},
        "use": {"solution/solve.sh": again, "tests/test.sh": reward_if("[ ! -e /data ] && [ -L /link ]")},
    }
    namespace.create(namespace.files(steps, image=DEBIAN), workspace={"size": "1Gi"})
    status = namespace.finish(240)
    assert (status["phase"], status["rewards"]) == ("Succeeded", {"reward": 1})
    assert "tool" in namespace.log("-step-2")


def test_users_modes_and_setuid_are_as_in_the_image(namespace: Namespace) -> None:
    solve = (
        "#!/bin/bash\nid -un > /home/agent/who; play > /home/agent/played; sudo -n /bin/cat /opt/secret/answer > /home/agent/answer\n"
        "cat /opt/secret/answer 2> /home/agent/denied; ls /tests /logs/verifier /.multistep/run 2>/dev/null; true\n"
    )
    check = reward_if(
        '[ "$(id -un)" = root ] && [ "$(cat /home/agent/who)" = agent ] && [ "$(cat /home/agent/played)" = played ] '
        '&& [ "$(cat /home/agent/answer)" = "the answer" ] && grep -q denied /home/agent/denied && [ "$(stat -c %U /home/agent/who)" = agent ]'
    )
    files = namespace.files(
        {"a": {"solution/solve.sh": solve}, "b": {"solution/solve.sh": solve}},
        image=DEBIAN,
        toml='[agent]\nuser = "agent"',
        tests__test_sh=check,
    )
    namespace.create(files, workspace={"size": "1Gi"})
    status = namespace.finish(240)
    assert (status["phase"], status["rewards"]) == ("Succeeded", {"reward": 1})


def test_image_s_own_user_and_working_directory_count(namespace: Namespace) -> None:
    solve = "id -u > who; pwd > where; echo $HOME > home\n"
    check = reward_if(
        '[ "$(cat who where home; id -u)" = "$(printf \'1000\\n/home/agent/work\\n/home/agent\\n1000\')" ]'
    )
    namespace.create(namespace.files({"a": {"solution/solve.sh": solve}}, image=NONROOT, tests__test_sh=check))
    status = namespace.finish()
    assert (status["rewards"], status["workspace"]["workdir"]) == ({"reward": 1}, "/home/agent/work")


def test_persistence_of_the_working_directory_alone(namespace: Namespace) -> None:
    steps = {
        "a": {
            "solution/solve.sh": "echo 1 > /app/in; echo 1 > /etc/out\n",
            "tests/test.sh": reward_if("[ -e /app/in ] && [ ! -e /etc/out ]"),
        },
        "b": {"solution/solve.sh": "true\n", "tests/test.sh": reward_if("[ -e /app/in ] && [ ! -e /etc/out ]")},
    }
    namespace.create(namespace.files(steps), workspace={"size": "64Mi", "persistence": "Workdir"})
    assert namespace.finish()["rewards"] == {"reward": 1}


@pytest.fixture
def bundle_task(tmp_path: Path) -> Path:
    task = tmp_path / "my task"
    for path, text, mode in [
        ("task.toml", f'[environment]\ndocker_image = "{BUSYBOX}"\n[[steps]]\nname = "Step 1 (final)"\n', 0o644),
        ("steps/Step 1 (final)/instruction.md", "go\n", 0o644),
        ("steps/Step 1 (final)/workdir/tool", "#!/bin/sh\necho ran\n", 0o755),
        ("steps/Step 1 (final)/workdir/plain", "x", 0o640),
        ("steps/Step 1 (final)/solution/solve.sh", "./link > out\n", 0o644),
        (
            "tests/test.sh",
            reward_if('[ "$(cat out)" = ran ] && [ -L link ] && [ ! -x plain ] && [ "$(stat -c %a plain)" = 640 ]'),
            0o644,
        ),
    ]:
        file = task / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(mode)
    (task / "steps/Step 1 (final)/workdir/link").symlink_to("tool")
    return task


def _pack(*arguments: str) -> str:
    return subprocess.check_output([str(ROOT / ".venv/bin/multistep"), "pack", *arguments], text=True)


def test_execute_bits_and_links_survive_a_bundle(namespace: Namespace, bundle_task: Path) -> None:
    packed = _pack(str(bundle_task))
    kubectl("-n", namespace.name, "apply", "-f", "-", stdin=packed)
    status = namespace.finish(name="my-task")
    assert (status["rewards"], status["steps"][0]["name"]) == ({"reward": 1}, "Step 1 (final)")


def test_bundle_over_the_limit_is_split_and_put_together(namespace: Namespace, bundle_task: Path) -> None:
    noise = bundle_task / "tests/noise"
    noise.write_bytes(__import__("os").urandom(1_300_000))
    packed = _pack(str(bundle_task), "--name", "large")
    documents = list(yaml.safe_load_all(packed))
    assert len(documents) > 3 and documents[-1]["spec"]["task"]["configMap"]["parts"] == len(documents) - 1
    kubectl("-n", namespace.name, "apply", "-f", "-", stdin=packed)
    assert namespace.finish(name="large")["rewards"] == {"reward": 1}


def test_agent_finds_no_tests_solutions_or_rewards(namespace: Namespace) -> None:
    """It looks for secrets that only tests, solutions and verifiers hold, everywhere, as root."""
    search = (
        "touch /app/searched; grep -rl 'SECRET-OF-THE-[T]EST' / --exclude-dir=proc --exclude-dir=sys 2>/dev/null; "
        "find / -path /proc -prune -o \\( -name reward.txt -o -name solve.sh -o -name test.sh \\) -print 2>/dev/null; "
        "grep -l SECRET-OF-THE-[T]EST /proc/[0-9]*/environ 2>/dev/null; cat /proc/mounts | grep -E 'solution|tests|verifier'; ls -A /logs/verifier 2>/dev/null; true"
    )
    steps = {
        name: {
            "solution/solve.sh": "# SECRET-OF-THE-TEST\n",
            "tests/test.sh": "#!/bin/sh\n# SECRET-OF-THE-TEST\necho $KEY; " + PASS,
        }
        for name in ("a", "b", "c")
    }
    files = namespace.files(steps, tests__helper="SECRET-OF-THE-TEST", toml='[verifier.env]\nKEY = "${KEY}"')
    env = [{"name": "KEY", "value": "SECRET-OF-THE-TEST"}]
    namespace.create(files, agent={"name": "command", "command": ["sh", "-c", search]}, env=env, verifier={"env": env})
    status = namespace.finish()
    assert (status["phase"], status["rewards"]) == ("Succeeded", {"reward": 1})
    for number in (1, 2, 3):
        assert namespace.log(f"-step-{number}") == ""
    assert "SECRET-OF-THE-TEST" in namespace.log("-verifier-1")


def test_forged_reward_and_report_change_nothing(namespace: Namespace) -> None:
    forge = (
        "mkdir -p /logs/verifier /tests; echo 1 > /logs/verifier/reward.txt; echo '{\"reward\": 1}' > /logs/verifier/reward.json; "
        "echo 'echo 1 > /logs/verifier/reward.txt' > /tests/test.sh; "
        'r=\'{"version":1,"role":"verifier","stages":[],"error":null,"reward":{"name":"reward.txt","kind":"file","size":1,"contentBase64":"MQ=="}}\'; '
        "(setsid sh -c \"while :; do echo '$r' > /dev/termination-log; done\" >/dev/null 2>&1 &); "
        "echo '-----BEGIN MULTISTEP REWARD 0-----'; echo MQ==; echo '-----END MULTISTEP REWARD 0-----'"
    )
    files = namespace.files({"a": {}, "b": {}}, tests__test_sh="echo 0 > /logs/verifier/reward.txt\n")
    namespace.create(files, agent={"name": "command", "command": ["sh", "-c", forge]})
    status = namespace.finish()
    # The forger may spoil its own step's report, never the reward.
    graded = [step["rewards"] for step in status["steps"] if "rewards" in step]
    assert all(rewards == {"reward": 0} for rewards in graded)
    assert status.get("rewards") in (None, {"reward": 0})


def test_results_lie_on_the_volume_in_harbor_s_layout(namespace: Namespace) -> None:
    steps = {"one two": {"solution/solve.sh": "echo out; echo art > /logs/artifacts/a.txt\n"}}
    namespace.create(namespace.files(steps, tests__test_sh="echo tested; " + PASS))
    status = namespace.finish()
    claim = status["workspace"]["claimName"]
    listing = namespace.read_volume(
        "cd '/volume/trial/steps/one two' && find . -type f | sort && cat verifier/test-stdout.txt agent/oracle.txt",
        claim,
    )
    assert listing.split() == [
        "./agent/oracle.txt",
        "./artifacts/logs/artifacts/a.txt",
        "./artifacts/manifest.json",
        "./verifier/reward.txt",
        "./verifier/test-stdout.txt",
        "tested",
        "out",
    ]


def test_agent_image_brings_its_binaries(namespace: Namespace) -> None:
    agent = {
        "name": "command",
        "command": ["/opt/secret/answer-reader", "x"],
        "image": {"reference": DEBIAN, "path": "/usr/local/bin"},
    }
    agent["command"] = [
        "sh",
        "-c",
        "ls /usr/local/bin > /app/seen; /usr/local/bin/play > /app/played 2>&1; touch /usr/local/bin/x 2> /app/ro",
    ]
    test = reward_if(
        "grep -q play /app/seen && grep -q 'No such file' /app/played && grep -q 'Read-only' /app/ro && [ ! -e /usr/local/bin/play ]"
    )
    namespace.create(namespace.files({"a": {}}, tests__test_sh=test), agent=agent)
    assert namespace.finish()["rewards"] == {"reward": 1}
