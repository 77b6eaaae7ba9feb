"""From a Pod object to what the engine needs to know of it: which containers ended and how, and why others do not start."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from multistep.pods.names import LABEL_ATTEMPT, LABEL_ROLE, LABEL_STEP_INDEX, Role

INFRASTRUCTURE_REASONS = frozenset(
    {
        "Evicted",
        "NodeLost",
        "NodeShutdown",
        "Preempting",
        "Terminated",
        "Shutdown",
        "NodeAffinity",
        "UnexpectedAdmissionError",
    }
)
"""Reasons in `status.reason` of a failed pod that lie with the node, not with what ran in the pod."""


@dataclass(frozen=True)
class ContainerOutcome:
    """State of one container."""

    name: str
    running: bool = False
    started_at: datetime | None = None
    finished_at: datetime | None = None
    exit_code: int | None = None
    reason: str | None = None
    message: str | None = None
    image: str = ""

    @property
    def terminated(self) -> bool:
        """Whether the container ended."""
        return self.exit_code is not None

    @property
    def started(self) -> bool:
        """Whether the container ever ran."""
        return self.running or self.terminated


@dataclass(frozen=True)
class ObservedPod:
    """One pod of the trial, as far as the engine looks at it."""

    name: str
    owner_uid: str | None
    role: Role
    attempt: int
    step_index: int | None
    created_at: datetime
    phase: str
    deleting: bool = False
    reason: str | None = None
    message: str | None = None
    node_name: str | None = None
    disruption: str | None = None
    unschedulable: str | None = None
    init_containers: tuple[ContainerOutcome, ...] = ()
    containers: tuple[ContainerOutcome, ...] = field(default=())
    reward_from_log: bytes | None = None

    @property
    def over(self) -> bool:
        """Whether nothing of the pod runs any more, by its containers: they know a second before the phase does."""
        if self.phase in ("Succeeded", "Failed"):
            return True
        return bool(self.containers) and all(container.terminated for container in self.containers)

    @property
    def phase_over(self) -> bool:
        """Whether the phase says so too; only then does Kubernetes give a ReadWriteOncePod claim to another pod."""
        return self.phase in ("Succeeded", "Failed")

    @property
    def started(self) -> bool:
        """Whether all containers of the pod have started."""
        return self.over or (bool(self.containers) and all(container.started for container in self.containers))

    @property
    def waiting_since(self) -> datetime | None:
        """Since when the pod's next container has been waiting to start; None while an init container runs."""
        if any(container.running for container in self.init_containers):
            return None
        ended = [container.finished_at for container in self.init_containers if container.finished_at is not None]
        return max([self.created_at, *ended])

    @property
    def infrastructure_fault(self) -> str | None:
        """The sentence that says why the pod's end lies with the infrastructure; None where it does not."""
        if self.disruption is not None:
            return self.disruption
        if self.phase == "Failed" and self.reason in INFRASTRUCTURE_REASONS:
            return f"{self.reason}: {self.message or 'no further word from Kubernetes'}"
        if self.deleting and not self.over:
            return "somebody or something deleted the pod"
        return None

    def container(self, name: str) -> ContainerOutcome | None:
        """Return a container by name, init containers included."""
        for candidate in (*self.init_containers, *self.containers):
            if candidate.name == name:
                return candidate
        return None


def observe_pod(pod: dict[str, Any]) -> ObservedPod | None:
    """Read a Pod object; None where it lacks the operator's labels."""
    metadata, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
    labels = metadata.get("labels") or {}
    try:
        role = Role(labels[LABEL_ROLE])
        attempt = int(labels[LABEL_ATTEMPT])
        step_index = int(labels[LABEL_STEP_INDEX]) if LABEL_STEP_INDEX in labels else None
    except (KeyError, ValueError):
        return None
    conditions = {condition["type"]: condition for condition in status.get("conditions") or []}
    scheduled = conditions.get("PodScheduled", {})
    disruption = conditions.get("DisruptionTarget", {})
    return ObservedPod(
        name=metadata["name"],
        owner_uid=controller_uid(pod),
        role=role,
        attempt=attempt,
        step_index=step_index,
        created_at=parse_time(metadata["creationTimestamp"]),
        phase=status.get("phase", "Pending"),
        deleting="deletionTimestamp" in metadata,
        reason=status.get("reason"),
        message=status.get("message"),
        node_name=spec.get("nodeName"),
        disruption=_condition_text(disruption) if disruption.get("status") == "True" else None,
        unschedulable=_condition_text(scheduled) if scheduled.get("status") == "False" else None,
        init_containers=_containers(spec.get("initContainers"), status.get("initContainerStatuses")),
        containers=_containers(spec.get("containers"), status.get("containerStatuses")),
    )


def controller_uid(document: dict[str, Any]) -> str | None:
    """Return the UID of an object's controller."""
    owners = document["metadata"].get("ownerReferences") or []
    return next((owner["uid"] for owner in owners if owner.get("controller")), None)


def parse_time(text: str) -> datetime:
    """Parse a time of the Kubernetes API."""
    return datetime.fromisoformat(text)


def _condition_text(condition: dict[str, Any]) -> str:
    return f"{condition.get('reason', 'Unknown')}: {condition.get('message', '')}".rstrip(": ")


def _containers(
    specs: list[dict[str, Any]] | None, statuses: list[dict[str, Any]] | None
) -> tuple[ContainerOutcome, ...]:
    by_name = {status["name"]: status for status in statuses or []}
    return tuple(_container(spec, by_name.get(spec["name"], {})) for spec in specs or [])


def _container(spec: dict[str, Any], status: dict[str, Any]) -> ContainerOutcome:
    state = status.get("state") or {}
    image = spec.get("image", "")
    if "terminated" in state:
        ended = state["terminated"]
        return ContainerOutcome(
            name=spec["name"],
            started_at=parse_time(ended["startedAt"]) if ended.get("startedAt") else None,
            finished_at=parse_time(ended["finishedAt"]) if ended.get("finishedAt") else None,
            exit_code=ended.get("exitCode", -1),
            reason=ended.get("reason"),
            message=ended.get("message"),
            image=image,
        )
    if "running" in state:
        started = state["running"].get("startedAt")
        return ContainerOutcome(
            name=spec["name"], running=True, started_at=parse_time(started) if started else None, image=image
        )
    waiting = state.get("waiting") or {}
    return ContainerOutcome(
        name=spec["name"], reason=waiting.get("reason"), message=waiting.get("message"), image=image
    )
