"""`spec` of a MultiStepTrial. The field descriptions are what `kubectl explain mst.spec` shows."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints

from multistep.api.common import Multiplier, ObjectName, ResourceModel, Seconds, Timeout
from multistep.api.pod_template import EnvVar, PodTemplate

INLINE_FILE_CHARACTERS = 65_536
INLINE_FILES = 1_000


class InlineTask(ResourceModel):
    """A small task written into the manifest itself."""

    files: Annotated[
        dict[str, Annotated[str, StringConstraints(max_length=INLINE_FILE_CHARACTERS)]],
        Field(min_length=1, max_length=INLINE_FILES),
    ] = Field(
        description="The task's files: path relative to the task's directory (such as `steps/one/instruction.md`) "
        f"-> text. At most {INLINE_FILES} files of {INLINE_FILE_CHARACTERS} characters; larger tasks go into a "
        "ConfigMap, see `multistep pack`."
    )
    modes: dict[str, Annotated[str, StringConstraints(pattern=r"^0?[0-7]{3,4}$", max_length=5)]] = Field(
        default_factory=dict,
        max_length=INLINE_FILES,
        description='Octal file modes, path -> mode such as "0755". Without an entry a file is 0644, or 0755 when its name ends in '
        "`.sh` or its text starts with `#!`.",
    )


class ConfigMapTask(ResourceModel):
    """A task bundle in ConfigMaps, as `multistep pack DIR` prints them."""

    name: ObjectName = Field(
        description="Name of the ConfigMap in the trial's namespace that holds `task.tar.gz` in its binaryData."
    )
    parts: int = Field(
        default=1,
        ge=1,
        le=64,
        description="How many ConfigMaps the bundle is split over. The first is NAME, the next are NAME-part-2, NAME-part-3, ... "
        "(a ConfigMap holds at most 1 MiB).",
    )


class TaskSource(ResourceModel):
    """Where the task comes from. Exactly one source."""

    inline: InlineTask | None = Field(default=None, description="The task's files, in the manifest itself.")
    config_map: ConfigMapTask | None = Field(
        default=None, description="A bundle made by `multistep pack`, in one or more ConfigMaps."
    )


class AgentName(StrEnum):
    """The agents that this version can run."""

    ORACLE = "oracle"
    NOP = "nop"
    COMMAND = "command"


class AgentImage(ResourceModel):
    """An image that brings the agent's own binaries."""

    reference: Annotated[str, StringConstraints(min_length=1, max_length=1024)] = Field(
        description="The image, such as `ghcr.io/acme/agent:1.2`."
    )
    path: Annotated[str, StringConstraints(pattern=r"^/.+", max_length=1024)] = Field(
        default="/agent",
        description="The directory in that image which is copied once per trial and mounted, read-only and at the same path, "
        "into the containers in which the agent runs.",
    )


class PhaseTimes(ResourceModel):
    """How long a phase of each step, the agent's or the verifier's, may take."""

    timeout_seconds: Timeout | None = Field(
        default=None,
        description="Seconds that it may take in each step, instead of what the task says. Absent or 0: as the task says.",
    )
    max_timeout_seconds: Timeout | None = Field(
        default=None,
        description="Seconds that it may take at most, before the multiplier; where the task sets no limit it does nothing. "
        "Absent or 0: no such limit.",
    )
    timeout_multiplier: Multiplier | None = Field(
        default=None, description="Factor of its time; spec.timeoutMultiplier when absent."
    )


Host = Annotated[str, StringConstraints(min_length=1, max_length=300)]
ExtraHosts = Annotated[list[Host], Field(max_length=64)]
_EXTRA_HOSTS = (
    "Hosts to allow {phase} beside the task's, such as a model's endpoint: names, *.names, addresses or CIDR ranges. They count where "
    "the task restricts the network; no-network becomes an allowlist of them."
)


class AgentSpec(PhaseTimes):
    """Which agent works on the task."""

    name: AgentName = Field(
        description="`oracle` runs each step's solution/solve.sh, `nop` does nothing, `command` runs `command` in the step's container."
    )
    command: list[Annotated[str, StringConstraints(max_length=65_536)]] | None = Field(
        default=None,
        min_length=1,
        max_length=256,
        description="The program of the `command` agent and its arguments; not run by a shell. It gets the step's instruction on standard "
        "input and as the file that $MULTISTEP_INSTRUCTION_FILE names.",
    )
    image: AgentImage | None = Field(
        default=None,
        description="An image whose binaries the `command` agent uses, for task images that do not have them.",
    )
    env: list[EnvVar] = Field(
        default_factory=list,
        max_length=256,
        description="Environment variables of the step's container only: the verifier never sees them. Values may come from Secrets, which the "
        "operator itself never reads.",
    )
    extra_allowed_hosts: ExtraHosts = Field(
        default_factory=list, description=_EXTRA_HOSTS.format(phase="while the agent runs")
    )


