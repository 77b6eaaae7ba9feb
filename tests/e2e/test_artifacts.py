"""Artifacts and collect hooks, on real pods."""

import json

from .conftest import PASS, Namespace


def test_artifacts_of_task_trial_and_step_lie_on_the_volume_with_a_manifest(namespace: Namespace) -> None:
    toml = 'artifacts = ["/app/report.txt", { source = "/app/data", destination = "renamed", exclude = ["*.log"] }, "/app/missing"]'
    toml += '\n[[verifier.collect]]\ncommand = "cp /app/report.txt /logs/artifacts/by-hook"\n[agent]\ntimeout_sec = 2'
    solve = "echo r > /app/report.txt; mkdir -p /app/data /opt/x; echo d > /app/data/keep; echo l > /app/data/drop.log; echo y > /opt/x/y; sleep 100\n"
    steps = {"a": {"config": 'artifacts = [{ source = "/opt/x", destination = "deep/x" }]', "solution/solve.sh": solve}}
    files = namespace.files(steps, toml=toml, tests__test_sh="echo t > /app/late; " + PASS)
    namespace.create(files, artifacts=[{"source": "/app/late"}])
    status = namespace.finish()
    assert (status["phase"], status["steps"][0]["error"]["type"]) == ("Succeeded", "AgentTimeoutError")
    output = namespace.read_volume(
        "cd /volume/trial/steps/a/artifacts && find . -type f | sort && cat manifest.json",
        status["workspace"]["claimName"],
    )
    *listing, manifest = output.splitlines()
    assert listing == [
        "./app/report.txt",
        "./deep/x/y",
        "./logs/artifacts/by-hook",
        "./manifest.json",
        "./renamed/keep",
    ]
    assert [(entry["source"], entry["status"]) for entry in json.loads(manifest)] == [
        ("/logs/artifacts", "ok"),
        ("/app/report.txt", "ok"),
        ("/app/data", "ok"),
        ("/app/missing", "failed"),
        ("/app/late", "failed"),
        ("/opt/x", "ok"),
    ]
