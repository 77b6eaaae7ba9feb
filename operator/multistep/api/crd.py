"""The CustomResourceDefinition, generated from the pydantic models.

`python -m multistep.api.crd DIR...` writes it into each directory; a unit test fails when the files that are checked in are stale.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

from multistep.api import rules
from multistep.api.common import GROUP, KIND, PLURAL, VERSION
from multistep.api.spec import MultiStepTrialSpec
from multistep.api.status import MultiStepTrialStatus

Schema = dict[str, Any]

FILE_NAME = f"{GROUP}_{PLURAL}.yaml"

_KEPT = [
    "type",
    "format",
    "description",
    "enum",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "default",
]

_COLUMNS: list[tuple[str, str, str, int, str]] = [
    ("Phase", "string", ".status.phase", 0, "Where the trial stands."),
    ("Step", "string", ".status.step", 0, "The step at work, of how many."),
    ("Reward", "string", ".status.reward", 0, "The trial's reward, when it finished with a valid one."),
    ("Reason", "string", ".status.reason", 0, "Why it stands there."),
    ("Age", "date", ".metadata.creationTimestamp", 0, "Time since the trial was created."),
    ("Agent", "string", ".spec.agent.name", 1, "The agent under evaluation."),
    ("Graded", "integer", ".status.gradedSteps", 1, "Steps that the reward stands on."),
    ("Valid", "boolean", ".status.rewardValid", 1, "Whether the reward stands for the trial."),
    ("Attempt", "integer", ".status.attempt", 1, "Attempt, counted from 1."),
    ("Node", "string", ".status.workspace.nodeName", 1, "Node of the trial's last pod."),
    ("Message", "string", ".status.message", 1, "The reason as a sentence."),
]


def structural_schema(model: type[BaseModel]) -> Schema:
    """Turn a model's JSON schema into a structural one: no references, no unions, as apiextensions/v1 demands."""
    document = model.model_json_schema(by_alias=True)
    return _convert(document, document.get("$defs", {}))


def _convert(node: Schema, definitions: dict[str, Schema]) -> Schema:
    node = _resolve(node, definitions)
    result: Schema = {key: node[key] for key in _KEPT if key in node}
    result.update({key: value for key, value in node.items() if key.startswith("x-kubernetes-")})
    if result.get("default", ...) is None:
        del result["default"]
    if "properties" in node:
        result["properties"] = {name: _convert(child, definitions) for name, child in node["properties"].items()}
        if node.get("required"):
            result["required"] = node["required"]
        rule_list = rules.RULES.get(str(node.get("title")))
        if rule_list:
            result["x-kubernetes-validations"] = [rule.to_json() for rule in rule_list]
    elif isinstance(node.get("additionalProperties"), dict):
        result["additionalProperties"] = _convert(node["additionalProperties"], definitions)
    if "items" in node:
        result["items"] = _convert(node["items"], definitions)
    return result


def _resolve(node: Schema, definitions: dict[str, Schema]) -> Schema:
    """Follow `$ref`s and fold `X | None` and `int | float` into one type; what stands beside them wins."""
    outer = {key: value for key, value in node.items() if key not in ("$ref", "anyOf")}
    if "$ref" in node:
        inner = _resolve(definitions[node["$ref"].rsplit("/", 1)[1]], definitions)
        return {**inner, **outer, "title": inner.get("title")}
    if "anyOf" in node:
        options = [option for option in node["anyOf"] if option.get("type") != "null"]
        if {option.get("type") for option in options} == {"integer", "number"}:
            return {"type": "number", **outer}
        (option,) = options
        inner = _resolve(option, definitions)
        title = {"title": inner["title"]} if "title" in inner else {}
        return {**inner, **outer, **title}
    return node


def custom_resource_definition() -> Schema:
    """Build the CRD of MultiStepTrial as one JSON-like object."""
    spec = structural_schema(MultiStepTrialSpec)
    for name in ("environment", "verifier", "workspace", "podTemplate"):
        spec["properties"][name]["default"] = {}
    schema: Schema = {
        "type": "object",
        "description": "One evaluation of one agent on one multi-step task in Harbor's format.",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string", "description": "Version of this schema."},
            "kind": {"type": "string", "description": "Kind of the object."},
            "metadata": {"type": "object"},
            "spec": spec,
            "status": structural_schema(MultiStepTrialStatus),
        },
        "x-kubernetes-validations": [rule.to_json() for rule in rules.IMMUTABLE],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": KIND,
                "listKind": f"{KIND}List",
                "plural": PLURAL,
                "singular": KIND.lower(),
                "shortNames": ["mst"],
                "categories": ["all"],
            },
            "scope": "Namespaced",
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [
                        {
                            "name": name,
                            "type": kind,
                            "jsonPath": path,
                            "priority": priority,
                            "description": text,
                        }
                        for name, kind, path, priority, text in _COLUMNS
                    ],
                }
            ],
        },
    }


def render() -> str:
    """Return the CRD as YAML, with a header that says where it comes from."""
    body = yaml.safe_dump(custom_resource_definition(), sort_keys=False, width=120, allow_unicode=True)
    return f"# Generated from operator/multistep/api by `make generate`; do not edit.\n{body}"


def main() -> None:
    """Write the CRD into each directory given as an argument."""
    for directory in sys.argv[1:]:
        Path(directory, FILE_NAME).write_text(render(), encoding="utf-8")


if __name__ == "__main__":
    main()
