"""A cluster in miniature for the engine: what it creates comes to be, and pods end as a test says. No API server, no clock."""

from __future__ import annotations

import base64
import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from multistep.api.spec import MultiStepTrialSpec
from multistep.api.status import MultiStepTrialStatus, format_time
from multistep.engine.decide import decide
from multistep.engine.types import (
    CreateObject,
    Decision,
    DeleteClaim,
    DeletePod,
    DeletePodsOfAttempt,
    DeleteTrial,
    Event,
    Observed,
    RegradeRequest,
    Settings,
    TaskReady,
    Trial,
)
from multistep.engine.work import awaited_pod
from multistep.pods.names import LABEL_ATTEMPT, LABEL_ROLE, LABEL_STEP_INDEX, TrialIdentity
from multistep.pods.network_engine import NetworkEngine
from multistep.pods.outcome import observe_pod
from multistep.task import load_task, pack, tree_from_inline

SETTINGS = Settings(operator_image="operator:1")
START = datetime(2026, 12, 1, 10, 0, 0, tzinfo=UTC)


def task_files(steps: int = 3, *, config: str = "", step_config: dict[int, str] | None = None) -> dict[str, str]:
    """Return the files of a task of so many steps; `config` is put at the top of task.toml, `step_config` below a step."""
    toml = config + '\n[environment]\ndocker_image = "busybox:1"\n' if "[environment]" not in config else config
    files = {"tests/test.sh": "echo 1 > /logs/verifier/reward.txt\n"}
    for number in range(1, steps + 1):
        toml += f'\n[[steps]]\nname = "step {number}"\n{(step_config or {}).get(number, "")}\n'
        files[f"steps/step {number}/instruction.md"] = f"do {number}\n"
        files[f"steps/step {number}/solution/solve.sh"] = "true\n"
    return {"task.toml": toml, **files}


