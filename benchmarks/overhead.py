"""What the operator adds to the pods that a trial consists of.

In one run, interleaved: a trial of five steps that do nothing, the bare chain of the very same pods driven by container states, and
the same chain driven by pod phases. Times are from the creation of the first step pod to the end of the last verifier's container,
as the watch tells it. Prints the medians and two ratios: trial / chain by container states, and trial / chain by phases.

    make benchmark            # on the cluster of hack/cluster.sh, with the operator installed
"""

from __future__ import annotations

import argparse
import copy
import json
import statistics
import time
import uuid
from collections.abc import Callable
from typing import Any

from kubernetes import client, config, watch

GROUP, VERSION, PLURAL = "multistep.dev", "v1alpha1", "multisteptrials"
IMAGE = "localhost/multistep/busybox:test"


def task(steps: int) -> dict[str, str]:
    """Return a task whose steps do nothing and whose test says 1."""
    toml = f'[environment]\ndocker_image = "{IMAGE}"\n'
    files = {"tests/test.sh": "echo 1 > /logs/verifier/reward.txt\n"}
    for number in range(1, steps + 1):
        toml += f'[[steps]]\nname = "{number}"\n'
        files[f"steps/{number}/instruction.md"] = "nothing\n"
    return {"task.toml": toml, **files}


class Bench:
    """A namespace in which trials and chains run one after another."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.core, self.custom = client.CoreV1Api(), client.CustomObjectsApi()
        self.namespace = f"benchmark-{uuid.uuid4().hex[:6]}"
        self.core.create_namespace({"metadata": {"name": self.namespace}})
        time.sleep(2)

    def close(self) -> None:
        """Remove the namespace."""
        self.core.delete_namespace(self.namespace)

    def trial(self, name: str) -> float:
        """Run a trial; return its seconds, from the first step pod's creation to the end of the last container."""
        body = {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": "MultiStepTrial",
            "metadata": {"name": name},
            "spec": {
                "agent": {"name": "nop"},
                "workspace": {"size": "64Mi"},
                "task": {"inline": {"files": task(self.steps)}},
            },
        }
        self.custom.create_namespaced_custom_object(GROUP, VERSION, self.namespace, PLURAL, body)
        begin = 0.0
        for pod in self.events(f"multistep.dev/trial={name}"):
            suffix = pod.metadata.name.split("-", 2)[-1]
            if suffix.endswith("step-1") and not begin:
                begin = time.monotonic()
            if suffix.endswith(f"verifier-{self.steps}") and ended(pod):
                return time.monotonic() - begin
        raise RuntimeError("the watch ended")

    def manifests(self, name: str) -> list[dict[str, Any]]:
        """Return the pods of a finished trial as plain manifests, in their order, for a chain of their own."""
        found = self.core.list_namespaced_pod(self.namespace, label_selector=f"multistep.dev/trial={name}").items
        pods = [
            client.ApiClient().sanitize_for_serialization(pod) for pod in found if "prepare" not in pod.metadata.name
        ]
        pods.sort(
            key=lambda pod: (
                int(pod["metadata"]["labels"]["multistep.dev/step-index"]),
                pod["metadata"]["labels"]["multistep.dev/role"],
            )
        )
        for pod in pods:
            pod["metadata"] = {"name": pod["metadata"]["name"]}
            pod["spec"].pop("nodeName", None)
            pod.pop("status", None)
        return pods

    def chain(self, manifests: list[dict[str, Any]], over: Callable[[Any], bool]) -> float:
        """Run the pods one after another, each created when the one before is over; return the seconds."""
        label = uuid.uuid4().hex[:8]
        pods = []
        for number, manifest in enumerate(manifests):
            pod = copy.deepcopy(manifest)
            pod["metadata"] = {"name": f"chain-{label}-{number}", "labels": {"chain": label}}
            # Its own records: the runner refuses to run a step twice.
            for mount in pod["spec"]["containers"][0]["volumeMounts"]:
                if mount["mountPath"] == "/.multistep/run":
                    mount["subPath"] = f"run/chain-{label}-{number}"
            pods.append(pod)
        begin = time.monotonic()
        self.core.create_namespaced_pod(self.namespace, pods[0])
        current = 0
        for pod in self.events(f"chain={label}"):
            if pod.metadata.name == f"chain-{label}-{current}" and over(pod):
                current += 1
                if current == len(pods):
                    return time.monotonic() - begin
                self.core.create_namespaced_pod(self.namespace, pods[current])
        raise RuntimeError("the watch ended")

    def events(self, selector: str) -> Any:
        """Yield pods as the watch tells of them."""
        for event in watch.Watch().stream(
            self.core.list_namespaced_pod, self.namespace, label_selector=selector, timeout_seconds=300
        ):
            yield event["object"]


def ended(pod: Any) -> bool:
    """Whether the pod's containers have ended, by their states."""
    states = pod.status.container_statuses or []
    return bool(states) and all(state.state.terminated for state in states)


def phase_over(pod: Any) -> bool:
    """Whether the pod is over, by its phase."""
    return pod.status.phase in ("Succeeded", "Failed")


def main() -> None:
    """Run the benchmark and print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=5)
    arguments = parser.parse_args()
    config.load_kube_config()
    bench = Bench(arguments.steps)
    seconds: dict[str, list[float]] = {"trial": [], "states": [], "phases": []}
    try:
        bench.trial("warmup")
        for number in range(arguments.rounds):
            name = f"round{number}"
            seconds["trial"].append(bench.trial(name))
            manifests = bench.manifests(name)
            seconds["states"].append(bench.chain(manifests, ended))
            seconds["phases"].append(bench.chain(manifests, phase_over))
    finally:
        bench.close()
    medians = {key: statistics.median(values) for key, values in seconds.items()}
    pods = 2 * arguments.steps
    print(f"{arguments.rounds} rounds of {arguments.steps} steps ({pods} pods), medians:")
    print(f"  trial                              {medians['trial']:6.2f} s  {medians['trial'] / pods:5.2f} s a pod")
    print(f"  bare chain, by container states    {medians['states']:6.2f} s  {medians['states'] / pods:5.2f} s a pod")
    print(f"  bare chain, by pod phases          {medians['phases']:6.2f} s  {medians['phases'] / pods:5.2f} s a pod")
    ratios = [
        [trial / other for trial, other in zip(seconds["trial"], seconds[key], strict=True)]
        for key in ("states", "phases")
    ]
    print(f"  trial / chain by states            {statistics.median(ratios[0]):6.2f}    (aim: at most 1.05)")
    print(f"  trial / chain by phases            {statistics.median(ratios[1]):6.2f}    (aim: at most 0.55)")
    print(json.dumps({key: [round(value, 2) for value in values] for key, values in seconds.items()}))


if __name__ == "__main__":
    main()
