"""What the task allows of the network is what its pods can reach, on a cluster that enforces policies."""

from .conftest import BUSYBOX, PASS, Namespace, kubectl, reward_if, until

REACH = "nc -w 2 $KUBERNETES_SERVICE_HOST 443 </dev/null >/dev/null 2>&1"
"""Whether the API server answers: there is nothing else in the test cluster that every pod can reach."""


def api_server() -> str:
    return kubectl("get", "endpoints", "kubernetes", "-o", "jsonpath={.subsets[0].addresses[0].ip}")


def task(namespace: Namespace, toml: str, steps: dict, test: str = PASS) -> dict[str, str]:
    # The variables of services are not there: the agent is told the address.
    environment = f'docker_image = "{BUSYBOX}"\nenv = {{ KUBERNETES_SERVICE_HOST = "{service()}" }}'
    return namespace.files(steps, toml=toml.replace("IMAGE", environment), tests__test_sh=test)


def service() -> str:
    return kubectl("get", "service", "kubernetes", "-o", "jsonpath={.spec.clusterIP}")


def test_each_phase_reaches_what_its_mode_allows(namespace: Namespace) -> None:
    toml = """[environment]
IMAGE
[agent]
network_mode = "no-network"
"""
    steps = {
        "a": {
            "workdir/setup.sh": f"{REACH} && echo reached > /app/setup; true\n",
            "solution/solve.sh": f"{REACH} && echo reached > /app/agent; true\n",
        }
    }
    test = reward_if(f"{REACH} && [ -e /app/setup ] && [ ! -e /app/agent ]")
    namespace.create(task(namespace, toml, steps, test))
    status = namespace.finish()
    assert (status["phase"], status["rewards"]) == ("Succeeded", {"reward": 1.0}), status
    enforced = next(condition for condition in status["conditions"] if condition["type"] == "NetworkEnforced")
    assert enforced["status"] == "True"
    assert status["steps"][0]["setupPodName"].endswith("-setup-1")
    policies = kubectl("-n", namespace.name, "get", "networkpolicies", "-o", "name").split()
    assert len(policies) == 1 and policies[0].endswith("-no-network")
    kubectl("-n", namespace.name, "delete", "mst", "trial")
    until(
        lambda: not kubectl("-n", namespace.name, "get", "networkpolicies", "-o", "name"),
        60,
        "the policy went with the trial",
    )


def test_allowlist_of_addresses_reaches_them_and_nothing_else(namespace: Namespace) -> None:
    toml = """[environment]
IMAGE
network_mode = "allowlist"
allowed_hosts = ["ADDRESS"]
[verifier]
network_mode = "no-network"
"""
    reach = f"nc -w 2 {api_server()} 6443 </dev/null >/dev/null 2>&1"
    steps = {"a": {"solution/solve.sh": f"{reach} && echo reached > /app/agent; true\n"}}
    test = reward_if(f"[ -e /app/agent ] && ! {reach}")
    namespace.create(task(namespace, toml.replace("ADDRESS", api_server()), steps, test))
    namespace.create(task(namespace, toml.replace("ADDRESS", "192.0.2.1"), steps, test), name="other")
    namespace.create(task(namespace, toml.replace('"ADDRESS"', ""), steps, test), name="extra",
                     agent={"name": "oracle", "extraAllowedHosts": [api_server()]})  # fmt: skip
    for name, reward in (("trial", 1.0), ("other", 0.0), ("extra", 1.0)):
        status = namespace.finish(name=name)
        assert status.get("rewards") == {"reward": reward}, status


def test_names_are_refused_without_cilium_and_run_with_best_effort(namespace: Namespace) -> None:
    toml = '[environment]\nIMAGE\nnetwork_mode = "allowlist"\nallowed_hosts = ["pypi.org"]\n'
    files = task(namespace, toml, {"a": {"solution/solve.sh": "true\n"}})
    namespace.create(files)
    namespace.create(files, name="eager", networkPolicy={"enforcement": "BestEffort"})
    refused = namespace.finish()
    assert refused["reason"] == "TaskInvalid" and "pypi.org" in refused["message"] and "Cilium" in refused["message"]
    eager = namespace.finish(name="eager")
    assert eager["phase"] == "Succeeded"
    assert next(item for item in eager["conditions"] if item["type"] == "NetworkEnforced")["status"] == "False"
