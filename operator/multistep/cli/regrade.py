"""`multistep regrade`: ask for a verifier to be run again on what a trial left."""

from __future__ import annotations

import asyncio
import warnings
from datetime import UTC, datetime
from typing import Any

from kubernetes.aio import config

from multistep.cluster import paths
from multistep.cluster.client import ApiError, Client
from multistep.pods.names import ANNOTATION_REGRADE, ANNOTATION_REGRADE_STEP


class RegradeRequestError(Exception):
    """The request could not be made; the message says why."""


def default_namespace(context: str | None) -> str:
    """Return the namespace of the kubeconfig's context, as kubectl takes it."""
    try:
        contexts, active = config.list_kube_config_contexts()  # type: ignore[no-untyped-call]
    except config.ConfigException:
        return "default"
    chosen = next((item for item in contexts if item["name"] == context), active)
    return str(chosen.get("context", {}).get("namespace") or "default")


def request_regrade(name: str, namespace: str, step: str | None, context: str | None) -> str:
    """Annotate a trial, and return the request's value.

    Raises:
        RegradeRequestError: there is no such trial, it is still running, it has no such step, or the cluster cannot be reached.
    """
    try:
        return asyncio.run(_request(name, namespace, step, context))
    except ApiError as error:
        raise RegradeRequestError(str(error)) from error
    except (OSError, config.ConfigException) as error:
        raise RegradeRequestError(f"the cluster cannot be reached: {error}") from error


async def _request(name: str, namespace: str, step: str | None, context: str | None) -> str:
    with warnings.catch_warnings(action="ignore"):
        client = await Client.connect(context)
    try:
        path = paths.trial(namespace, name)
        _check(await client.get(path), step)
        requested_at = datetime.now(UTC).isoformat(timespec="milliseconds")
        annotations = {ANNOTATION_REGRADE: requested_at, ANNOTATION_REGRADE_STEP: step}
        await client.patch(path, {"metadata": {"annotations": annotations}})
        return requested_at
    finally:
        await client.close()


def _check(trial: dict[str, Any], step: str | None) -> None:
    """Say at once what the operator would refuse a moment later."""
    status = trial.get("status") or {}
    if "completionTime" not in status:
        raise RegradeRequestError(f"the trial is still {status.get('phase', 'Pending')}: wait until it has ended")
    names = [item["name"] for item in status.get("steps") or []]
    if step is not None and step not in names:
        raise RegradeRequestError(f"the trial has no step {step!r}; its steps: {', '.join(map(repr, names))}")
