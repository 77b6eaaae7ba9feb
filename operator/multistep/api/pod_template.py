"""The curated subset of pod fields that a user may set.

A full PodTemplate schema makes a CRD of megabytes, which client-side `kubectl apply` refuses; Tekton's subset is the model.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints

from multistep.api.common import ObjectName, OpenObject, ResourceModel


class KeySelector(ResourceModel):
    """One key of a Secret or a ConfigMap in the trial's namespace."""

    name: ObjectName = Field(description="Name of the object.")
    key: Annotated[str, StringConstraints(min_length=1, max_length=253)] = Field(description="The key in its data.")
    optional: bool | None = Field(
        default=None,
        description="When true, a missing object or key leaves the variable unset instead of holding the pod back.",
    )


class EnvVarSource(ResourceModel):
    """Where a variable's value comes from. Exactly one source."""

    secret_key_ref: KeySelector | None = Field(
        default=None, description="A key of a Secret. The kubelet reads it, not the operator."
    )
    config_map_key_ref: KeySelector | None = Field(default=None, description="A key of a ConfigMap.")


class EnvVar(ResourceModel):
    """An environment variable."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=256, pattern=r"^[^=]+$")] = Field(
        description="Name of the variable."
    )
    value: Annotated[str, StringConstraints(max_length=131_072)] | None = Field(
        default=None, description="The value, taken literally."
    )
    value_from: EnvVarSource | None = Field(default=None, description="Take the value from a Secret or a ConfigMap.")


class TolerationOperator(StrEnum):
    """How a toleration's key and value are compared."""

    EXISTS = "Exists"
    EQUAL = "Equal"


class TaintEffect(StrEnum):
    """The taint effect that a toleration matches."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class Toleration(ResourceModel):
    """A toleration, as in a pod's spec."""

    key: str | None = Field(
        default=None, max_length=317, description="The taint's key; absent with operator Exists matches all."
    )
    operator: TolerationOperator | None = Field(default=None, description="Exists or Equal (the default).")
    value: str | None = Field(default=None, max_length=63, description="The taint's value, for Equal.")
    effect: TaintEffect | None = Field(default=None, description="The effect to match; absent matches all.")
    toleration_seconds: int | None = Field(
        default=None, description="Seconds that a NoExecute taint is tolerated; absent means forever."
    )


class LocalObjectReference(ResourceModel):
    """An object in the trial's namespace."""

    name: ObjectName = Field(description="Name of the object.")


class ImagePullPolicy(StrEnum):
    """When the kubelet pulls an image."""

    ALWAYS = "Always"
    IF_NOT_PRESENT = "IfNotPresent"
    NEVER = "Never"


StringMap = Annotated[dict[str, str], Field(max_length=256)]


class PodTemplate(ResourceModel):
    """Fields for every pod of the trial. What the operator itself sets wins over them."""

    labels: StringMap = Field(
        default_factory=dict,
        description="Labels added to every pod. Keys under multistep.dev/ are the operator's own and are refused.",
    )
    annotations: StringMap = Field(default_factory=dict, description="Annotations added to every pod.")
    node_selector: StringMap = Field(default_factory=dict, description="Labels that a node must have.")
    tolerations: list[Toleration] = Field(
        default_factory=list, max_length=64, description="Taints that the pods tolerate."
    )
    affinity: OpenObject | None = Field(
        default=None,
        description="Affinity, as in a pod's spec. A soft preference for the node of the trial's last pod is added.",
    )
    image_pull_secrets: list[LocalObjectReference] = Field(
        default_factory=list, max_length=16, description="Secrets with which the kubelet pulls the images."
    )
    image_pull_policy: ImagePullPolicy | None = Field(
        default=None,
        description="Pull policy of the task's and the agent's images; Kubernetes' own default when absent.",
    )
    runtime_class_name: ObjectName | None = Field(default=None, description="RuntimeClass of the pods, such as gvisor.")
    priority_class_name: ObjectName | None = Field(default=None, description="PriorityClass of the pods.")
    service_account_name: ObjectName | None = Field(
        default=None, description="ServiceAccount of the pods. Its token is never mounted into them."
    )
    scheduler_name: ObjectName | None = Field(default=None, description="Scheduler of the pods.")
    security_context: OpenObject | None = Field(
        default=None,
        description="Security context of the pods, as in a pod's spec. The containers' user stays root, because the operator's runner switches to the "
        "users that the task names.",
    )
    container_security_context: OpenObject | None = Field(
        default=None,
        description="Security context of the containers of the task's image (capabilities, allowPrivilegeEscalation, seccomp). Kubernetes' defaults when "
        "absent, so that setuid and sudo wrappers of the task work.",
    )
