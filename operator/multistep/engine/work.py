"""One pass of the engine over one trial: the status in the making, and what is to be done."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

from multistep.api.status import (
    TERMINAL_PHASES,
    ErrorStatus,
    MultiStepTrialStatus,
    Phase,
    StepPhase,
    StepStatus,
    WorkspaceStatus,
)
from multistep.engine.conditions import Reason
from multistep.engine.types import Action, CreateObject, Decision, DeletePod, Event, Observed, Settings, Trial
from multistep.pods.common import Manifest
from multistep.pods.context import TrialContext
from multistep.pods.names import Role
from multistep.pods.network import policy_objects
from multistep.pods.outcome import ObservedPod
from multistep.task import NetworkPolicy, Task

MAXIMUM_MESSAGE = 600
"""Characters of a message in the status; the status of a hundred steps must stay readable."""


def awaited_pod(status: MultiStepTrialStatus) -> str | None:
    """Return the name of the pod whose end the trial waits for: the one pod that must be looked at even when it is over."""
    for regrade in status.regrades:
        if regrade.completion_time is None:
            return regrade.pod_name
    for step in status.steps:
        if step.phase is StepPhase.VERIFYING:
            return step.verifier_pod_name
        if step.phase is StepPhase.RUNNING:
            return step.pod_name or step.setup_pod_name
    workspace = status.workspace
    return workspace.prepare_pod_name if workspace is not None and workspace.workdir is None else None


def shorten(text: str, limit: int = MAXIMUM_MESSAGE) -> str:
    """Cut a message in the middle, keeping its start and its end."""
    if len(text) <= limit:
        return text
    half = (limit - 5) // 2
    return f"{text[:half]} ... {text[-half:]}"


class Pass:
    """The working state of one call of `decide`. Nothing of it outlives the call."""

    def __init__(self, trial: Trial, observed: Observed, now: datetime, settings: Settings) -> None:
        self.trial = trial
        self.observed = observed
        self.now = now.replace(microsecond=0)
        self.settings = settings
        self.status: MultiStepTrialStatus = trial.status.model_copy(deep=True)
        self.actions: list[Action] = []
        self.events: list[Event] = []
        self.wake_at: datetime | None = None

    @property
    def ended(self) -> bool:
        """Whether the trial is in a terminal phase."""
        return self.status.phase in TERMINAL_PHASES

    @property
    def workspace(self) -> WorkspaceStatus:
        """The volume's status; a trial that started has one."""
        assert self.status.workspace is not None
        return self.status.workspace

    def context(self, task: Task) -> TrialContext:
        """Return what manifests are made from."""
        return TrialContext(
            identity=self.trial.identity,
            spec=self.trial.spec,
            task=task,
            workspace=self.workspace,
            attempt=self.status.attempt,
            operator_image=self.settings.operator_image,
            network_engine=self.settings.network_engine,
        )

    def pod(self, name: str) -> ObservedPod | None:
        """Return a pod by its name."""
        return next((pod for pod in self.observed.pods if pod.name == name), None)

    def running_pods(self) -> list[ObservedPod]:
        """Return the pods, of any attempt, that are not over and that nobody deletes yet; the one of a regrade is not among them."""
        return [pod for pod in self.observed.pods if not pod.over and not pod.deleting and pod.role is not Role.REGRADE]

    def create_pod(self, task: Task, manifest: Manifest, network: NetworkPolicy) -> None:
        """Ask for a pod, and before it for what restricts its network."""
        objects = policy_objects(self.context(task), network)
        self.actions += [CreateObject(manifest) for manifest in (*objects, manifest)]

    def event(self, kind: Literal["Normal", "Warning"], reason: Reason, message: str) -> None:
        """Send an event once the status is written."""
        self.events.append(Event(kind, reason.value, shorten(message, 1000)))

    def wake_after(self, moment: datetime) -> None:
        """Look at the trial again at this moment, if nothing wakes it earlier."""
        self.wake_at = moment if self.wake_at is None else min(self.wake_at, moment)

    def wake_in(self, seconds: float) -> None:
        """Look at the trial again after this many seconds."""
        self.wake_after(self.now + timedelta(seconds=seconds))

    def expired(self, start: datetime, seconds: float) -> bool:
        """Whether `seconds` have passed since `start`; if not, wake up when they have."""
        deadline = start + timedelta(seconds=seconds)
        if self.now >= deadline:
            return True
        self.wake_after(deadline)
        return False

    def set_phase(self, phase: Phase, reason: Reason, message: str) -> None:
        """Set phase, reason and message, the three that people read first."""
        self.status.phase = phase
        self.status.reason = reason.value
        self.status.message = shorten(message)

    def step_error(self, step: StepStatus, error_type: str, message: str, pod: str | None) -> ErrorStatus:
        """Return an error of a step."""
        return ErrorStatus(type=error_type, message=shorten(message), step=step.name, pod=pod)

    def step_message(self, step: StepStatus, what: str) -> str:
        """Return what the status says of a step at work."""
        return f"step {self.status.step} ({step.name}): {what}"

    def delete_running_pods(self) -> None:
        """Delete what still runs; pods that are over stay, for their logs."""
        self.actions += [DeletePod(pod.name) for pod in self.running_pods()]

    def current_step(self) -> StepStatus | None:
        """Return the first step that has not ended."""
        ended = (StepPhase.COMPLETED, StepPhase.FAILED, StepPhase.SKIPPED)
        return next((step for step in self.status.steps if step.phase not in ended), None)

    def decision(self) -> Decision:
        """Return the result of the pass."""
        if any(isinstance(action, CreateObject) for action in self.actions):
            self.status.waiting_since = None
        return Decision(self.status, tuple(self.actions), tuple(self.events), self.wake_at)
