"""Where a step is graded: separate environments, the step pod, another try, and again after the trial's end."""

import json
import sys
from pathlib import Path

from .conftest import BUSYBOX, NONROOT, PASS, VERIFIER, Namespace, kubectl, reward_if, run, until

MULTISTEP = (str(Path(sys.executable).parent / "multistep"),)


def test_separate_verifier_has_its_own_image_env_and_user_and_the_artifacts_alone(namespace: Namespace) -> None:
    toml = f"""artifacts = ["/app/out"]
[environment]
docker_image = "{BUSYBOX}"
[verifier.environment]
docker_image = "{VERIFIER}"
env = {{ ONLY_HERE = "yes" }}
cpus = 0.5
"""
    files = namespace.files(
        {"a": {"solution/solve.sh": "echo right > /app/out; echo x > /opt/agent-was-here; ln -s /tests /app/link\n"}},
        toml=toml,
    )
    namespace.create(files)
    status = namespace.finish()
    assert (status["phase"], status["rewards"]) == ("Succeeded", {"reward": 1.0}), status
    log = namespace.log("-verifier-1")
    assert "user agent in /grading, env yes" in log and "agent-was-here" not in log and "link" not in log
    pod = next(pod for pod in namespace.pods() if pod.metadata.name.endswith("-verifier-1"))
    assert pod.spec.containers[0].resources.limits == {"cpu": "500m"}


def test_separate_verifier_without_an_image_has_the_agent_s_and_the_uploaded_tests(namespace: Namespace) -> None:
    toml = 'artifacts = ["/srv/result", "relative"]\n[verifier]\nenvironment_mode = "separate"\n'
    solve = "mkdir -p /srv/result && echo good > /srv/result/x && echo r > relative && echo leak > /opt/leak\n"
    test = reward_if(
        '[ "$(cat /srv/result/x)" = good ] && [ "$(cat relative)" = r ] && [ ! -e /opt/leak ] && [ "$(id -un)" = agent ]'
    )
    step = {"solution/solve.sh": solve}
    namespace.create(namespace.files({"a": step, "b": {"solution/solve.sh": "true\n"}}, toml=toml, tests__test_sh=test, image=BUSYBOX),
                     environment={"image": BUSYBOX}, name="root")  # fmt: skip
    namespace.create(namespace.files({"a": step}, toml=toml, tests__test_sh=test.replace("/srv", "/tmp"), image=NONROOT)
                     | {"steps/a/solution/solve.sh": solve.replace("/srv", "/tmp").replace("&& echo leak > /opt/leak", "")
                        , "task.toml": f'artifacts = ["/tmp/result", "relative"]\n[verifier]\nenvironment_mode = "separate"\n[environment]\ndocker_image = "{NONROOT}"\n[[steps]]\nname = "a"\n'}, name="user")  # fmt: skip
    root = namespace.finish(name="root")
    # In the second step the agent's filesystem still has the first one's artifacts.
    assert root["phase"] == "Succeeded" and [step["rewards"] for step in root["steps"]] == [
        {"reward": 0.0},
        {"reward": 0.0},
    ], root
    user = namespace.finish(name="user")
    assert user["rewards"] == {"reward": 1.0}, user


def test_verifier_in_the_step_pod_reaches_servers_and_the_agent_never_sees_the_tests(namespace: Namespace) -> None:
    server = "mkdir -p /app/www; echo pong > /app/www/ping; httpd -p 8099 -h /app/www\n"
    spy = "(while :; do ls /tests >>/app/seen 2>/dev/null; ls -d /logs/verifier/* >>/app/seen 2>/dev/null; sleep 0.1; done) >/dev/null 2>&1 &\n"
    test = 'sleep 1; [ "$(wget -qO- http://localhost:8099/ping)" = pong ] && [ ! -s /app/seen ] && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt\n'
    files = namespace.files(
        {
            "a": {"solution/solve.sh": server + spy},
            "b": {
                "solution/solve.sh": "true\n",
                "tests/test.sh": reward_if("! wget -qO- http://localhost:8099/ping && [ -e /app/www/ping ]"),
            },
        },
        tests__test_sh=test,
    )
    namespace.create(files, verifier={"placement": "StepPod"})
    status = namespace.finish()
    assert [step.get("rewards") for step in status["steps"]] == [{"reward": 1.0}, {"reward": 1.0}], status
    assert not [pod for pod in namespace.pods() if "-verifier-" in pod.metadata.name]


def test_verifier_that_timed_out_runs_again_and_the_agent_does_not(namespace: Namespace) -> None:
    test = "if [ -e /app/second ]; then echo 1 > /logs/verifier/reward.txt; else touch /app/second; sleep 60; fi\n"
    files = namespace.files(
        {"a": {"solution/solve.sh": "echo ran >> /app/runs\n", "config": "[steps.verifier]\ntimeout_sec = 2"}},
        tests__test_sh=test,
    )
    namespace.create(files, verifier={"retries": 1})
    status = namespace.finish()
    (step,) = status["steps"]
    assert step["rewards"] == {"reward": 1.0}, status
    assert step["previousVerifications"][0]["error"]["type"] == "VerifierTimeoutError"
    runs = namespace.read_volume("cat /volume/rootfs/app/runs", status["workspace"]["claimName"])
    assert runs == "ran\n"


def test_deleted_verifier_runs_again_and_the_agent_does_not(namespace: Namespace) -> None:
    test = "if [ -e /app/second ]; then echo 1 > /logs/verifier/reward.txt; else touch /app/second; sleep 60; fi\n"
    namespace.create(
        namespace.files({"a": {"solution/solve.sh": "true\n"}}, tests__test_sh=test), verifier={"retries": 1}
    )
    name = namespace.running_pod("-verifier-1", 150)
    namespace.core.delete_namespaced_pod(name, namespace.name)
    status = namespace.finish()
    assert status["phase"] == "Succeeded" and status.get("attempt", 1) == 1, status
    assert status["steps"][0]["previousVerifications"][0]["error"]["type"] == "InfrastructureError"


