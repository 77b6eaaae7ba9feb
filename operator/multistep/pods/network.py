"""The network policy objects of a trial: one for each restriction, found by the label of the pods that it holds for."""

from __future__ import annotations

from typing import Any

from multistep.pods.common import Manifest, owner_reference
from multistep.pods.context import TrialContext
from multistep.pods.names import LABEL_TRIAL_UID, labels, network_labels, policy_name
from multistep.pods.network_engine import NetworkEngine, is_address
from multistep.task import NetworkMode, NetworkPolicy

_DNS_PORTS = [{"port": "53", "protocol": "ANY"}]


def policy_objects(context: TrialContext, policy: NetworkPolicy) -> list[Manifest]:
    """Return what has to be there before a pod with this policy is; nothing where all may be reached, or it cannot be expressed."""
    if policy.mode is NetworkMode.PUBLIC:
        return []
    if all(is_address(host) for host in policy.hosts):
        return [_network_policy(context, policy)]
    return [_cilium_policy(context, policy)] if context.network_engine is NetworkEngine.CILIUM else []


def _network_policy(context: TrialContext, policy: NetworkPolicy) -> Manifest:
    egress = [{"to": [{"ipBlock": {"cidr": _cidr(host)}} for host in policy.hosts]}] if policy.hosts else []
    spec = {"podSelector": {"matchLabels": _selector(context, policy)}, "policyTypes": ["Ingress", "Egress"]}
    return _object(context, policy, "networking.k8s.io/v1", "NetworkPolicy", {**spec, "ingress": [], "egress": egress})


def _cilium_policy(context: TrialContext, policy: NetworkPolicy) -> Manifest:
    names = [_fqdn(host) for host in policy.hosts if not is_address(host)]
    addresses = [_cidr(host) for host in policy.hosts if is_address(host)]
    dns = {"matchLabels": {"k8s:io.kubernetes.pod.namespace": "kube-system", "k8s-app": "kube-dns"}}
    egress: list[Manifest] = [
        # Only these names can be looked up: a question to a name server can carry data, too.
        {"toEndpoints": [dns], "toPorts": [{"ports": _DNS_PORTS, "rules": {"dns": names}}]},
        {"toFQDNs": names},
    ]
    if addresses:
        egress.append({"toCIDR": addresses})
    spec = {"endpointSelector": {"matchLabels": _selector(context, policy)}, "egress": egress}
    return _object(context, policy, "cilium.io/v2", "CiliumNetworkPolicy", spec)


def _selector(context: TrialContext, policy: NetworkPolicy) -> dict[str, str]:
    return {LABEL_TRIAL_UID: context.identity.uid, **network_labels(policy)}


def _object(context: TrialContext, policy: NetworkPolicy, version: str, kind: str, spec: dict[str, Any]) -> Manifest:
    metadata = {
        "name": policy_name(context.identity, policy),
        "namespace": context.identity.namespace,
        "labels": labels(context.identity, context.attempt),
        "ownerReferences": [owner_reference(context.identity)],
    }
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def _cidr(host: str) -> str:
    return host if "/" in host else f"{host}/{128 if ':' in host else 32}"


def _fqdn(host: str) -> dict[str, str]:
    return {"matchPattern": host} if host.startswith("*.") else {"matchName": host}
