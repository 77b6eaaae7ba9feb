"""Where things lie: on the trial's volume, and inside the containers. The runner's README describes the same paths."""

from __future__ import annotations

from typing import Any

VOLUME = "workspace"
"""Name of the pod volume that is the trial's claim."""

TOOLS_MOUNT = "/.multistep/bin"
RUN_MOUNT = "/.multistep/run"
CARRY_MOUNT = "/.multistep/carry"
SEED_MOUNT = "/.multistep/volume"
INSTRUCTION_MOUNT = "/.multistep/step/instruction.md"
STEP_WORKDIR_MOUNT = "/.multistep/step/workdir"
ENVIRONMENT_MOUNT = "/.multistep/environment"
ARTIFACTS_MOUNT = "/.multistep/artifacts"
SOLUTION_MOUNT = "/.multistep/solution"
SHARED_TESTS_MOUNT = "/.multistep/tests/shared"
STEP_TESTS_MOUNT = "/.multistep/tests/step"
TURN_MOUNT = "/.multistep/turn"
PROBE_MOUNT = "/.multistep/probe"

STAGE_MOUNT = "/workspace"
BUNDLE_MOUNT = "/bundle"

TOOLS = "tools"
TASK = "task"
ROOT_FILESYSTEM = "rootfs"
WORKDIR = "workdir"
CARRY = "carry"
AGENT_BINARIES = "agent"
TRIAL = "trial"

Mount = dict[str, Any]


def step_source(step_name: str, entry: str) -> str:
    """Return the path on the volume of an entry of the task's folder of a step, such as `workdir`."""
    return f"{TASK}/steps/{step_name}/{entry}"


def step_results(step_name: str, entry: str) -> str:
    """Return the path on the volume of a step's results, in Harbor's trial layout (agent, verifier, artifacts)."""
    return f"{TRIAL}/steps/{step_name}/{entry}"


def run_directory(role: str, step_index: int, number: int = 1) -> str:
    """Return the path on the volume of a pod's own records (the at-most-once marker among them)."""
    return f"run/{role}-{step_index}" + ("" if number == 1 else f"-{number}")


def mount(path: str, sub_path: str | None, *, read_only: bool = False) -> Mount:
    """Return a volume mount of a part of the trial's volume, or of all of it."""
    result: Mount = {"name": VOLUME, "mountPath": path}
    if sub_path is not None:
        result["subPath"] = sub_path
    if read_only:
        result["readOnly"] = True
    return result


TOOLS_VOLUME_MOUNT = mount(TOOLS_MOUNT, TOOLS, read_only=True)

TURN_VOLUME = {"name": "turn", "emptyDir": {}}
TURN_VOLUME_MOUNT = {"name": "turn", "mountPath": TURN_MOUNT}
"""Where the two containers of a step pod that is graded in place say whose turn it is."""

PROBE_VOLUME = {"name": "probe", "emptyDir": {}}
PROBE_VOLUME_MOUNT = {"name": "probe", "mountPath": PROBE_MOUNT}
"""Where a verifier's image says who its own user is."""
