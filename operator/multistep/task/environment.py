"""The `[environment]` table: image, resources, env, healthcheck and what else describes the place the agent works in."""

from __future__ import annotations

import math
import re
import string
from enum import StrEnum
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from multistep.task.network import FormatModel, NetworkMode, normalize_host

_HEADER_CHARACTERS = frozenset(string.ascii_letters + string.digits + "!#$%&'*+-.^_`|~")
"""`tchar` of RFC 9110."""

_CREDENTIAL_HEADERS = frozenset({"authorization", "proxy-authorization", "cookie", "x-api-key", "api-key"})
_REFERENCE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\}")


class TaskOS(StrEnum):
    """Operating system of the containers."""

    LINUX = "linux"
    WINDOWS = "windows"


class HealthcheckConfig(FormatModel):
    """A command that says when the environment, or a step's setup, is ready. The settings are those of Docker's HEALTHCHECK."""

    command: str = Field(description="Shell command; exit code 0 means ready.")
    interval_sec: float = Field(default=5.0, description="Seconds between two tries.")
    timeout_sec: float = Field(default=30.0, description="Seconds that one try may take.")
    start_period_sec: float = Field(default=0.0, description="Seconds at the start during which failures do not count.")
    start_interval_sec: float = Field(default=5.0, description="Seconds between two tries during the start period.")
    retries: int = Field(default=3, description="Failures in a row after which the check has failed.")


class TpuConfig(FormatModel):
    """A slice of TPUs."""

    type: str = Field(min_length=1, description="Type of the accelerator, such as v6e.")
    topology: str = Field(description="Dimensions of the slice, such as 2x4.")

    @field_validator("topology")
    @classmethod
    def _check_topology(cls, text: str) -> str:
        text = text.strip()
        sizes = text.split("x")
        if len(sizes) < 2 or not all(size.isdecimal() and size[0] in "123456789" for size in sizes):
            raise ValueError("a topology is a product of positive numbers, such as 2x4 or 2x2x1")
        return text


class McpServerConfig(FormatModel):
    """An MCP server that the agent may use."""

    name: str
    transport: Literal["stdio", "sse", "streamable-http"] = "sse"
    url: str | None = None
    command: str | None = None
    args: list[str] = Field(default_factory=list)
    headers: dict[str, str] = Field(default_factory=dict, exclude_if=lambda headers: not headers)

    @field_validator("transport", mode="before")
    @classmethod
    def _accept_http(cls, value: Any) -> Any:
        return "streamable-http" if value == "http" else value

    @field_validator("headers")
    @classmethod
    def _check_headers(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            _check_header(name, value)
        return headers

    @model_validator(mode="after")
    def _check_transport(self) -> McpServerConfig:
        if self.transport == "stdio":
            if not self.command:
                raise ValueError("transport stdio needs `command`")
            if self.headers:
                raise ValueError("`headers` go with an HTTP transport, not with stdio")
        elif not self.url:
            raise ValueError(f"transport {self.transport} needs `url`")
        return self


def _check_header(name: str, value: str) -> None:
    if not name or not _HEADER_CHARACTERS.issuperset(name):
        raise ValueError(f"{name!r} is no name of an HTTP header")
    if "\r" in value or "\n" in value:
        raise ValueError(f"the header {name} must not hold a line break")
    if "${" in _REFERENCE.sub("", value):
        raise ValueError(f"the header {name} has a reference that is not closed or not well formed: write ${{VAR}}")
    if name.lower() in _CREDENTIAL_HEADERS:
        # A task is published as it is written: it must name the variable that holds a credential, never the credential.
        rest = _REFERENCE.sub(lambda match: "" if match[1] is None else "x", value)
        rest = re.sub(r"^(Bearer|Basic|Token)\s*", "", rest.strip(), flags=re.IGNORECASE)
        if rest.strip():
            raise ValueError(f"the header {name} must name its credential as ${{VAR}} without a default")


class EnvironmentConfig(FormatModel):
    """`[environment]`, and the same table for a verifier's own environment."""

    network_mode: NetworkMode = Field(default=NetworkMode.PUBLIC, description="no-network, public or allowlist.")
    allowed_hosts: list[str] | None = Field(default=None, description="Hosts that an allowlist allows.")
    build_timeout_sec: float = Field(default=600.0, description="Seconds that building the image may take.")
    docker_image: str | None = Field(
        default=None, description="A ready image; environment/Dockerfile is not needed then."
    )
    os: TaskOS = TaskOS.LINUX
    cpus: int | float | None = Field(default=None, description="CPU cores.")
    memory_mb: int | None = Field(default=None, description="Memory in MiB.")
    storage_mb: int | None = Field(default=None, description="Disk space in MiB.")
    gpus: int | None = None
    gpu_types: list[str] | None = None
    tpu: TpuConfig | None = None
    mcp_servers: list[McpServerConfig] = Field(default_factory=list)
    env: dict[str, str] = Field(default_factory=dict, description="Environment variables; a value may be ${VAR}.")
    skills_dir: str | None = None
    healthcheck: HealthcheckConfig | None = None
    workdir: str | None = Field(default=None, description="Working directory; the image's own when absent.")
    allow_internet: bool | None = Field(default=None, exclude=True, description="Deprecated: use network_mode.")

    @field_validator("os", mode="before")
    @classmethod
    def _ignore_case(cls, value: Any) -> Any:
        return value.lower() if isinstance(value, str) else value

    @field_validator("cpus")
    @classmethod
    def _whole_cpus(cls, value: int | float | None) -> int | float | None:
        if isinstance(value, float):
            if not math.isfinite(value):
                raise ValueError("the number of CPUs must be finite")
            if value.is_integer():
                return int(value)
        return value

    @field_validator("allowed_hosts")
    @classmethod
    def _normalize_hosts(cls, hosts: list[str] | None) -> list[str] | None:
        return None if hosts is None else [normalize_host(host) for host in hosts]

    @model_validator(mode="before")
    @classmethod
    def _read_deprecated_sizes(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        data = dict(data)
        for old, new in (("memory", "memory_mb"), ("storage", "storage_mb")):
            text = data.pop(old, None)
            if isinstance(text, str):
                size = _mebibytes(text)
                if data.setdefault(new, size) != size:
                    raise ValueError(f"{old} = {text!r} ({size} MiB) contradicts {new} = {data[new]!r}: keep {new}")
        return data

    @model_validator(mode="after")
    def _check_hosts_need_allowlist(self) -> EnvironmentConfig:
        if self.allowed_hosts and self.network_mode is not NetworkMode.ALLOWLIST:
            raise ValueError('allowed_hosts needs network_mode = "allowlist"')
        return self

    def apply_allow_internet(self) -> None:
        """Let the deprecated `allow_internet` count where neither network_mode nor allowed_hosts is given."""
        if (
            self.allow_internet is not None
            and "network_mode" not in self.model_fields_set
            and self.allowed_hosts is None
        ):
            self.network_mode = NetworkMode.PUBLIC if self.allow_internet else NetworkMode.NO_NETWORK
        self.allow_internet = None


_UNITS = {"G": 1024.0, "M": 1.0, "K": 1 / 1024}


def _mebibytes(text: str) -> int:
    text = text.strip().upper()
    factor = _UNITS.get(text[-1:])
    if factor is None:
        raise ValueError(f"{text!r} is no size: write a number and G, M or K, or better use memory_mb or storage_mb")
    try:
        return int(float(text[:-1]) * factor)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{text!r} is no size: the number before {text[-1]} cannot be used") from error
