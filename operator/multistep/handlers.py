"""kopf: what wakes the engine up, and nothing else.

`on.event` handlers alone: create, update, timer and daemon handlers would add finalizers and annotations to the objects, and an uninstalled
operator would leave trials that cannot be deleted.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from typing import Any, cast

import kopf

from multistep.api.common import GROUP, KIND, PLURAL, VERSION
from multistep.cluster.client import Client
from multistep.engine.types import Settings
from multistep.pods.names import LABEL_TRIAL_UID
from multistep.reconcile import Reconciler, TrialKey
from multistep.workqueue import WorkQueue

STUCK_SECONDS = 300.0
"""A key that waits or works longer than this means that the operator does not get on: the liveness probe fails."""


class StuckError(Exception):
    """The operator does not get on."""


def register(registry: kopf.OperatorRegistry, queue: WorkQueue[TrialKey]) -> None:
    """Register the handlers that wake trials up."""

    @kopf.on.login(registry=registry)
    def login(**arguments: Any) -> Any:
        return kopf.login_via_client(**arguments)

    @kopf.on.event(GROUP, VERSION, PLURAL, registry=registry)
    async def trial_changed(namespace: str | None, name: str | None, **_: Any) -> None:
        if namespace is not None and name is not None:
            queue.add(TrialKey(namespace, name))

    @kopf.on.event("v1", "pods", registry=registry)
    async def pod_changed(namespace: str | None, meta: kopf.Meta, **_: Any) -> None:
        for owner in meta.get("ownerReferences") or []:
            if namespace is not None and owner.get("kind") == KIND and owner.get("controller"):
                queue.add(TrialKey(namespace, owner["name"]))

    @kopf.on.probe(registry=registry)
    async def oldest_pass_seconds(**_: Any) -> float:
        age = queue.oldest_age()
        if age > STUCK_SECONDS:
            raise StuckError(f"a trial has been waiting for {age:.0f} s")
        return round(age, 1)


def operator_settings() -> kopf.OperatorSettings:
    """Return kopf's settings: no peering, no events of its own, no scanning, pods filtered by the API server."""
    settings = kopf.OperatorSettings()
    settings.peering.standalone = True
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.watching.label_selectors["v1", "pods"] = LABEL_TRIAL_UID
    return settings


async def run(
    namespaces: Sequence[str],
    workers: int,
    settings: Settings,
    liveness_endpoint: str | None,
) -> None:
    """Run the operator until it is told to stop.

    Args:
        namespaces: the namespaces to look at; none means all.
        workers: how many trials are worked on at the same time.
        settings: settings of the engine.
        liveness_endpoint: URL to serve the probe on, such as http://0.0.0.0:8080/healthz.
    """
    client = await Client.connect()
    queue = WorkQueue(Reconciler(client, settings).reconcile)
    registry = kopf.OperatorRegistry()
    register(registry, queue)
    working = asyncio.create_task(queue.run(workers))
    try:
        await kopf.operator(
            registry=registry,
            settings=operator_settings(),
            # kopf would make one of the user's name, which the container's user does not have.
            identity=cast(Any, socket.gethostname()),
            standalone=True,
            clusterwide=not namespaces,
            namespaces=tuple(namespaces),
            liveness_endpoint=liveness_endpoint,
        )
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        await client.close()
