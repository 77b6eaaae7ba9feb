"""The prepare pod, once per attempt: the task onto the volume, and what must persist of the image onto the volume."""

from __future__ import annotations

from multistep.api.spec import AgentImage, MultiStepTrialSpec
from multistep.pods import layout
from multistep.pods.common import Manifest, container, pod
from multistep.pods.context import TrialContext
from multistep.pods.environment import literal
from multistep.pods.names import Role, snapshot_name

STAGE_CONTAINER = "stage"
PROBE_CONTAINER = "probe"
SEED_CONTAINER = "seed"
AGENT_CONTAINER = "agent"
BUNDLE_KEY = "task.tar.gz"


def bundle_config_maps(context: TrialContext) -> list[str]:
    """Return the names of the ConfigMaps that hold the bundle, in order."""
    source = context.spec.task.config_map
    if source is None:
        return [snapshot_name(context.identity)]
    return config_map_parts(source.name, source.parts)


def config_map_parts(name: str, parts: int) -> list[str]:
    """Return the names of the ConfigMaps that a bundle called `name` is split over."""
    return [name, *(f"{name}-part-{number}" for number in range(2, parts + 1))]


COPY_SECONDS = 3600
"""What copying the image's files to the volume may take before Kubernetes ends the prepare pod."""


def prepare_deadline(spec: MultiStepTrialSpec) -> float:
    """Return the seconds that the prepare pod may live at most."""
    return spec.start_deadline_seconds + COPY_SECONDS


def prepare_pod(context: TrialContext) -> Manifest:
    """Return the prepare pod: `stage` first, then `probe` (the image's own user), `seed` and the agent's image side by side."""
    seed = container(
        context,
        SEED_CONTAINER,
        [
            "seed",
            f"--persistence={context.spec.workspace.persistence.value}",
            literal(f"--workdir={context.task.config.environment.workdir or ''}"),
        ],
        [layout.mount(layout.SEED_MOUNT, None)],
    )
    probe = container(context, PROBE_CONTAINER, ["probe"], [])
    # The image's own user is what the probe is there to find out.
    for key in ("runAsUser", "runAsGroup", "runAsNonRoot"):
        del probe["securityContext"][key]
    containers = [seed, probe]
    if context.spec.agent.image is not None:
        containers.append(_agent_container(context, context.spec.agent.image))
    bundle = {
        "name": "bundle",
        "projected": {
            "sources": [
                {"configMap": {"name": name, "items": [{"key": BUNDLE_KEY, "path": f"part-{number:04}"}]}}
                for number, name in enumerate(bundle_config_maps(context))
            ]
        },
    }
    return pod(
        context,
        Role.PREPARE,
        containers,
        init_containers=[_stage_container(context)],
        volumes=[bundle],
        deadline_seconds=prepare_deadline(context.spec),
    )


def _stage_container(context: TrialContext) -> Manifest:
    return {
        "name": STAGE_CONTAINER,
        "image": context.operator_image,
        "args": [
            "stage",
            f"--bundle={layout.BUNDLE_MOUNT}",
            f"--destination={layout.STAGE_MOUNT}",
            f"--digest={context.task.digest}",
        ],
        "volumeMounts": [
            layout.mount(layout.STAGE_MOUNT, None),
            {"name": "bundle", "mountPath": layout.BUNDLE_MOUNT, "readOnly": True},
        ],
        # Root, because the task's files belong to root on the volume, as Harbor uploads them.
        "securityContext": {
            "runAsUser": 0,
            "runAsGroup": 0,
            "runAsNonRoot": False,
            "readOnlyRootFilesystem": True,
            "allowPrivilegeEscalation": False,
        },
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def _agent_container(context: TrialContext, image: AgentImage) -> Manifest:
    copy = container(context, AGENT_CONTAINER, [], [layout.mount(layout.SEED_MOUNT, None)])
    copy["image"] = image.reference
    copy["command"] = [f"{layout.TOOLS_MOUNT}/busybox", "cp", "-a"]
    copy["args"] = [literal(f"{image.path}/."), f"{layout.SEED_MOUNT}/{layout.AGENT_BINARIES}/"]
    copy["terminationMessagePolicy"] = "FallbackToLogsOnError"
    return copy
