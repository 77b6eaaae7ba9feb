"""Addresses of objects on the API server."""

from __future__ import annotations

from urllib.parse import quote

from multistep.api.common import GROUP, PLURAL, VERSION

_COLLECTIONS = {"Pod": "pods", "PersistentVolumeClaim": "persistentvolumeclaims", "ConfigMap": "configmaps"}


def trial(namespace: str, name: str) -> str:
    """Return the path of a MultiStepTrial."""
    return f"/apis/{GROUP}/{VERSION}/namespaces/{quote(namespace)}/{PLURAL}/{quote(name)}"


def core(namespace: str, collection: str, name: str | None = None) -> str:
    """Return the path of an object, or a collection, of the core group."""
    path = f"/api/v1/namespaces/{quote(namespace)}/{collection}"
    return path if name is None else f"{path}/{quote(name)}"


def collection_of(kind: str) -> str:
    """Return the plural of a kind of the children that trials have."""
    return _COLLECTIONS[kind]
