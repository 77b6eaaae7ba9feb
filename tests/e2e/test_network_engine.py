"""The test cluster enforces NetworkPolicies: what other tests of network isolation stand on."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .conftest import DEBIAN, Namespace, kubectl, until

# Connects with a short limit; prints what came of it.
REACH = "if timeout 2 bash -c 'exec 3<>/dev/tcp/{0}/{1}' 2>/dev/null; then echo reached; else echo blocked; fi"
# From its first moment on: milliseconds since the start, and whether it could connect.
LOOP = """
start=$(date +%s%3N)
for _ in $(seq {times}); do
  if timeout 0.3 bash -c 'exec 3<>/dev/tcp/{address}/{port}' 2>/dev/null; then r=reached; else r=blocked; fi
  echo "$(($(date +%s%3N) - start)) $r"
done
"""


def pod(namespace: Namespace, name: str, script: str, **labels: str) -> None:
    container = {"name": "main", "image": DEBIAN, "command": ["bash", "-c", script]}
    namespace.core.create_namespaced_pod(
        namespace.name,
        {
            "metadata": {"name": name, "labels": labels},
            "spec": {"containers": [container], "restartPolicy": "Never", "terminationGracePeriodSeconds": 0},
        },
    )


def address(namespace: Namespace, name: str) -> str:
    def find() -> str | None:
        status = namespace.core.read_namespaced_pod(name, namespace.name).status
        return status.pod_ip if status.phase == "Running" else None

    return str(until(find, 60, f"an address of {name}"))


def policy(namespace: Namespace, name: str, allowed: list[dict[str, Any]], **labels: str) -> None:
    """Deny the egress of pods with these labels, but for what is allowed."""
    kubectl(
        "-n", namespace.name, "create", "-f", "-",
        stdin=json.dumps(
            {
                "apiVersion": "networking.k8s.io/v1",
                "kind": "NetworkPolicy",
                "metadata": {"name": name},
                "spec": {"podSelector": {"matchLabels": labels}, "policyTypes": ["Egress"], "egress": allowed},
            }
        ),
    )  # fmt: skip


def reach(namespace: Namespace, name: str, host: str, port: int) -> str:
    return kubectl("-n", namespace.name, "exec", name, "--", "bash", "-c", REACH.format(host, port)).strip()


def finished_log(namespace: Namespace, name: str) -> str:
    until(
        lambda: namespace.core.read_namespaced_pod(name, namespace.name).status.phase in ("Succeeded", "Failed"),
        90,
        name,
    )
    return kubectl("-n", namespace.name, "logs", name)


# The debian image has no server: perl, which every Debian has, serves TCP; it answers each line with the line, as long as one likes.
PERL = (
    'exec perl -MIO::Socket::INET -e \'$SIG{CHLD}="IGNORE"; $s=IO::Socket::INET->new(LocalPort=>8080,Listen=>99,ReuseAddr=>1) or die;'
    "while($c=$s->accept){if(!fork){while(<$c>){print $c $_; $c->flush} exit}}'"
)


@pytest.fixture
def server(namespace: Namespace) -> str:
    pod(namespace, "server", PERL, role="server")
    return address(namespace, "server")


def test_a_policy_denies_and_allows_by_address(namespace: Namespace, server: str) -> None:
    host, port = kubectl(
        "get", "endpointslices", "kubernetes", "-o", "jsonpath={.endpoints[0].addresses[0]} {.ports[0].port}"
    ).split()
    for name, net in (("open", "free"), ("closed", "none"), ("some", "some")):
        pod(namespace, name, "exec sleep 600", net=net)
    policy(namespace, "none", [], net="none")
    policy(namespace, "some", [{"to": [{"ipBlock": {"cidr": f"{server}/32"}}]}], net="some")
    for name in ("open", "closed", "some"):
        address(namespace, name)
    until(lambda: reach(namespace, "open", server, 8080) == "reached", 30, "the server serves")
    assert reach(namespace, "closed", server, 8080) == "blocked"
    assert reach(namespace, "some", server, 8080) == "reached"
    # The API server, by its service and by its own address, which is the node's.
    found = {
        (name, where): reach(namespace, name, *where)
        for name in ("open", "closed", "some")
        for where in (("10.96.0.1", 443), (host, int(port)))
    }
    assert {name for (name, _), result in found.items() if result == "reached"} == {"open"}, found
    assert sum(result == "reached" for result in found.values()) == 2, found


def test_a_policy_that_was_there_first_holds_from_the_first_packet(namespace: Namespace, server: str) -> None:
    policy(namespace, "none", [], net="none")
    script = LOOP.format(times=10, address=server, port=8080)
    pod(namespace, "free", script, net="free")
    for number in range(3):
        pod(namespace, f"closed-{number}", script, net="none")
    assert "reached" in finished_log(namespace, "free")
    for number in range(3):
        log = finished_log(namespace, f"closed-{number}")
        assert "blocked" in log and "reached" not in log, log


def test_a_policy_leaves_connections_that_are_there(namespace: Namespace, server: str) -> None:
    """As kube-network-policies does it; the API leaves it to the engine."""
    talk = (
        f"until exec 3<>/dev/tcp/{server}/8080; do sleep .2; done; "
        "while echo ping >&3 && read -r -t 2 line <&3; do echo $line; sleep .2; done; echo ended"
    )
    pod(namespace, "talker", talk, net="none")
    until(lambda: "ping" in kubectl("-n", namespace.name, "logs", "talker", check=False), 60, "a conversation")
    policy(namespace, "none", [], net="none")
    until(lambda: reach(namespace, "talker", server, 8080) == "blocked", 60, "the policy holds")
    before = kubectl("-n", namespace.name, "logs", "talker").count("ping")
    until(lambda: kubectl("-n", namespace.name, "logs", "talker").count("ping") > before + 3, 60, "it goes on")
    assert "ended" not in kubectl("-n", namespace.name, "logs", "talker")