class World:
    """One trial and its children."""

    def __init__(
        self, files: dict[str, str] | None = None, *, engine: NetworkEngine = NetworkEngine.NONE, **spec: Any
    ) -> None:
        self.settings = Settings("operator:1", engine)
        self.regrade: RegradeRequest | None = None
        self.files = files or task_files()
        self.identity = TrialIdentity("default", "trial", "6b0e2f0c-0000-4000-8000-000000000001")
        document = {"agent": {"name": "oracle"}, "task": {"inline": {"files": self.files}}, **spec}
        self.spec = MultiStepTrialSpec.model_validate(document)
        self.status: dict[str, Any] = {}
        self.generation = 1
        self.now = START
        self.pods: dict[str, dict[str, Any]] = {}
        self.objects: dict[tuple[str, str], dict[str, Any]] = {}
        self.created: Counter[str] = Counter()
        self.agent_runs: Counter[tuple[int, int]] = Counter()
        self.writes = 0
        self.events: list[Event] = []
        self.deleted = False
        self.wake_at: datetime | None = None
        tree = tree_from_inline(self.files, {})
        loaded = load_task(tree)
        assert loaded.task is not None, [str(problem) for problem in loaded.problems]
        self.task, self.bundle = loaded.task, pack(tree)

    # What the operator does

    def trial(self) -> Trial:
        status = MultiStepTrialStatus.model_validate(self.status)
        return Trial(self.identity, self.generation, self.spec, status, self.regrade)

    def observed(self) -> Observed:
        snapshotted = any(kind == "ConfigMap" for kind, _ in self.objects)
        awaited = awaited_pod(MultiStepTrialStatus.model_validate(self.status))
        seen = [
            pod
            for name, pod in self.pods.items()
            if name == awaited or pod["status"]["phase"] not in ("Succeeded", "Failed")
        ]
        pods = [observe_pod(pod) for pod in seen]
        return Observed(TaskReady(self.task, self.bundle, snapshotted), tuple(pod for pod in pods if pod is not None))

    def decide(self) -> Decision:
        return decide(self.trial(), self.observed(), self.now, self.settings)

    def wake(self, *, crash_after: int | None = None) -> Decision:
        """Make a pass in the order of `reconcile`; with `crash_after`, the operator dies after so many of its writes."""
        decision = self.decide()
        writes = [*(partial(self.apply, action) for action in decision.creations), partial(self.write, decision)]
        writes += [partial(self.apply, action) for action in decision.removals]
        for write in writes[:crash_after]:
            write()
        return decision

    def write(self, decision: Decision) -> None:
        document = json.loads(json.dumps(decision.status.to_json()))
        if document != self.status:
            self.status = document
            self.writes += 1
            self.events += decision.events
        self.wake_at = decision.wake_at

    def apply(self, action: Any) -> None:
        match action:
            case CreateObject(manifest):
                self.create(manifest)
            case DeletePod(name):
                self.pods.pop(name, None)
            case DeletePodsOfAttempt(attempt):
                self.pods = {
                    name: pod
                    for name, pod in self.pods.items()
                    if pod["metadata"]["labels"][LABEL_ATTEMPT] != str(attempt)
                }
            case DeleteClaim(name):
                assert not any(self.claim_of(pod) == name for pod in self.pods.values()), "a pod still names the claim"
                self.objects.pop(("PersistentVolumeClaim", name), None)
            case DeleteTrial():
                self.deleted = True

    def create(self, manifest: dict[str, Any]) -> None:
        name = manifest["metadata"]["name"]
        if manifest["kind"] != "Pod":
            self.objects.setdefault((manifest["kind"], name), manifest)
        elif name not in self.pods:
            self.created[name] += 1
            metadata = {
                **manifest["metadata"],
                "uid": f"{name}-{self.created[name]}",
                "creationTimestamp": format_time(self.now),
            }
            self.pods[name] = {"metadata": metadata, "spec": manifest["spec"], "status": {"phase": "Pending"}}

    @staticmethod
    def claim_of(pod: dict[str, Any]) -> str:
        return str(pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"])

    # What Kubernetes and the containers do

    def pod(self, name: str) -> dict[str, Any]:
        """Return a pod by the end of its name, such as `step-1`."""
        found = [pod for key, pod in self.pods.items() if key.endswith(name)]
        assert len(found) == 1, (name, list(self.pods))
        return found[0]

    def running(self) -> list[str]:
        return [name for name, pod in self.pods.items() if pod["status"]["phase"] in ("Pending", "Running")]

    def start(self, name: str) -> None:
        pod = self.pod(name)
        labels = pod["metadata"]["labels"]
        pod["spec"]["nodeName"] = "node-1"
        pod["status"] = {
            "phase": "Running",
            "containerStatuses": [
                {"name": container["name"], "state": {"running": {"startedAt": format_time(self.now)}}}
                for container in pod["spec"]["containers"]
            ],
        }
        key = (int(labels[LABEL_ATTEMPT]), int(labels.get(LABEL_STEP_INDEX, 0)))
        if labels[LABEL_ROLE] == "step":
            if self.agent_runs[key]:
                # The marker on the volume: the runner refuses.
                self.finish(name, step_message(error="StepAlreadyStartedError"))
            else:
                self.agent_runs[key] += 1

    def finish(
        self, name: str, message: str = "", *, exit_code: int = 0, reason: str | None = None, phase: str | None = None
    ) -> None:
        """End a pod's containers. Its phase follows later, unless `phase` is given."""
        pod = self.pod(name)
        pod["spec"]["nodeName"] = "node-1"
        messages = json.loads(message) if message.startswith('{"containers"') else None
        pod["status"] = {
            "phase": phase or "Running",
            "containerStatuses": [
                {
                    "name": container["name"],
                    "state": {
                        "terminated": {
                            "exitCode": exit_code,
                            "reason": reason or ("Completed" if exit_code == 0 else "Error"),
                            "startedAt": format_time(self.now),
                            "message": messages["containers"][container["name"]] if messages else message,
                        }
                    },
                }
                for container in pod["spec"]["containers"]
            ],
        }

    def evict(self, name: str) -> None:
        pod = self.pod(name)
        pod["status"] = {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."}

    def prepare(self) -> None:
        """Bring the trial to its first step's pod."""
        self.wake()
        self.finish("prepare", prepare_message())
        self.wake()

    def run_step(self, number: int, reward: Any = 1, *, agent_error: str | None = None) -> None:
        """Bring a step from its pod to its grade."""
        self.start(f"-step-{number}")
        self.finish(f"-step-{number}", step_message(error=agent_error))
        self.wake()
        self.finish(f"-verifier-{number}", verifier_message(reward))
        self.wake()

    def sleep(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def condition(self, kind: str) -> str | None:
        return next((c["status"] for c in self.status.get("conditions", []) if c["type"] == kind), None)


def prepare_message(workdir: str = "/app") -> str:
    user = {"uid": 0, "gid": 0, "passwdGid": 0}
    seed = {
        "version": 1,
        "role": "seed",
        "stages": [],
        "error": None,
        "workdir": workdir,
        "directories": ["app", "etc", "opt"],
    }
    probe = {"version": 1, "role": "probe", "stages": [], "error": None, "user": user}
    return json.dumps({"containers": {"seed": json.dumps(seed), "probe": json.dumps(probe), "agent": ""}})


def step_message(error: str | None = None, *, output: str = "", exit_code: int | None = None) -> str:
    fault = None
    if error is not None:
        encoded = base64.b64encode(output.encode()).decode()
        fault = {"type": error, "stage": "agent", "exitCode": exit_code, "outputBase64": encoded, "crlf": False}
    times = {"startedAt": format_time(START), "finishedAt": format_time(START + timedelta(seconds=2))}
    stage = {"name": "agent", **times, "exitCode": 0, "timedOut": False}
    return json.dumps({"version": 1, "role": "step", "stages": [stage], "error": fault})


def verifier_message(reward: Any = 1, *, error: str | None = None) -> str:
    """Return a verifier's report: a number or a dict is written as reward.json, text as reward.txt, None is no file."""
    handed = None
    if reward is not None and error is None:
        name, text = ("reward.txt", reward) if isinstance(reward, str) else ("reward.json", "")
        if name == "reward.json":
            text = json.dumps(reward if isinstance(reward, dict) else {"reward": reward})
        handed = {
            "name": name,
            "kind": "file",
            "size": len(text),
            "sha256": "0",
            "contentBase64": base64.b64encode(text.encode()).decode(),
        }
    fault = error and {"type": error, "stage": "verifier", "exitCode": None, "outputBase64": "", "crlf": False}
    return json.dumps({"version": 1, "role": "verifier", "stages": [], "error": fault, "reward": handed, "crlf": False})
