"""A step in two pods, and what a command agent is told of its environment."""

import json

from .conftest import Container


def test_setup_and_agent_in_pods_of_their_own(container: Container) -> None:
    container.write("step/workdir/setup.sh", "echo set-up >>/app/log\n", 0o755)
    first = container.run("step", "--workdir=/app", "--agent=nop", "--part=setup", "--step-name=one",
                          "--healthcheck-step-command=test -f /app/log", run="setup")  # fmt: skip
    assert list(first.stages) == ["workdir", "setup", "healthcheck"] and first.error is None
    second = container.step("--part=agent", "--", "sh", "-c", "echo agent >>/app/log", agent="command", run="step")
    assert list(second.stages) == ["agent"]
    assert container.rootfs("app/log").read_text() == "set-up\nagent\n"


def test_each_part_runs_once(container: Container) -> None:
    flags = ("--workdir=/app", "--agent=nop", "--part=setup", "--step-name=one")
    assert container.run("step", *flags, run="setup").error is None
    assert container.run("step", *flags, run="setup").error == "StepAlreadyStartedError"


def test_command_agent_is_told_of_mcp_servers_and_skills(container: Container) -> None:
    config = json.dumps({"mcpServers": {"it's": {"type": "http", "url": "https://x", "headers": {"A": "${TOKEN}"}}}})
    result = container.step(
        f"--mcp-config={config}", "--skills-dir=/my skills", "--agent-user=agent", "--", "sh", "-c",
        'cat "$MULTISTEP_MCP_CONFIG_FILE"; echo "$MULTISTEP_SKILLS_DIR"', agent="command",
    )  # fmt: skip
    text, skills, _ = result.output.split("\n")
    assert json.loads(text) == json.loads(config) and skills == "/my skills"


def test_without_servers_nothing_is_told(container: Container) -> None:
    assert container.command("env | grep -c -e MCP -e SKILLS").output == "0\n"