def test_regrade_by_the_command_and_by_an_annotation(namespace: Namespace) -> None:
    toml = 'artifacts = ["/app/out"]\n[verifier]\nenvironment_mode = "separate"\n'
    # It tells the runs apart by what it finds on the results' own directory: nothing, each time.
    test = "ls -A /logs/verifier | grep -v test-stdout; grep -q . /app/out && date +%s%N > /logs/verifier/when && echo 0.5 > /logs/verifier/reward.txt\n"
    steps = {
        "a": {"solution/solve.sh": "echo 1 > /app/out; echo ran >> /app/runs\n"},
        "b": {"solution/solve.sh": "echo 2 > /app/out\n"},
    }
    namespace.create(namespace.files(steps, toml=toml, tests__test_sh=test))
    early = run(*MULTISTEP, "regrade", "trial", "-n", namespace.name, check=False)
    assert "is still" in early and "wait until it has ended" in early
    first = namespace.finish()
    assert "graded again" in run(*MULTISTEP, "regrade", "trial", "-n", namespace.name, "--step", "a")
    done = namespace.wait(lambda status: status.get("regrades", [{}])[0].get("completionTime"))
    assert done["regrades"][0]["rewards"] == {"reward": 0.5} and done["regrades"][0]["step"] == "a"
    assert done["regrades"][0]["trialRewards"] == {"reward": 0.5}
    assert (done["steps"], done["rewards"], done["completionTime"]) == (
        first["steps"],
        first["rewards"],
        first["completionTime"],
    )
    kubectl("-n", namespace.name, "annotate", "mst", "trial", "multistep.dev/regrade-requested-at=again", "--overwrite")
    done = namespace.wait(lambda status: len(status["regrades"]) == 2 and status["regrades"][1].get("completionTime"))
    assert done["regrades"][1]["step"] == "a" and done["regrades"][1]["request"] == "again"
    listing = namespace.read_volume(
        "cd /volume/trial/steps && ls a/verifier/when a/regrades/1/when a/regrades/2/when; cat /volume/rootfs/app/runs",
        done["workspace"]["claimName"],
    )
    assert listing.split() == ["a/regrades/1/when", "a/regrades/2/when", "a/verifier/when", "ran"]
    told = run(*MULTISTEP, "regrade", "nobody", "-n", namespace.name, check=False)
    assert 'multisteptrials.multistep.dev "nobody" not found' in told
    assert "its steps: 'a', 'b'" in run(
        *MULTISTEP, "regrade", "trial", "-n", namespace.name, "--step", "x", check=False
    )


def test_command_agent_is_handed_mcp_servers_and_skills(namespace: Namespace) -> None:
    toml = f"""[environment]
docker_image = "{BUSYBOX}"
skills_dir = "/opt/skills"
[[environment.mcp_servers]]
name = "files"
transport = "stdio"
command = "mcp-files"
args = ["--root", "/app"]
"""
    files = namespace.files(
        {"a": {}}, toml=toml, tests__test_sh="cp /app/mcp.json /logs/verifier/; cat /app/skills; " + PASS
    )
    script = 'cp "$MULTISTEP_MCP_CONFIG_FILE" /app/mcp.json; echo "$MULTISTEP_SKILLS_DIR" > /app/skills'
    namespace.create(files, agent={"name": "command", "command": ["sh", "-c", script]})
    status = namespace.finish()
    assert status["phase"] == "Succeeded", status
    assert "/opt/skills" in namespace.log("-verifier-1")
    text = namespace.read_volume("cat /volume/trial/steps/a/verifier/mcp.json", status["workspace"]["claimName"])
    assert json.loads(text)["mcpServers"]["files"] == {
        "type": "stdio",
        "command": "mcp-files",
        "args": ["--root", "/app"],
    }


def test_gpus_are_asked_for_by_the_cluster_s_own_names(namespace: Namespace) -> None:
    node = kubectl("get", "nodes", "-o", "jsonpath={.items[0].metadata.name}")
    patch = json.dumps({"status": {"capacity": {"example.com/gpu": "4"}}})
    kubectl("patch", "node", node, "--subresource=status", "--type=merge", "-p", patch)
    kubectl("label", "node", node, "example.com/gpu-model=BIG-ONE", "--overwrite")
    until(
        lambda: kubectl("get", "node", node, "-o", "jsonpath={.status.allocatable.example\\.com/gpu}") == "4",
        60,
        "GPUs",
    )
    toml = f'[environment]\ndocker_image = "{BUSYBOX}"\ngpus = 2\ngpu_types = ["H100"]\n'
    names = {"gpuResourceName": "example.com/gpu", "gpuTypeLabel": "example.com/gpu-model"}
    files = namespace.files({"a": {"solution/solve.sh": "true\n"}}, toml=toml, tests__test_sh=PASS)
    namespace.create(files, environment={**names, "gpuTypeNames": {"H100": "BIG-ONE"}})
    namespace.create(files, environment=names, name="elsewhere", startDeadlineSeconds=60)
    assert namespace.finish()["phase"] == "Succeeded"
    pod = next(
        pod for pod in namespace.pods() if pod.metadata.name.startswith("trial-") and "-step-1" in pod.metadata.name
    )
    assert pod.spec.containers[0].resources.limits == {"example.com/gpu": "2"}
    failed = namespace.finish(name="elsewhere", seconds=200)
    assert failed["error"]["type"] == "PodStartError" and "affinity" in failed["error"]["message"]