class VerifierPlacement(StrEnum):
    """Where a verifier that shares the agent's environment runs."""

    POD = "Pod"
    STEP_POD = "StepPod"


class VerifierSpec(PhaseTimes):
    """How the steps are verified."""

    env: list[EnvVar] = Field(
        default_factory=list,
        max_length=256,
        description="Environment variables of the verifier's container only.",
    )
    disabled: bool = Field(
        default=False,
        description="Do not verify: the steps run, nothing is graded, and the trial has no reward. A step with an error still ends the trial.",
    )
    image: Annotated[str, StringConstraints(min_length=1, max_length=1024)] | None = Field(
        default=None,
        description="Image of separate verifiers. Overrides `docker_image` of the verifier's environment in task.toml, and is needed where the "
        "task has only tests/Dockerfile.",
    )
    placement: VerifierPlacement = Field(
        default=VerifierPlacement.POD,
        description="Where a verifier that shares the agent's environment runs. `Pod`: in a pod of its own, after the step pod. `StepPod`: as a second "
        "container of the step pod, after the agent; servers that the agent left running answer on localhost, and the pod needs cpus and memory twice. "
        "Separate verifiers always have a pod of their own.",
    )
    retries: int = Field(
        default=0,
        ge=0,
        le=10,
        description="How many times the verifier of a step runs again, without the agent, after it timed out or the infrastructure ended its pod. What the "
        "tests found wrong is never tried again.",
    )
    extra_allowed_hosts: ExtraHosts = Field(
        default_factory=list, description=_EXTRA_HOSTS.format(phase="while the tests run")
    )


