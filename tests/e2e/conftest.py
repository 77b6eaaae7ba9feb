"""The real cluster: the operator installed by Helm from the built image, a namespace for each test, nothing left behind."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client, config

ROOT = Path(__file__).parents[2]
IMAGE = os.environ.get("MULTISTEP_IMAGE", "localhost/multistep/operator:dev")
BUSYBOX = "localhost/multistep/busybox:test"
NONROOT = "localhost/multistep/nonroot:test"
VERIFIER = "localhost/multistep/verifier:test"
DEBIAN = "localhost/multistep/debian:test"
GROUP, VERSION, PLURAL = "multistep.dev", "v1alpha1", "multisteptrials"
OPERATOR_NAMESPACE = "multistep-system"
ENDED = ("Succeeded", "Stopped", "Failed")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.req_k8s)


def run(*command: str, stdin: str | None = None, check: bool = True, seconds: float = 120) -> str:
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=seconds, check=False)
    assert not check or done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
    return done.stdout if check else done.stdout + done.stderr


def kubectl(*arguments: str, **options: Any) -> str:
    return run("kubectl", *arguments, **options)


def until(condition: Callable[[], Any], seconds: float, what: str) -> Any:
    """Wait for a condition, with a deadline."""
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.5)


def install(*settings: str) -> None:
    values = [
        f"--set={setting}"
        for setting in (
            f"image.repository={IMAGE.rpartition(':')[0]}",
            f"image.tag={IMAGE.rpartition(':')[2]}",
            # The test cluster has an engine, see hack/cluster.sh.
            "networkPolicy.engine=NetworkPolicy",
            *settings,
        )
    ]
    run(
        "helm", "upgrade", "--install", "multistep-operator", str(ROOT / "charts/multistep-operator"), "--namespace",
        OPERATOR_NAMESPACE, "--create-namespace", *values, "--wait", "--timeout", "2m", seconds=150,
    )  # fmt: skip


@pytest.fixture(scope="session", autouse=True)
def operator(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> None:
    """Install the operator once, whichever worker comes first."""
    shared = tmp_path_factory.getbasetemp().parent if worker_id != "master" else tmp_path_factory.getbasetemp()
    with (shared / "operator.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = shared / "operator.installed"
        if not done.exists():
            # A fresh process of the image as it is now, even where a release of the same tag is there already.
            install(f"podAnnotations.installed={uuid.uuid4().hex}")
            done.touch()
    config.load_kube_config()


class Namespace:
    """A namespace of its own, and what tests do in it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.core = client.CoreV1Api()
        self.custom = client.CustomObjectsApi()

    def files(
        self, steps: dict[str, dict[str, str]], *, image: str = BUSYBOX, toml: str = "", **shared: str
    ) -> dict[str, str]:
        """Return a task's files. Each step: `config` for task.toml, and files such as `solution/solve.sh`; `shared` are the task's own."""
        config_text = f'{toml}\n[environment]\ndocker_image = "{image}"\n' if "[environment]" not in toml else toml
        files: dict[str, str] = {path.replace("__", "/").replace("_sh", ".sh"): text for path, text in shared.items()}
        for name, content in steps.items():
            config_text += f"\n[[steps]]\nname = {json.dumps(name)}\n{content.get('config', '')}\n"
            files[f"steps/{name}/instruction.md"] = content.get("instruction", f"do {name}\n")
            for path, text in content.items():
                if "/" in path:
                    files[f"steps/{name}/{path}"] = text
        return {"task.toml": config_text, **files}

    def create(
        self, files: dict[str, str] | None = None, *, name: str = "trial", agent: Any = "oracle", **spec: Any
    ) -> None:
        agent = agent if isinstance(agent, dict) else {"name": agent}
        body = {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": "MultiStepTrial",
            "metadata": {"name": name},
            "spec": {"agent": agent, "workspace": {"size": "64Mi"}, **spec},
        }
        if files is not None:
            body["spec"]["task"] = {"inline": {"files": files}}
        self.custom.create_namespaced_custom_object(GROUP, VERSION, self.name, PLURAL, body)

    def get(self, name: str = "trial") -> dict[str, Any]:
        return self.custom.get_namespaced_custom_object(GROUP, VERSION, self.name, PLURAL, name)

    def status(self, name: str = "trial") -> dict[str, Any]:
        return self.get(name).get("status", {})

    def wait(
        self, predicate: Callable[[dict[str, Any]], Any], seconds: float = 150, name: str = "trial"
    ) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        while True:
            status = self.status(name)
            if predicate(status):
                return status
            if time.monotonic() > deadline:
                pytest.fail(
                    f"not within {seconds} s; status:\n{yaml.safe_dump(status)}\n{kubectl('-n', self.name, 'get', 'pods', '-o', 'wide')}"
                )
            time.sleep(0.5)

    def finish(self, seconds: float = 200, name: str = "trial") -> dict[str, Any]:
        return self.wait(lambda status: status.get("phase") in ENDED, seconds, name)

    def patch(self, body: dict[str, Any], name: str = "trial") -> None:
        self.custom.patch_namespaced_custom_object(GROUP, VERSION, self.name, PLURAL, name, body)

    def pods(self) -> list[Any]:
        return self.core.list_namespaced_pod(self.name).items

    def running_pod(self, ending: str, seconds: float = 60) -> str:
        """Wait until a pod of this ending runs; return its name."""

        def find() -> str | None:
            for pod in self.pods():
                states = pod.status.container_statuses or []
                if pod.metadata.name.endswith(ending) and states and states[0].state.running:
                    return str(pod.metadata.name)
            return None

        return str(until(find, seconds, f"a running pod {ending}"))

    def log(self, ending: str) -> str:
        (name,) = [pod.metadata.name for pod in self.pods() if pod.metadata.name.endswith(ending)]
        return kubectl("-n", self.name, "logs", name)

    def read_volume(self, script: str, claim: str, image: str = BUSYBOX) -> str:
        """Run a shell script in a pod that mounts a trial's volume at /volume; return its output."""
        name = f"reader-{uuid.uuid4().hex[:6]}"
        pod = {
            "metadata": {"name": name},
            "spec": {
                "restartPolicy": "Never",
                "containers": [
                    {
                        "name": "main",
                        "image": image,
                        "command": ["sh", "-c", script],
                        "volumeMounts": [{"name": "v", "mountPath": "/volume"}],
                    }
                ],
                "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}],
            },
        }
        self.core.create_namespaced_pod(self.name, pod)
        until(
            lambda: self.core.read_namespaced_pod(name, self.name).status.phase in ("Succeeded", "Failed"),
            60,
            "the reader",
        )
        output = kubectl("-n", self.name, "logs", name)
        self.core.delete_namespaced_pod(name, self.name, grace_period_seconds=0)
        return output


@pytest.fixture
def namespace(operator: None) -> Iterator[Namespace]:
    core = client.CoreV1Api()
    name = f"e2e-{uuid.uuid4().hex[:8]}"
    core.create_namespace({"metadata": {"name": name}})

    def account() -> bool:
        with contextlib.suppress(client.ApiException):
            return bool(core.read_namespaced_service_account("default", name))
        return False

    until(account, 60, "the default service account")
    yield Namespace(name)
    core.delete_namespace(name, propagation_policy="Background")


def reward_if(condition: str) -> str:
    """A test script that gives 1 where a shell condition holds, else 0."""
    return f"#!/bin/sh\nif {condition}; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n"


PASS = "echo 1 > /logs/verifier/reward.txt\n"
