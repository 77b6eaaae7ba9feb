"""What goes into a decision and what comes out of it. Plain data: no clock, no I/O."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from multistep.api.spec import MultiStepTrialSpec
from multistep.api.status import MultiStepTrialStatus
from multistep.pods.common import Manifest
from multistep.pods.names import TrialIdentity
from multistep.pods.network_engine import NetworkEngine
from multistep.pods.outcome import ObservedPod
from multistep.task import Problem, Task


@dataclass(frozen=True)
class RegradeRequest:
    """That a verifier be run again: annotations of the trial, so that GitOps can ask, too.

    Attributes:
        requested_at: value of `multistep.dev/regrade-requested-at`; a new value is a new request.
        step: value of `multistep.dev/regrade-step`; None means the last step that was attempted.
    """

    requested_at: str
    step: str | None = None


@dataclass(frozen=True)
class Trial:
    """A MultiStepTrial as it was read."""

    identity: TrialIdentity
    generation: int
    spec: MultiStepTrialSpec
    status: MultiStepTrialStatus
    regrade: RegradeRequest | None = None


@dataclass(frozen=True)
class TaskReady:
    """The task, from its snapshot or, before the trial started, from its source."""

    task: Task
    bundle: bytes | None = None
    snapshotted: bool = False
    warnings: tuple[Problem, ...] = ()


@dataclass(frozen=True)
class TaskInvalid:
    """The task cannot run, with all the reasons."""

    problems: tuple[Problem, ...]


@dataclass(frozen=True)
class TaskUnavailable:
    """The task's source is not there (yet)."""

    message: str


@dataclass(frozen=True)
class Observed:
    """What was found in the cluster: the task, and of the trial's own pods those that run and the one that the status waits for."""

    task: TaskReady | TaskInvalid | TaskUnavailable
    pods: tuple[ObservedPod, ...] = ()


@dataclass(frozen=True)
class CreateObject:
    """Create a child; that it exists already, as a child of the same trial, is success."""

    manifest: Manifest


@dataclass(frozen=True)
class DeletePod:
    """Delete a pod; that it is gone is success."""

    name: str


@dataclass(frozen=True)
class DeletePodsOfAttempt:
    """Delete all pods of an attempt that is given up, those that are over among them."""

    attempt: int


@dataclass(frozen=True)
class DeleteClaim:
    """Delete a claim of an attempt that is given up."""

    name: str


@dataclass(frozen=True)
class SetClaimOwners:
    """Make a claim go with the trial, or outlive it."""

    name: str
    owners: tuple[Manifest, ...]


@dataclass(frozen=True)
class DeleteTrial:
    """Delete the trial itself: its time to live is over."""


Action = CreateObject | DeletePod | DeletePodsOfAttempt | DeleteClaim | SetClaimOwners | DeleteTrial


@dataclass(frozen=True)
class Event:
    """An event to show in `kubectl describe`, sent after the status was written."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


@dataclass(frozen=True)
class Settings:
    """Settings of the operator that decisions depend on."""

    operator_image: str
    network_engine: NetworkEngine = NetworkEngine.NONE


@dataclass(frozen=True)
class Decision:
    """What to do, in this order: create, write the status if it changed, remove, send the events.

    A crash anywhere in between is safe. What was created is found again by its name. What is removed is removed only after the status
    says why: a pod that is missing without that is a fault of the infrastructure.
    """

    status: MultiStepTrialStatus
    actions: tuple[Action, ...] = ()
    events: tuple[Event, ...] = ()
    wake_at: datetime | None = None

    @property
    def creations(self) -> tuple[Action, ...]:
        """The actions to take before the status is written."""
        return tuple(action for action in self.actions if isinstance(action, CreateObject | SetClaimOwners))

    @property
    def removals(self) -> tuple[Action, ...]:
        """The actions to take after the status is written."""
        return tuple(action for action in self.actions if not isinstance(action, CreateObject | SetClaimOwners))


@dataclass(frozen=True)
class Rejection:
    """The API server refused to create a child."""

    kind: str
    name: str
    message: str
    permanent: bool
    """True where trying again cannot help (the manifest is invalid); False for quotas and admission policies."""
