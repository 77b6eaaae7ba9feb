"""What enforces network policies in a cluster, and what it can therefore not enforce."""

from __future__ import annotations

from enum import StrEnum
from ipaddress import ip_network

from multistep.task import NetworkMode, NetworkPolicy


class NetworkEngine(StrEnum):
    """What is known of the cluster's network policies. The API server accepts them whether or not anything enforces them."""

    NONE = "None"
    """Nothing is known to enforce them."""
    NETWORK_POLICY = "NetworkPolicy"
    """Kubernetes' own NetworkPolicy is enforced: pods, addresses and ranges, no names."""
    CILIUM = "Cilium"
    """CiliumNetworkPolicy is enforced, too: names of hosts."""


def is_address(host: str) -> bool:
    """Whether a host of an allowlist is an address or a CIDR range, and not a name."""
    try:
        ip_network(host)
    except ValueError:
        return False
    return True


def unenforceable(policy: NetworkPolicy, engine: NetworkEngine) -> str | None:
    """Say why a policy cannot be enforced here; None where it can."""
    if policy.mode is NetworkMode.PUBLIC:
        return None
    if engine is NetworkEngine.NONE:
        return (
            "nothing is known to enforce network policies in this cluster: where something does, let the operator's administrator "
            "set the chart's networkPolicy.engine"
        )
    names = [host for host in policy.hosts if not is_address(host)]
    if names and engine is not NetworkEngine.CILIUM:
        return f"hosts are allowed by name ({', '.join(names[:5])}), which needs Cilium: Kubernetes' own policies know addresses only"
    return None
