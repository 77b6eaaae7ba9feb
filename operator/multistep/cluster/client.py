"""A thin layer over the official client: raw JSON in and out, errors with the API server's own words.

The client's models are left aside on purpose: reading a pod through them costs more than all the rest of a pass.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kubernetes import aio
from kubernetes.aio.client import ApiClient

JsonObject = dict[str, Any]

REQUEST_TIMEOUT_SECONDS = 30


class ApiError(Exception):
    """The API server answered with an error.

    Attributes:
        code: the HTTP status.
        reason: the machine-readable reason of the Status object, such as AlreadyExists.
    """

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason


class Client:
    """Requests to the API server, one connection pool."""

    def __init__(self, api: ApiClient) -> None:
        self._api = api

    @classmethod
    async def connect(cls, context: str | None = None) -> Client:
        """Connect with the user's kubeconfig, and a context of it if one is named, else with the pod's service account.

        Raises:
            ConfigException: there is neither.
        """
        await aio.config.load_config(**({"context": context} if context else {}))  # type: ignore[no-untyped-call]
        return cls(ApiClient())

    async def close(self) -> None:
        """Close the connections."""
        await self._api.close()  # type: ignore[no-untyped-call]

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> JsonObject:
        """Read an object or a list."""
        return _object(await self._request("GET", path, query=query))

    async def get_or_none(self, path: str) -> JsonObject | None:
        """Read an object; None where there is none."""
        try:
            return await self.get(path)
        except ApiError as error:
            if error.code == 404:
                return None
            raise

    async def get_text(self, path: str, query: Mapping[str, str]) -> str:
        """Read plain text (a log)."""
        return (await self._request("GET", path, query=query)).decode("utf-8", errors="replace")

    async def create(self, path: str, manifest: JsonObject) -> JsonObject:
        """Create an object in a collection."""
        return _object(await self._request("POST", path, body=manifest))

    async def replace(self, path: str, manifest: JsonObject) -> JsonObject:
        """Replace an object; its resourceVersion makes the API server refuse a stale writer."""
        return _object(await self._request("PUT", path, body=manifest))

    async def patch(self, path: str, patch: JsonObject) -> JsonObject:
        """Apply a JSON merge patch."""
        return _object(await self._request("PATCH", path, body=patch, content_type="application/merge-patch+json"))

    async def delete(
        self, path: str, options: JsonObject | None = None, query: Mapping[str, str] | None = None
    ) -> None:
        """Delete an object, or what a query selects of a collection; that it is gone already is success."""
        try:
            await self._request("DELETE", path, query=query, body=options)
        except ApiError as error:
            if error.code != 404:
                raise

    async def _request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: JsonObject | None = None,
        content_type: str = "application/json",
    ) -> bytes:
        headers = {"Accept": "application/json, */*"}
        if body is not None:
            headers["Content-Type"] = content_type
        prepared = await self._api.param_serialize(
            method=method,
            resource_path=path,
            query_params=list((query or {}).items()),
            header_params=headers,
            body=body,
            auth_settings=["BearerToken"],
        )
        response = await self._api.call_api(*prepared, _request_timeout=REQUEST_TIMEOUT_SECONDS)
        data = bytes(await response.read() or b"")  # type: ignore[no-untyped-call]
        if response.status >= 400:
            raise _error(response.status, data)
        return data


def _object(data: bytes) -> JsonObject:
    result: JsonObject = json.loads(data)
    return result


def _error(code: int, data: bytes) -> ApiError:
    try:
        status = json.loads(data)
        return ApiError(code, str(status.get("reason", "")), str(status.get("message", "")))
    except (ValueError, AttributeError):
        return ApiError(code, "", data.decode("utf-8", errors="replace")[:500])