ResourceName = Annotated[
    str,
    StringConstraints(
        max_length=317, pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
    ),
]
LabelValue = Annotated[
    str, StringConstraints(min_length=1, max_length=63, pattern=r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$")
]


class EnvironmentSpec(ResourceModel):
    """The environment that the agent works in."""

    image: Annotated[str, StringConstraints(min_length=1, max_length=1024)] | None = Field(
        default=None,
        description="Image of the task's environment. Overrides `environment.docker_image` of task.toml, and is needed where the task has only "
        "a Dockerfile.",
    )
    extra_allowed_hosts: ExtraHosts = Field(
        default_factory=list, description=_EXTRA_HOSTS.format(phase="in the agent's environment")
    )
    gpu_resource_name: ResourceName = Field(
        default="nvidia.com/gpu", description="The resource by which pods ask for the GPUs of `environment.gpus`."
    )
    gpu_type_label: ResourceName = Field(
        default="nvidia.com/gpu.product",
        description="The node label that says which GPU a node has; `environment.gpu_types` become a node affinity on it.",
    )
    gpu_type_names: dict[str, LabelValue] = Field(
        default_factory=dict,
        max_length=64,
        description="Names of `environment.gpu_types` -> value of that label, where they differ: `H100: NVIDIA-H100-80GB-HBM3`.",
    )


class ArtifactSpec(ResourceModel):
    """One thing to collect from the agent's environment after each step."""

    source: Annotated[str, StringConstraints(min_length=1, max_length=4096, pattern=r"^[^\n]+$")] = Field(
        description="Path in the container; a relative one lies below the working directory."
    )
    destination: Annotated[str, StringConstraints(max_length=1024, pattern=r"^[^\n/][^\n]*$")] | None = Field(
        default=None, description="Path below the step's artifacts; the source's own path when absent."
    )
    exclude: list[Annotated[str, StringConstraints(max_length=1024, pattern=r"^[^\n]+$")]] = Field(
        default_factory=list, max_length=64, description="Patterns that are left out of a directory."
    )


class Persistence(StrEnum):
    """What outlives a pod of the trial."""

    FILESYSTEM = "Filesystem"
    WORKDIR = "Workdir"


class AccessMode(StrEnum):
    """Access modes of the trial's volume, as Kubernetes names them."""

    READ_WRITE_ONCE = "ReadWriteOnce"
    READ_WRITE_ONCE_POD = "ReadWriteOncePod"
    READ_WRITE_MANY = "ReadWriteMany"


class Workspace(ResourceModel):
    """The volume on which the trial's state lives."""

    persistence: Persistence = Field(
        default=Persistence.FILESYSTEM,
        description="`Filesystem`: whatever the agent installs or writes anywhere persists to the verifier and to later steps. `Workdir`: only the "
        "working directory does; cheaper for large images whose tasks change nothing else.",
    )
    size: Annotated[
        str, StringConstraints(pattern=r"^[0-9]+(\.[0-9]+)?(Ki|Mi|Gi|Ti|Pi|k|M|G|T|P)?$", max_length=32)
    ] = Field(default="10Gi", description="Size of the volume, as a Kubernetes quantity.")
    storage_class_name: ObjectName | None = Field(
        default=None, description="StorageClass of the volume; the cluster's default class when absent."
    )
    access_modes: list[AccessMode] = Field(
        default_factory=lambda: [AccessMode.READ_WRITE_ONCE],
        min_length=1,
        max_length=3,
        description="Access modes of the volume. ReadWriteOnce will do; with ReadWriteOncePod each pod waits until the one before it is gone, "
        "about a second more per pod.",
    )
    retain: bool = Field(
        default=False,
        description="Keep the volume when the trial is deleted. You delete the PersistentVolumeClaim yourself. May be changed at any time.",
    )


class NetworkEnforcement(StrEnum):
    """What happens to a task whose network the cluster cannot restrict."""

    REQUIRED = "Required"
    BEST_EFFORT = "BestEffort"


class NetworkPolicySpec(ResourceModel):
    """How the task's `network_mode` and `allowed_hosts` are enforced."""

    enforcement: NetworkEnforcement = Field(
        default=NetworkEnforcement.REQUIRED,
        description="`Required`: a task whose network modes this cluster cannot enforce is refused. `BestEffort`: it runs, with the policies that can be "
        "expressed, and the condition NetworkEnforced says what is not enforced.",
    )


class MultiStepTrialSpec(ResourceModel):
    """One evaluation of one agent on one multi-step task."""

    task: TaskSource = Field(description="The task, in Harbor's format. Exactly one source.")
    agent: AgentSpec = Field(description="The agent under evaluation.")
    environment: EnvironmentSpec = Field(
        default_factory=EnvironmentSpec, description="Overrides of the task's environment."
    )
    verifier: VerifierSpec = Field(default_factory=VerifierSpec, description="Settings of the verifier.")
    env: list[EnvVar] = Field(
        default_factory=list,
        max_length=256,
        description="Values for the `${VAR}` references in the task's env tables (environment, verifier and solution). Nothing else of this list "
        "reaches a container.",
    )
    artifacts: list[ArtifactSpec] = Field(
        default_factory=list,
        max_length=64,
        description="What to collect after each step, after the task's artifacts and before the step's, into steps/NAME/artifacts on the volume.",
    )
    timeout_multiplier: Multiplier = Field(
        default=1.0, description="Factor of the agent's and the verifier's times that have none of their own."
    )
    workspace: Workspace = Field(default_factory=Workspace, description="The trial's volume.")
    network_policy: NetworkPolicySpec = Field(
        default_factory=NetworkPolicySpec, description="How restrictions of the network are enforced."
    )
    pod_template: PodTemplate = Field(
        default_factory=PodTemplate,
        description="Settings for all pods of the trial: scheduling, service account, security.",
    )
    suspend: bool = Field(
        default=False,
        description="While true no new pod starts. A pod that is running goes on to its end; set back to false, the trial goes on where it stopped. "
        "May be changed at any time.",
    )
    active_deadline_seconds: Seconds | None = Field(
        default=None,
        ge=1,
        description="Seconds that the trial may take from its start, time spent suspended not counted. Past it the running pod is deleted and the trial "
        "fails with reason DeadlineExceeded.",
    )
    start_deadline_seconds: Seconds = Field(
        default=600,
        ge=1,
        description="Seconds that a pod may take until its containers run (scheduling, volume, image pull). Past it the trial fails with "
        "what Kubernetes says of the pod.",
    )
    setup_timeout_seconds: Seconds = Field(
        default=3600,
        ge=1,
        description="Seconds that a step's setup.sh may take. The task format knows no such limit; without one a trial could hang forever.",
    )
    backoff_limit: int = Field(
        default=0,
        ge=0,
        le=10,
        description="How many times the trial starts again from a clean volume after an infrastructure fault (eviction, node loss, preemption, a pod "
        "that somebody deleted). Never used for anything the agent or the task did.",
    )
    ttl_seconds_after_finished: Seconds | None = Field(
        default=None,
        description="Delete the trial, with its pods and its volume, this many seconds after it finished. May be changed at any time.",
    )
