"""Names and labels of a trial's children: functions of (trial, attempt, step), valid whatever the trial and its steps are called."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from enum import StrEnum

from multistep.api.common import GROUP

LABEL_TRIAL = f"{GROUP}/trial"
LABEL_TRIAL_UID = f"{GROUP}/trial-uid"
LABEL_ROLE = f"{GROUP}/role"
LABEL_STEP_INDEX = f"{GROUP}/step-index"
LABEL_ATTEMPT = f"{GROUP}/attempt"
LABEL_MANAGED_BY = "app.kubernetes.io/managed-by"
ANNOTATION_STEP_NAME = f"{GROUP}/step-name"
MANAGER = "multistep-operator"

_MAX_LABEL = 63
_HASH_LENGTH = 8


class Role(StrEnum):
    """What a pod of a trial is for."""

    PREPARE = "prepare"
    STEP = "step"
    VERIFIER = "verifier"


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


def pod_name(trial: TrialIdentity, attempt: int, role: Role, step_index: int | None = None) -> str:
    """Return a pod's name; at most 63 characters, so that it is a valid host name too."""
    suffix = role.value if step_index is None else f"{role.value}-{step_index}"
    return f"{base_name(trial, attempt)}-{suffix}"


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
