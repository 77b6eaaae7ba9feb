import pytest
from support.world import World, step_message, task_files


@pytest.mark.parametrize(
    ("spec", "agent", "verifier"),
    [
        ({}, 100, 50),
        ({"timeoutMultiplier": 2}, 200, 100),
        ({"agent": {"name": "nop", "timeoutSeconds": 7.5}, "timeoutMultiplier": 2}, 15, 100),
        ({"agent": {"name": "nop", "timeoutSeconds": 0, "maxTimeoutSeconds": 30}}, 30, 50),
        ({"agent": {"name": "nop", "timeoutMultiplier": 0.5}, "timeoutMultiplier": 2}, 50, 100),
        ({"verifier": {"timeoutSeconds": 20, "timeoutMultiplier": 3}}, 100, 60),
        ({"verifier": {"maxTimeoutSeconds": 10}}, 100, 10),
        ({"agent": {"name": "nop", "timeoutMultiplier": 0}}, 0, 50),
    ],
)
def test_trial_overrides_the_times_of_its_task(spec: dict, agent: float, verifier: float) -> None:
    world = World(task_files(config="[agent]\ntimeout_sec = 100\n[verifier]\ntimeout_sec = 50"), **spec)
    world.prepare()
    settings = world.status["steps"][0]["settings"]
    assert (settings["agentTimeoutSeconds"], settings["verifierTimeoutSeconds"]) == (agent, verifier)
    arguments = world.pod("-step-1")["spec"]["containers"][0]["args"]
    assert f"--agent-timeout={agent:g}" in arguments
    world.finish("-step-1", step_message())
    world.wake()
    assert f"--timeout={verifier:g}" in world.pod("-verifier-1")["spec"]["containers"][0]["args"]


def test_settings_of_a_step_are_its_own_else_the_task_s() -> None:
    step = "[steps.agent]\ntimeout_sec = 5\nuser = 1000\n[steps.verifier]\nuser = 'root'"
    world = World(task_files(2, config="[agent]\nuser = 'bob'", step_config={1: step}))
    world.prepare()
    world.run_step(1)
    own, inherited = (step["settings"] for step in world.status["steps"])
    assert own == {"agentTimeoutSeconds": 5, "verifierTimeoutSeconds": 600, "agentUser": "1000", "verifierUser": "root"}
    assert inherited == {"verifierTimeoutSeconds": 600, "agentUser": "bob"}


def test_verification_that_is_disabled_runs_the_steps_and_gives_no_reward() -> None:
    world = World(task_files(2, step_config={1: "min_reward = 1.0"}), verifier={"disabled": True})
    world.prepare()
    for number in (1, 2):
        world.finish(f"-step-{number}", step_message())
        world.wake()
    assert (world.status["phase"], world.status["gradedSteps"], world.status["rewardValid"]) == ("Succeeded", 0, False)
    assert "rewards" not in world.status
    assert not [name for name in world.pods if "verifier" in name]


def test_error_of_the_agent_ends_a_trial_that_nobody_verifies() -> None:
    world = World(verifier={"disabled": True})
    world.prepare()
    world.finish("-step-1", step_message("AgentTimeoutError"))
    world.wake()
    assert (world.status["phase"], world.status["error"]["type"]) == ("Failed", "AgentTimeoutError")
