"""The task's MCP servers, as agents read them: the `mcpServers` file that most of them share."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from multistep.api.pod_template import EnvVar
from multistep.task import McpServerConfig, Problem

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def mcp_config(servers: Sequence[McpServerConfig]) -> str:
    """Return the file's content. References in headers stay as they are: agents expand them from their environment."""
    return json.dumps({"mcpServers": {server.name: _entry(server) for server in servers}})


def unresolved_headers(servers: Sequence[McpServerConfig], provided: Sequence[EnvVar]) -> list[Problem]:
    """Return a problem for each `${VAR}` of a header that the agent's environment does not have."""
    names = {variable.name for variable in provided}
    return [
        Problem(
            "task.toml",
            f"environment.mcp_servers[{number}].headers.{header}",
            repr(value),
            f"nobody provides the variable {name}: add it to spec.agent.env of the trial",
        )
        for number, server in enumerate(servers)
        for header, value in server.headers.items()
        for name in _REFERENCE.findall(value)
        if name not in names
    ]


def _entry(server: McpServerConfig) -> dict[str, Any]:
    if server.transport == "stdio":
        return {"type": "stdio", "command": server.command, "args": server.args}
    kind = "http" if server.transport == "streamable-http" else server.transport
    return {"type": kind, "url": server.url, **({"headers": server.headers} if server.headers else {})}
