"""What the chart renders for each option, with the real Helm."""

from typing import Any

import pytest
import yaml

from .conftest import ROOT, run

CHART = str(ROOT / "charts/multistep-operator")


def render(*settings: str) -> dict[tuple[str, str], dict[str, Any]]:
    arguments = [f"--set={setting}" for setting in settings]
    text = run("helm", "template", "release", CHART, "--namespace", "system", *arguments)
    return {(item["kind"], item["metadata"]["name"]): item for item in yaml.safe_load_all(text) if item}


def kinds(objects: dict[tuple[str, str], Any]) -> list[str]:
    return sorted(kind for kind, _ in objects)


def test_default_installs_the_definition_and_keeps_it() -> None:
    objects = render()
    definition = objects["CustomResourceDefinition", "multisteptrials.multistep.dev"]
    assert definition["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    assert definition["spec"] == yaml.safe_load((ROOT / "crds/multistep.dev_multisteptrials.yaml").read_text())["spec"]
    assert kinds(objects).count("ClusterRole") == 3


def test_definition_may_be_left_to_gitops() -> None:
    assert "CustomResourceDefinition" not in kinds(render("crds.enabled=false"))
    assert not render("crds.keep=false")["CustomResourceDefinition", "multisteptrials.multistep.dev"]["metadata"].get(
        "annotations"
    )


def test_namespaces_get_roles_of_their_own_and_no_cluster_role() -> None:
    objects = render("namespaces={one,two}", "rbac.aggregate=false")
    assert "ClusterRole" not in kinds(objects)
    roles = [item for (kind, _), item in objects.items() if kind == "Role"]
    assert roles and all({"one", "two"} >= {role["metadata"]["namespace"]} for role in roles)
    arguments = objects["Deployment", "release-multistep-operator"]["spec"]["template"]["spec"]["containers"][0]["args"]
    assert {"--namespace=one", "--namespace=two"} <= set(arguments)


def test_rights_name_no_secrets_no_exec_and_no_wildcard() -> None:
    for (kind, name), item in render().items():
        if kind == "ClusterRole":
            for rule in item["rules"]:
                assert "*" not in rule["verbs"] + rule["resources"] + rule["apiGroups"], name
                assert not {"secrets", "pods/exec"} & set(rule["resources"]), name


def test_digest_wins_over_the_tag_and_reaches_the_prepare_pods() -> None:
    digest = "sha256:" + "a" * 64
    container = render("image.repository=r/x", f"image.digest={digest}")["Deployment", "release-multistep-operator"]
    container = container["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == f"r/x@{digest}"
    assert container["env"] == [{"name": "MULTISTEP_OPERATOR_IMAGE", "value": f"r/x@{digest}"}]


@pytest.mark.parametrize("setting", ["imag.tag=x", "image.tga=x", "workers=0", "workers=many", "image.digest=latest"])
def test_misspelt_or_impossible_values_are_refused(setting: str) -> None:
    answer = run("helm", "template", "release", CHART, "--set", setting, check=False)
    assert "values don't meet the specifications" in answer


def test_operator_is_one_and_hardened() -> None:
    deployment = render()["Deployment", "release-multistep-operator"]["spec"]
    assert (deployment["replicas"], deployment["strategy"]) == (1, {"type": "Recreate"})
    pod = deployment["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    security = pod["containers"][0]["securityContext"]
    assert security["readOnlyRootFilesystem"] and security["capabilities"] == {"drop": ["ALL"]}
