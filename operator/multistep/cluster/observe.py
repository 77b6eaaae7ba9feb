"""Read a trial, its task and its own pods, always from the API server and never from a cache of events."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from multistep.api.spec import MultiStepTrialSpec
from multistep.api.status import TERMINAL_PHASES, MultiStepTrialStatus
from multistep.cluster import paths
from multistep.cluster.client import ApiError, Client
from multistep.cluster.tasks import TaskReader
from multistep.engine.regrade import regrade_wanted
from multistep.engine.types import Observed, RegradeRequest, TaskUnavailable, Trial
from multistep.engine.work import awaited_pod
from multistep.pods.common import MAIN_CONTAINER
from multistep.pods.names import ANNOTATION_REGRADE, ANNOTATION_REGRADE_STEP, LABEL_TRIAL_UID, Role, TrialIdentity
from multistep.pods.outcome import ObservedPod, observe_pod
from multistep.pods.reports import HandedReward, ReportError, VerifierReport, parse_report, reward_from_log
from multistep.pods.verifier import VERIFIER_CONTAINER

_LOG_LINE_BYTES = 40
"""A lower bound of what a line of the reward's frame carries; more lines than needed do no harm."""


class InvalidTrialError(ValueError):
    """The resource cannot be read: a spec that the CRD let through, or a status that somebody else wrote.

    Attributes:
        document: the resource.
        status: its status, where that can be read.
    """

    def __init__(self, document: dict[str, Any], status: MultiStepTrialStatus | None, message: str) -> None:
        super().__init__(message)
        self.document = document
        self.status = status


@dataclass(frozen=True)
class Observation:
    """A trial as it stands in the API server, with the document it was read from (for the write of its status)."""

    trial: Trial
    observed: Observed
    document: dict[str, Any]


class Observer:
    """Reads trials and what belongs to them."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._tasks = TaskReader(client)

    async def observe(self, namespace: str, name: str) -> Observation | None:
        """Read a trial; None where it is gone or on its way out.

        Raises:
            InvalidTrialError: spec or status cannot be read.
            ApiError: the API server refuses or fails.
        """
        document = await self._client.get_or_none(paths.trial(namespace, name))
        if document is None or "deletionTimestamp" in document["metadata"]:
            return None
        trial = parse_trial(document)
        if trial.status.phase in TERMINAL_PHASES and not regrade_wanted(trial):
            self._tasks.forget(trial.identity.uid)
            task: Any = TaskUnavailable("the trial ended")
        else:
            task = await self._tasks.read(trial)
        pods = [await self._with_reward(trial, pod) for pod in await self._pods(trial)]
        return Observation(trial, Observed(task, tuple(pods)), document)

    async def _pods(self, trial: Trial) -> list[ObservedPod]:
        """Read the pods that run, and the one that the status waits for.

        Not all of them: the pods of steps long past stay for their logs, and a trial of a hundred steps would read megabytes in each
        pass. Only pods that this very trial owns count; labels alone could be anybody's.
        """
        identity = trial.identity
        selectors = {
            "labelSelector": f"{LABEL_TRIAL_UID}={identity.uid}",
            "fieldSelector": "status.phase!=Succeeded,status.phase!=Failed",
        }
        found = (await self._client.get(paths.core(identity.namespace, "pods"), selectors))["items"]
        awaited = awaited_pod(trial.status)
        if awaited is not None and all(pod["metadata"]["name"] != awaited for pod in found):
            ended = await self._client.get_or_none(paths.core(identity.namespace, "pods", awaited))
            found += [ended] if ended is not None else []
        return [pod for pod in map(observe_pod, found) if pod is not None and pod.owner_uid == identity.uid]

    async def _with_reward(self, trial: Trial, pod: ObservedPod) -> ObservedPod:
        """Add the reward of a verifier pod whose reward file was too large for a termination message."""
        container = VERIFIER_CONTAINER if pod.role is Role.STEP else MAIN_CONTAINER
        reward = _reward_in_log(trial, pod, container)
        if reward is None or reward.sha256 is None:
            return pod
        path = paths.core(trial.identity.namespace, "pods", pod.name) + "/log"
        lines = reward.size * 4 // 3 // _LOG_LINE_BYTES + 20
        try:
            log = await self._client.get_text(path, {"container": container, "tailLines": str(lines)})
        except ApiError as error:
            if error.code not in (400, 404):
                raise
            return pod
        content = reward_from_log(log, reward.sha256)
        if content is None or hashlib.sha256(content).hexdigest() != reward.sha256:
            return pod
        return replace(pod, reward_from_log=content)


def parse_trial(document: dict[str, Any]) -> Trial:
    """Parse a MultiStepTrial.

    Raises:
        InvalidTrialError: spec or status is not what the models allow; the message names the field.
    """
    metadata = document["metadata"]
    status = None
    try:
        status = MultiStepTrialStatus.model_validate(document.get("status") or {})
        spec = MultiStepTrialSpec.model_validate(document.get("spec") or {})
    except ValidationError as error:
        texts = [
            f"{'.'.join(str(part) for part in item['loc'])}: {item['msg']}"
            for item in error.errors(include_url=False, include_input=False)
        ]
        raise InvalidTrialError(document, status, f"{error.title}: {'; '.join(texts)}") from error
    identity = TrialIdentity(metadata["namespace"], metadata["name"], metadata["uid"])
    return Trial(identity, metadata.get("generation", 0), spec, status, _regrade_request(metadata))


def _regrade_request(metadata: dict[str, Any]) -> RegradeRequest | None:
    annotations = metadata.get("annotations") or {}
    requested_at = annotations.get(ANNOTATION_REGRADE)
    return RegradeRequest(requested_at, annotations.get(ANNOTATION_REGRADE_STEP)) if requested_at else None


def _reward_in_log(trial: Trial, pod: ObservedPod, container: str) -> HandedReward | None:
    """Return the reward of the pod that the trial waits for, where its content stands in the log."""
    if not pod.over or pod.name != awaited_pod(trial.status):
        return None
    verifier = pod.container(container)
    try:
        reward = parse_report(VerifierReport, verifier.message if verifier else None).reward
    except ReportError:
        return None
    return reward if reward is not None and reward.in_log else None
