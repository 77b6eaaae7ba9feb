import pytest
from support.world import World, task_files

from multistep.pods.network_engine import NetworkEngine

IMAGE = '[environment]\ndocker_image = "busybox:1"\n'
NO_NETWORK = IMAGE + 'network_mode = "no-network"\n'
NAMES = IMAGE + 'network_mode = "allowlist"\nallowed_hosts = ["pypi.org", "10.0.0.0/8"]\n'
ADDRESSES = IMAGE + 'network_mode = "allowlist"\nallowed_hosts = ["10.1.2.3", "2001:db8::/32"]\n'
SEPARATE = '[verifier]\nenvironment_mode = "separate"\n'
MCP = (
    IMAGE
    + '[[environment.mcp_servers]]\nname = "m"\nurl = "https://m"\nheaders = { Authorization = "Bearer ${TOKEN}" }\n'
)


def message(world: World) -> str:
    world.wake()
    return next(item["message"] for item in world.status["conditions"] if item["type"] == "TaskValid")


def test_separate_verifier_needs_an_image_and_the_trial_may_bring_it() -> None:
    files = {**task_files(2, config=SEPARATE + IMAGE), "tests/Dockerfile": "FROM x\n"}
    text = message(World(files))
    assert "steps[0].verifier.environment.docker_image" in text and "steps[1]" in text
    assert "only tests/Dockerfile" in text and "spec.verifier.image" in text
    world = World(files, verifier={"image": "tests:1"})
    world.wake()
    assert world.condition("TaskValid") == "True"


def test_variables_of_a_separate_verifier_s_environment_have_to_be_there() -> None:
    files = task_files(1, config=IMAGE + '[verifier.environment]\ndocker_image = "v:1"\nenv = { KEY = "${KEY}" }\n')
    assert "steps[0].verifier.environment.env.KEY" in message(World(files))


@pytest.mark.parametrize(
    ("config", "engine", "gap"),
    [
        (IMAGE, NetworkEngine.NONE, None),
        (NO_NETWORK, NetworkEngine.NONE, "nothing is known to enforce network policies"),
        (NO_NETWORK, NetworkEngine.NETWORK_POLICY, None),
        (ADDRESSES, NetworkEngine.NETWORK_POLICY, None),
        (NAMES, NetworkEngine.NETWORK_POLICY, "hosts are allowed by name (pypi.org), which needs Cilium"),
        (NAMES, NetworkEngine.CILIUM, None),
        (IMAGE + '[agent]\nnetwork_mode = "no-network"\n', NetworkEngine.NONE, "agent of step 'step 1'"),
        (IMAGE + '[verifier]\nnetwork_mode = "no-network"\n', NetworkEngine.NONE, "verifier of step 'step 1'"),
    ],
)
def test_network_that_cannot_be_restricted_is_refused_or_said(
    config: str, engine: NetworkEngine, gap: str | None
) -> None:
    world = World(task_files(1, config=config), engine=engine)
    text = message(world)
    assert (world.condition("TaskValid") == "False") is (gap is not None)
    assert gap is None or (gap in text and "BestEffort" in text)
    eager = World(task_files(1, config=config), engine=engine, networkPolicy={"enforcement": "BestEffort"})
    eager.wake()
    assert eager.condition("TaskValid") == "True"
    expected = None if config == IMAGE else "True" if gap is None else "False"
    assert eager.condition("NetworkEnforced") == expected
    assert any(event.reason == "NetworkNotEnforced" for event in eager.events) is (expected == "False")


def test_hosts_of_the_trial_are_checked_with_their_path() -> None:
    text = message(World(agent={"name": "nop", "extraAllowedHosts": ["https://x", "ok.com"]}))
    assert "spec.agent.extraAllowedHosts: found 'https://x'" in text or (
        "spec.agent.extraAllowedHosts" in text and "https://x" in text
    )
    assert "ok.com" not in text


def test_verifier_in_the_step_pod_cannot_have_another_network_or_another_try() -> None:
    config = IMAGE + '[verifier]\nnetwork_mode = "no-network"\n'
    world = World(
        task_files(1, config=config), engine=NetworkEngine.CILIUM, verifier={"placement": "StepPod", "retries": 1}
    )
    text = message(world)
    assert "spec.verifier.placement" in text and "set verifier.placement to Pod" in text
    assert "spec.verifier.retries" in text


def test_header_of_an_mcp_server_needs_its_variable_in_the_agent_s_environment() -> None:
    agent = {"name": "command", "command": ["x"]}
    assert "spec.agent.env" in message(World(task_files(1, config=MCP), agent=agent))
    world = World(task_files(1, config=MCP), agent={**agent, "env": [{"name": "TOKEN", "value": "t"}]})
    world.wake()
    assert world.condition("TaskValid") == "True"
    oracle = World(task_files(1, config=MCP))
    oracle.wake()
    assert oracle.condition("TaskValid") == "True"
