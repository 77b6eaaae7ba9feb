import re
from pathlib import Path

import yaml

from multistep.engine.conditions import ConditionType, Reason
from multistep.scoring.policy import _OWN

ROOT = Path(__file__).parents[2]
STATUS = (ROOT / "docs/status.md").read_text(encoding="utf-8")


def _section(title: str) -> str:
    return STATUS.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]


def test_every_reason_is_documented_and_no_other() -> None:
    documented = re.findall(r"^\| `(\w+)` \|", _section("Reasons"), re.MULTILINE)
    assert documented == [reason.value for reason in Reason]


def test_every_condition_is_documented() -> None:
    documented = {
        name
        for row in re.findall(r"^\| (`.*?`) \|", _section("Conditions"), re.MULTILINE)
        for name in re.findall(r"`(\w+)`", row)
    }
    assert documented == {kind.value for kind in ConditionType}


def test_every_own_error_type_is_documented() -> None:
    documented = set(re.findall(r"`(\w+Error)`", _section("Error types")))
    assert set(_OWN) <= documented


def test_manifests_in_the_readme_are_valid() -> None:
    from multistep.api.spec import MultiStepTrialSpec

    blocks = re.findall(r"```yaml\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    trials = [
        document
        for block in blocks
        for document in yaml.safe_load_all(block)
        if document.get("kind") == "MultiStepTrial"
    ]
    assert trials
    for trial in trials:
        MultiStepTrialSpec.model_validate(trial["spec"])


def test_version_is_the_same_everywhere() -> None:
    chart = yaml.safe_load((ROOT / "charts/multistep-operator/Chart.yaml").read_text())
    project = (ROOT / "pyproject.toml").read_text()
    version = re.search(r'^version = "(.*)"', project, re.MULTILINE)
    assert version is not None
    assert {chart["version"], chart["appVersion"]} == {version[1]}
    assert f"## {version[1]}" in (ROOT / "CHANGELOG.md").read_text()
