"""CEL rules of the CRD: what the API server itself refuses at `kubectl apply`, with a sentence that says what to do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    """A validation rule in CEL (x-kubernetes-validations)."""

    expression: str
    message: str

    def to_json(self) -> dict[str, str]:
        """Return the rule as it stands in the CRD."""
        return {"rule": self.expression, "message": self.message}


RULES: dict[str, list[Rule]] = {
    "TaskSource": [
        Rule(
            "[has(self.inline), has(self.configMap)].exists_one(present, present)",
            "give exactly one of inline and configMap",
        )
    ],
    "AgentSpec": [
        Rule(
            "self.name != 'command' || has(self.command)",
            "the command agent needs `command`, the program to run",
        ),
        Rule(
            "self.name == 'command' || !has(self.command)",
            "only the command agent takes `command`: set name to command or remove it",
        ),
        Rule(
            "self.name == 'command' || !has(self.image)",
            "only the command agent takes `image`: set name to command or remove it",
        ),
    ],
    "EnvVar": [Rule("!(has(self.value) && has(self.valueFrom))", "give value or valueFrom, not both")],
    "EnvVarSource": [
        Rule(
            "[has(self.secretKeyRef), has(self.configMapKeyRef)].exists_one(present, present)",
            "give exactly one of secretKeyRef and configMapKeyRef",
        )
    ],
    "PodTemplate": [
        Rule(
            "!has(self.labels) || self.labels.all(key, !key.startsWith('multistep.dev/'))",
            "labels under multistep.dev/ are the operator's own: choose another prefix",
        )
    ],
}
"""Rules of an object, by the name of its model."""


_FIXED_SPEC = [
    "task",
    "agent",
    "environment",
    "verifier",
    "env",
    "artifacts",
    "timeoutMultiplier",
    "networkPolicy",
    "podTemplate",
    "activeDeadlineSeconds",
    "startDeadlineSeconds",
    "setupTimeoutSeconds",
    "backoffLimit",
]
_FIXED_WORKSPACE = ["persistence", "size", "storageClassName", "accessModes"]


def _unchanged(path: str, field: str) -> str:
    new, old = f"self.{path}.{field}", f"oldSelf.{path}.{field}"
    return f"has({new}) == has({old}) && (!has({new}) || {new} == {old})"


def _immutable(path: str, field: str) -> Rule:
    started = "has(oldSelf.status) && has(oldSelf.status.startTime)"
    return Rule(
        f"!({started}) || ({_unchanged(path, field)})",
        f"{path}.{field} cannot change once the trial has started: create a new trial (only spec.suspend, "
        "spec.ttlSecondsAfterFinished and spec.workspace.retain may change)",
    )


IMMUTABLE = [_immutable("spec", field) for field in _FIXED_SPEC] + [
    _immutable("spec.workspace", field) for field in _FIXED_WORKSPACE
]
"""Rules of the whole object: the spec is fixed once the trial has started, as a Job's template is."""
