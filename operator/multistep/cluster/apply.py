"""Carry out what the engine decided: create and remove children, write the status, send events."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any

from multistep.api.common import API_VERSION, KIND
from multistep.api.status import MultiStepTrialStatus, format_time
from multistep.cluster import paths
from multistep.cluster.client import ApiError, Client
from multistep.engine.types import (
    Action,
    CreateObject,
    DeleteClaim,
    DeletePod,
    DeletePodsOfAttempt,
    DeleteTrial,
    Event,
    Rejection,
    SetClaimOwners,
)
from multistep.pods.names import LABEL_ATTEMPT, LABEL_TRIAL_UID, MANAGER, TrialIdentity
from multistep.pods.outcome import controller_uid

logger = logging.getLogger(__name__)


class Applier:
    """Writes to the API server."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def act(self, trial: TrialIdentity, actions: tuple[Action, ...]) -> Rejection | None:
        """Take the actions in order; stop at the first that Kubernetes refuses for good reason, and return its words.

        Raises:
            ApiError: the API server fails in a way that is worth another try.
        """
        for action in actions:
            rejection = await self._act(trial, action)
            if rejection is not None:
                return rejection
        return None

    async def write_status(self, document: dict[str, Any], status: MultiStepTrialStatus) -> bool:
        """Write the status of a trial that was read as `document`, if it changed; True if it did.

        Raises:
            ApiError: with code 409 when the trial changed since it was read; the caller looks again.
        """
        written = status.to_json()
        if written == document.get("status"):
            return False
        metadata = document["metadata"]
        path = paths.trial(metadata["namespace"], metadata["name"]) + "/status"
        await self._client.replace(path, {**document, "status": written})
        return True

    async def send_events(self, trial: TrialIdentity, events: tuple[Event, ...], now: datetime) -> None:
        """Send events; one that is lost is only logged."""
        for event in events:
            try:
                await self._client.create(paths.core(trial.namespace, "events"), _event(trial, event, now))
            except ApiError as error:
                logger.warning("%s/%s: event %s was not taken: %s", trial.namespace, trial.name, event.reason, error)

    async def _act(self, trial: TrialIdentity, action: Action) -> Rejection | None:
        namespace = trial.namespace
        match action:
            case CreateObject(manifest):
                return await self._create(trial, manifest)
            case DeletePod(name):
                await self._client.delete(paths.core(namespace, "pods", name))
            case DeletePodsOfAttempt(attempt):
                selector = f"{LABEL_TRIAL_UID}={trial.uid},{LABEL_ATTEMPT}={attempt}"
                await self._client.delete(paths.core(namespace, "pods"), query={"labelSelector": selector})
            case DeleteClaim(name):
                await self._client.delete(paths.core(namespace, "persistentvolumeclaims", name))
            case SetClaimOwners(name, owners):
                await self._set_owners(paths.core(namespace, "persistentvolumeclaims", name), list(owners))
            case DeleteTrial():
                options = {"propagationPolicy": "Background", "preconditions": {"uid": trial.uid}}
                await self._client.delete(paths.trial(namespace, trial.name), options)
        return None

    async def _set_owners(self, path: str, owners: list[dict[str, Any]]) -> None:
        try:
            await self._client.patch(path, {"metadata": {"ownerReferences": owners}})
        except ApiError as error:
            if error.code != 404:
                raise

    async def _create(self, trial: TrialIdentity, manifest: dict[str, Any]) -> Rejection | None:
        kind, name = manifest["kind"], manifest["metadata"]["name"]
        try:
            await self._client.create(paths.child(trial.namespace, kind), manifest)
        except ApiError as error:
            if error.code == 409 and error.reason == "AlreadyExists":
                return await self._check_existing(trial, kind, name)
            if error.code in (400, 413, 422):
                return Rejection(kind, name, str(error), permanent=True)
            if error.code == 403:
                return Rejection(kind, name, str(error), permanent=False)
            raise
        return None

    async def _check_existing(self, trial: TrialIdentity, kind: str, name: str) -> Rejection | None:
        """Accept what an earlier pass of this trial made; refuse what is somebody else's."""
        existing = await self._client.get_or_none(paths.child(trial.namespace, kind, name))
        if existing is None:
            return Rejection(kind, name, "it existed a moment ago and is gone now", permanent=False)
        labels = existing["metadata"].get("labels") or {}
        retained = kind == "PersistentVolumeClaim" and labels.get(LABEL_TRIAL_UID) == trial.uid
        if controller_uid(existing) == trial.uid or retained:
            return None
        return Rejection(kind, name, "an object of this name exists and does not belong to this trial", permanent=True)


def _event(trial: TrialIdentity, event: Event, now: datetime) -> dict[str, Any]:
    moment = format_time(now)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": f"{trial.name[:200]}.", "namespace": trial.namespace},
        "involvedObject": {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "namespace": trial.namespace,
            "name": trial.name,
            "uid": trial.uid,
        },
        "type": event.type,
        "reason": event.reason,
        "message": event.message,
        "source": {"component": MANAGER},
        "reportingComponent": MANAGER,
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "count": 1,
    }
