from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from multistep.api import crd
from multistep.api.spec import MultiStepTrialSpec
from multistep.api.status import MultiStepTrialStatus

ROOT = Path(__file__).parents[3]
CLIENT_SIDE_APPLY_BYTES = 262_144


@pytest.mark.parametrize("directory", ["crds", "charts/multistep-operator/files"])
def test_checked_in_definition_is_what_the_models_say(directory: str) -> None:
    text = (ROOT / directory / crd.FILE_NAME).read_text(encoding="utf-8")
    assert text == crd.render(), "run `make generate`"


def test_definition_fits_client_side_apply() -> None:
    assert len(crd.render().encode()) < CLIENT_SIDE_APPLY_BYTES / 2


def _nodes(schema, path="spec"):
    yield path, schema
    for name, child in (schema.get("properties") or {}).items():
        yield from _nodes(child, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from _nodes(schema[key], f"{path}[]")


def _schema():
    return crd.custom_resource_definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def test_every_field_is_described_for_kubectl_explain() -> None:
    missing = [
        path
        for part in ("spec", "status")
        for path, node in _nodes(_schema()["properties"][part], part)
        if not node.get("description") and not path.endswith("[]")
    ]
    assert missing == []


def test_every_node_has_a_type_and_no_reference() -> None:
    for path, node in _nodes(_schema()):
        assert "type" in node or node.get("x-kubernetes-preserve-unknown-fields"), path
        assert not {"$ref", "anyOf", "allOf", "const"} & node.keys(), path


def test_examples_satisfy_the_models() -> None:
    found = list((ROOT / "examples").rglob("*.yaml"))
    assert found
    for path in found:
        for document in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            if document and document["kind"] == "MultiStepTrial":
                MultiStepTrialSpec.model_validate(document["spec"])


def test_unknown_key_of_the_spec_is_refused_by_name() -> None:
    with pytest.raises(ValidationError, match="timeoutsSeconds"):
        MultiStepTrialSpec.model_validate(
            {"task": {"inline": {"files": {"a": "b"}}}, "agent": {"name": "nop", "timeoutsSeconds": 1}}
        )


def test_status_survives_a_round_trip_and_leaves_out_what_is_absent() -> None:
    status = MultiStepTrialStatus.model_validate(
        {
            "phase": "Running",
            "startTime": "2026-12-01T10:00:00Z",
            "steps": [
                {"index": 1, "name": "a", "rewards": {"reward": 1, "x": 0.5}},
                {"index": 2, "name": "b", "rewards": {}},
            ],
        }
    )
    document = status.to_json()
    assert document["startTime"] == "2026-12-01T10:00:00Z"
    assert document["steps"] == [
        {"index": 1, "name": "a", "phase": "Pending", "rewards": {"reward": 1, "x": 0.5}},
        {"index": 2, "name": "b", "phase": "Pending", "rewards": {}},
    ]
    assert "conditions" not in document and "earlyStop" not in document
    assert MultiStepTrialStatus.model_validate(document) == status
