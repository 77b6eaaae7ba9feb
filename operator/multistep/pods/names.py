"""Names and labels of a trial's children: functions of (trial, attempt, step), valid whatever the trial and its steps are called."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from enum import StrEnum

from multistep.api.common import GROUP
from multistep.task import NetworkMode, NetworkPolicy

LABEL_TRIAL = f"{GROUP}/trial"
LABEL_TRIAL_UID = f"{GROUP}/trial-uid"
LABEL_ROLE = f"{GROUP}/role"
LABEL_STEP_INDEX = f"{GROUP}/step-index"
LABEL_ATTEMPT = f"{GROUP}/attempt"
LABEL_NETWORK = f"{GROUP}/network"
LABEL_MANAGED_BY = "app.kubernetes.io/managed-by"
ANNOTATION_STEP_NAME = f"{GROUP}/step-name"
ANNOTATION_REGRADE = f"{GROUP}/regrade-requested-at"
ANNOTATION_REGRADE_STEP = f"{GROUP}/regrade-step"
MANAGER = "multistep-operator"

_MAX_LABEL = 63
_HASH_LENGTH = 8


class Role(StrEnum):
    """What a pod of a trial is for."""

    PREPARE = "prepare"
    SETUP = "setup"
    STEP = "step"
    VERIFIER = "verifier"
    REGRADE = "regrade"


@dataclass(frozen=True)
class TrialIdentity:
    """What names and owner references are made of."""

    namespace: str
    name: str
    uid: str


def _shorten(name: str, length: int) -> str:
    """Cut a name to `length` characters of a DNS label; the caller adds a hash, so that two long names stay apart."""
    label = re.sub(r"[^a-z0-9-]+", "-", name.lower())
    return label[:length].strip("-") or "trial"


def base_name(trial: TrialIdentity, attempt: int) -> str:
    """Return the common start of the names of an attempt's children, at most 44 characters.

    The hash covers the trial's UID: the children of a deleted trial of the same name, still on their way out, never collide.
    """
    digest = hashlib.sha256(f"{trial.namespace}/{trial.name}/{trial.uid}".encode()).hexdigest()[:_HASH_LENGTH]
    retry = "" if attempt == 1 else f"-retry-{attempt - 1}"
    return f"{_shorten(trial.name, 26)}-{digest}{retry}"


def pod_name(trial: TrialIdentity, attempt: int, role: Role, step_index: int | None = None, number: int = 1) -> str:
    """Return a pod's name; at most 63 characters, so that it is a valid host name too. `number`: which of its kind it is."""
    suffix = role.value if step_index is None else f"{role.value}-{step_index}"
    return f"{base_name(trial, attempt)}-{suffix}" + ("" if number == 1 else f"-{number}")


def claim_name(trial: TrialIdentity, attempt: int) -> str:
    """Return the name of the PersistentVolumeClaim of an attempt."""
    return base_name(trial, attempt)


def snapshot_name(trial: TrialIdentity) -> str:
    """Return the name of the ConfigMap that holds the task as it was when the trial started."""
    return f"{base_name(trial, 1)}-task"


def label_value(text: str) -> str:
    """Return text as a label value: itself where it is one, else a readable start and a hash (63 characters at most)."""
    if len(text) <= _MAX_LABEL and re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?", text):
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:_HASH_LENGTH]
    return f"{_shorten(text, _MAX_LABEL - _HASH_LENGTH - 1)}-{digest}"


def labels(
    trial: TrialIdentity, attempt: int, role: Role | None = None, step_index: int | None = None
) -> dict[str, str]:
    """Return the operator's own labels for a child."""
    result = {
        LABEL_MANAGED_BY: MANAGER,
        LABEL_TRIAL: label_value(trial.name),
        LABEL_TRIAL_UID: trial.uid,
        LABEL_ATTEMPT: str(attempt),
    }
    if role is not None:
        result[LABEL_ROLE] = role.value
    if step_index is not None:
        result[LABEL_STEP_INDEX] = str(step_index)
    return result


def network_labels(policy: NetworkPolicy | None) -> dict[str, str]:
    """Return the label by which a network policy finds the pods that it holds for; none where all may be reached."""
    if policy is None or policy.mode is NetworkMode.PUBLIC:
        return {}
    return {LABEL_NETWORK: network_key(policy)}


def network_key(policy: NetworkPolicy) -> str:
    """Return a short name of what a policy allows, the same for the same modes and hosts."""
    if policy.mode is NetworkMode.NO_NETWORK:
        return policy.mode.value
    digest = hashlib.sha256("\n".join(sorted(policy.hosts)).encode()).hexdigest()[:_HASH_LENGTH]
    return f"{policy.mode.value}-{digest}"


def policy_name(trial: TrialIdentity, policy: NetworkPolicy) -> str:
    """Return the name of the network policy object of a trial."""
    return f"{base_name(trial, 1)}-{network_key(policy)}"
