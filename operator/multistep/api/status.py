"""`status` of a MultiStepTrial: what the engine decided, and all that it needs to go on after a restart."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import Field, PlainSerializer

from multistep.api.common import ResourceModel


def format_time(moment: datetime) -> str:
    """Write a moment as the API conventions do: RFC 3339, UTC, whole seconds."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


Time = Annotated[datetime, PlainSerializer(format_time, when_used="json")]


class Phase(StrEnum):
    """The trial's phase, for people; programs should look at the conditions."""

    PENDING = "Pending"
    PREPARING = "Preparing"
    RUNNING = "Running"
    SUSPENDED = "Suspended"
    SUCCEEDED = "Succeeded"
    STOPPED = "Stopped"
    FAILED = "Failed"


TERMINAL_PHASES = frozenset({Phase.SUCCEEDED, Phase.STOPPED, Phase.FAILED})


class StepPhase(StrEnum):
    """The phase of one step."""

    PENDING = "Pending"
    RUNNING = "Running"
    VERIFYING = "Verifying"
    COMPLETED = "Completed"
    FAILED = "Failed"
    SKIPPED = "Skipped"


class ConditionStatus(StrEnum):
    """Value of a condition."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Condition(ResourceModel):
    """A condition in the form of the API conventions (metav1.Condition)."""

    type: str = Field(description="Complete, Failed, TaskValid, Suspended, Reconciling or Stalled.")
    status: ConditionStatus = Field(description="True, False or Unknown.")
    reason: str = Field(description="The reason of the last transition, one CamelCase word.")
    message: str = Field(default="", description="A sentence for people.")
    last_transition_time: Time = Field(description="When the status last changed.")
    observed_generation: int | None = Field(default=None, description="The generation of the spec that this is about.")


class ErrorStatus(ResourceModel):
    """What went wrong, and where to look."""

    type: str = Field(
        description="Harbor's exception name where it has one, such as AgentTimeoutError or RewardFileNotFoundError."
    )
    message: str = Field(description="What happened and what to do.")
    step: str | None = Field(default=None, description="Name of the step.")
    pod: str | None = Field(default=None, description="The pod to look at: `kubectl logs POD`.")


class StageStatus(ResourceModel):
    """One stage of a step: workdir, healthcheck, setup, agent, collect or verifier."""

    name: str = Field(description="Name of the stage.")
    start_time: Time = Field(description="When it started.")
    duration_seconds: int = Field(description="How long it took, in whole seconds.")
    exit_code: int | None = Field(default=None, description="Exit code of the program that it ran, when not 0.")


class StepSettings(ResourceModel):
    """The settings that held for a step: the trial's, else the step's own, else the task's, else the format's default."""

    agent_timeout_seconds: float | None = Field(
        default=None, description="Seconds for the agent; absent means no limit."
    )
    verifier_timeout_seconds: float | None = Field(
        default=None, description="Seconds for the verifier; absent: disabled."
    )
    agent_user: str | None = Field(
        default=None, description="User of setup.sh and agent; absent means the image's own."
    )
    verifier_user: str | None = Field(default=None, description="User of the tests; absent means the image's own.")


class VerificationStatus(ResourceModel):
    """One run of a step's verifier beside the one that counts."""

    pod_name: str | None = Field(default=None, description="The pod that ran the tests.")
    completion_time: Time | None = Field(default=None, description="When it ended.")
    rewards: dict[str, int | float] | None = Field(default=None, description="What the verifier gave.")
    error: ErrorStatus | None = Field(default=None, description="Why it gave nothing.")


class RegradeStatus(VerificationStatus):
    """A run of a step's verifier that somebody asked for after the trial had ended. The trial's own result stays as it was."""

    request: str = Field(description="Value of the annotation multistep.dev/regrade-requested-at that asked for it.")
    step: str | None = Field(default=None, description="The step.")
    start_time: Time | None = Field(default=None, description="When it was asked for.")
    trial_rewards: dict[str, int | float] | None = Field(
        default=None, description="What the trial's rewards would be with this step's new ones."
    )


class StepStatus(ResourceModel):
    """One step of the task."""

    index: int = Field(description="Position in the task, counted from 1.")
    name: str = Field(description="The step's name in task.toml.")
    phase: StepPhase = Field(
        default=StepPhase.PENDING,
        description="Pending, Running (workdir, setup, agent), Verifying, Completed (it was graded, even if the agent failed), Failed (no verifier result) "
        "or Skipped (never attempted).",
    )
    rewards: dict[str, int | float] | None = Field(
        default=None, description="What the verifier gave, as it wrote it. Absent means: not graded."
    )
    start_time: Time | None = Field(default=None, description="When the step's pod was created.")
    completion_time: Time | None = Field(default=None, description="When the step was graded or failed.")
    settings: StepSettings | None = Field(default=None, description="The settings that held for the step.")
    stages: list[StageStatus] = Field(default_factory=list, description="Timings of the stages that ran.")
    setup_pod_name: str | None = Field(
        default=None, description="The pod that ran setup.sh, where the agent's phase has another network."
    )
    pod_name: str | None = Field(default=None, description="The pod that ran setup and agent.")
    verifier_pod_name: str | None = Field(default=None, description="The pod that ran the tests.")
    previous_verifications: list[VerificationStatus] = Field(
        default_factory=list, description="Runs of the verifier that spec.verifier.retries followed by another."
    )
    error: ErrorStatus | None = Field(
        default=None, description="The step's error. A step whose agent failed may be graded all the same."
    )


