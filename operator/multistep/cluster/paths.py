"""Addresses of objects on the API server."""

from __future__ import annotations

from urllib.parse import quote

from multistep.api.common import GROUP, PLURAL, VERSION

_COLLECTIONS = {
    "Pod": "/api/v1 pods",
    "PersistentVolumeClaim": "/api/v1 persistentvolumeclaims",
    "ConfigMap": "/api/v1 configmaps",
    "NetworkPolicy": "/apis/networking.k8s.io/v1 networkpolicies",
    "CiliumNetworkPolicy": "/apis/cilium.io/v2 ciliumnetworkpolicies",
}


def trial(namespace: str, name: str) -> str:
    """Return the path of a MultiStepTrial."""
    return f"/apis/{GROUP}/{VERSION}/namespaces/{quote(namespace)}/{PLURAL}/{quote(name)}"


def core(namespace: str, collection: str, name: str | None = None) -> str:
    """Return the path of an object, or a collection, of the core group."""
    path = f"/api/v1/namespaces/{quote(namespace)}/{collection}"
    return path if name is None else f"{path}/{quote(name)}"


def child(namespace: str, kind: str, name: str | None = None) -> str:
    """Return the path of an object, or of the collection, of a kind of the children that trials have."""
    root, collection = _COLLECTIONS[kind].split()
    path = f"{root}/namespaces/{quote(namespace)}/{collection}"
    return path if name is None else f"{path}/{quote(name)}"