class EarlyStopStatus(ResourceModel):
    """Why the trial stopped before its last step: `min_reward` was not met."""

    step: str = Field(description="The step whose min_reward was not met.")
    message: str = Field(description="The decision in one sentence.")
    thresholds: dict[str, float] = Field(description="min_reward of the step: reward key -> least value.")
    observed: dict[str, int | float] = Field(default_factory=dict, description="What the verifier gave for these keys.")
    missing: list[str] = Field(
        default_factory=list, description="Keys that min_reward names and the verifier did not give."
    )


class TaskStatus(ResourceModel):
    """The task as it was when the trial started."""

    digest: str = Field(description="SHA-256 over all files of the task, their modes and links.")
    name: str | None = Field(default=None, description="`task.name` of task.toml, if it has one.")
    reward_strategy: str = Field(description="How the trial's reward is made of the steps' rewards: mean or final.")


class ContainerUser(ResourceModel):
    """The user that the task's image runs as by default."""

    uid: int = Field(description="Numeric user.")
    gid: int = Field(description="Numeric group.")
    passwd_gid: int | None = Field(
        default=None, description="The group of that user in the image's passwd, if it is there."
    )


class WorkspaceStatus(ResourceModel):
    """The trial's volume and what the prepare pod found in the task's image."""

    claim_name: str = Field(description="The PersistentVolumeClaim.")
    prepare_pod_name: str | None = Field(default=None, description="The pod that filled the volume.")
    start_time: Time | None = Field(default=None, description="When the volume was asked for.")
    workdir: str | None = Field(default=None, description="The working directory in the containers.")
    user: ContainerUser | None = Field(default=None, description="The image's default user.")
    directories: list[str] = Field(
        default_factory=list,
        description="Top-level directories that live on the volume (persistence Filesystem).",
    )
    node_name: str | None = Field(default=None, description="The node of the trial's last pod; later pods prefer it.")


class AttemptStatus(ResourceModel):
    """An attempt that an infrastructure fault ended."""

    attempt: int = Field(description="Its number, from 1.")
    completion_time: Time = Field(description="When it ended.")
    error: ErrorStatus = Field(description="The fault.")


class MultiStepTrialStatus(ResourceModel):
    """What is known of the trial. Written by the operator only."""

    observed_generation: int | None = Field(
        default=None, description="The generation of the spec that this status is about."
    )
    phase: Phase = Field(
        default=Phase.PENDING,
        description="Pending, Preparing, Running, Suspended, Succeeded, Stopped or Failed.",
    )
    reason: str | None = Field(default=None, description="Why the trial is in this phase, one CamelCase word.")
    message: str | None = Field(default=None, description="The same, as a sentence.")
    step: str | None = Field(default=None, description="The step at work, of how many: 2/3.")
    reward: str | None = Field(
        default=None,
        description="The trial's `reward`, for display. Empty unless the trial finished and its reward is valid.",
    )
    rewards: dict[str, int | float] | None = Field(
        default=None,
        description="The trial's rewards over the graded steps (mean or final). Look at rewardValid, gradedSteps and totalSteps before you use them.",
    )
    reward_valid: bool | None = Field(
        default=None,
        description="Whether the rewards stand for the trial: every step that was attempted was graded, and no error spoils the result. An early stop "
        "by min_reward is valid; a crash is not.",
    )
    graded_steps: int | None = Field(default=None, description="How many steps the trial's rewards stand on.")
    total_steps: int | None = Field(default=None, description="How many steps the task has.")
    start_time: Time | None = Field(default=None, description="When the operator started to work on the trial.")
    completion_time: Time | None = Field(default=None, description="When the trial finished.")
    suspended_seconds: int | None = Field(
        default=None,
        description="Seconds that the trial was suspended; activeDeadlineSeconds leaves them out.",
    )
    waiting_since: Time | None = Field(
        default=None,
        description="Since when Kubernetes refuses the trial's next object (a quota, an admission policy).",
    )
    attempt: int = Field(
        default=1,
        description="Which attempt this is; infrastructure faults start a new one up to spec.backoffLimit times.",
    )
    conditions: list[Condition] = Field(
        default_factory=list,
        description="Complete, Failed, TaskValid, Suspended, Reconciling and Stalled.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    )
    task: TaskStatus | None = Field(default=None, description="The task as it was when the trial started.")
    workspace: WorkspaceStatus | None = Field(default=None, description="The trial's volume.")
    steps: list[StepStatus] = Field(
        default_factory=list,
        description="The steps, in order.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["index"]},
    )
    early_stop: EarlyStopStatus | None = Field(default=None, description="Set when min_reward stopped the trial.")
    error: ErrorStatus | None = Field(default=None, description="Set when the trial failed.")
    previous_attempts: list[AttemptStatus] = Field(
        default_factory=list, description="Attempts that infrastructure faults ended."
    )

    regrades: list[RegradeStatus] = Field(
        default_factory=list,
        description="Later runs of verifiers, by `multistep regrade`; the results above stay as they were.",
    )
    last_handled_regrade: str | None = Field(
        default=None,
        description="The last value of the annotation multistep.dev/regrade-requested-at that was acted upon.",
    )

    def to_json(self) -> dict[str, object]:
        """Return the status as the JSON object that is written to the API server, without absent fields."""
        document: dict[str, object] = self.model_dump(by_alias=True, mode="json", exclude_none=True)
        return _without_empty_lists(document)


def _without_empty_lists(document: dict[str, object]) -> dict[str, object]:
    """Leave out empty lists at every level: the status of a hundred steps must stay small and readable."""
    result: dict[str, object] = {}
    for key, value in document.items():
        if isinstance(value, dict):
            result[key] = _without_empty_lists(value)
        elif isinstance(value, list):
            if value:
                result[key] = [_without_empty_lists(item) if isinstance(item, dict) else item for item in value]
        else:
            result[key] = value
    return result
