"""What a user's program finds around itself, and how it ends."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from .conftest import Container, first_process, wait_for


def test_no_signal_is_ignored_or_blocked(container: Container) -> None:
    # A shell's background jobs ignore INT; a task about Ctrl-C could not be solved then.
    program = ("/bin/busybox", "grep", "-E", "Sig(Ign|Blk|Cgt)", "/proc/self/status")
    result = container.step("--", *program, agent="command")
    words = result.output.split()
    assert words[::2] == ["SigBlk:", "SigIgn:", "SigCgt:"]
    # 32 and 33 are the C library's own: whoever started the tests may block them, and nobody can let go of them.
    ours = ~(1 << 31 | 1 << 32)
    assert [int(mask, 16) & ours for mask in words[1::2]] == [0, 0, 0]


def test_interrupt_reaches_what_the_test_starts(container: Container) -> None:
    script = "timeout -s INT 0.2 sh -c 'trap \"echo interrupted; exit 5\" INT; while :; do sleep 0.05; done'; echo $?\n"
    assert container.verify(script).output.startswith("interrupted\n")


def test_environment_is_the_container_s_to_the_byte(container: Container) -> None:
    odd = {
        "LOG": "debug", "RUN": "mine", "name": "n", "TOOLS": "t", "STAGES": "s", "KNOWN": "k", "OPT_agent": "x", "ROLE": "r",
        "REPORT_ROLE": "verifier", "ENVIRONMENT": "e", "QUOTED": "q", "IFS": "xyz", "a.b": "dotted", "-dash": "d", "_word": "w",
        "TWO": "line 1\nline 'two' \"three\" $HOME `id` \\", "EMPTY": "", "EQ": "a=b=c", "U": "ü", "TERMINATED": "1", "PIPES": "p",
        "PIPES_OPEN": "1", "CARRY": "c", "WORKDIR": "/nowhere", "OPT_healthcheck_step_command": "exit 1",
    }  # fmt: skip
    container.environment = odd
    result = container.step("--agent-user=agent", "--", "/bin/busybox", "env", "-0", agent="command")
    assert result.error is None
    found = dict(word.split("=", 1) for word in result.output.split("\0") if word)
    assert {key: found.get(key) for key in odd} == odd
    assert set(found) - set(odd) == {"PATH", "HOME", "MULTISTEP_INSTRUCTION_FILE", "MULTISTEP_STEP_NAME"}
    assert found["PATH"] == "/usr/bin:/bin"


def test_many_and_long_variables_arrive(container: Container) -> None:
    container.environment = {f"V{number}": "x" * 200 for number in range(200)} | {"LONG": "y" * 100_000}
    result = container.command('echo "${#LONG} ${#V0} ${#V199}"')
    assert result.output == "100000 200 200\n"


def test_program_has_its_three_descriptors_and_no_more(container: Container) -> None:
    # 10 and up are the shell's own, or came from whoever runs these tests.
    script = "for n in 0 1 2 3 4 5 6 7 8 9; do [ ! -e /proc/$$/fd/$n ] || echo $n; done"
    assert container.command(script).output.split() == ["0", "1", "2"]


@pytest.mark.parametrize("user", ["", "agent", "1000:2000"])
def test_output_can_be_opened_anew_by_its_name(container: Container, user: str) -> None:
    result = container.command("echo one > /dev/stdout; echo two > /proc/self/fd/2", f"--agent-user={user}")
    assert (result.error, result.output) == (None, "one\ntwo\n")


def test_log_is_never_written_through_a_link(container: Container) -> None:
    container.write("step/workdir/setup.sh", "ln -s /etc/passwd /logs/agent/command.txt\n")
    before = container.rootfs("/etc/passwd").read_text()
    result = container.command("echo root::0:0::/:/bin/sh", "--agent-user=agent")
    assert result.error is None
    assert container.rootfs("/etc/passwd").read_text() == before
    log = container.volume / "logs-agent/command.txt"
    assert not log.is_symlink() and log.read_text() == "root::0:0::/:/bin/sh\n"


def test_report_quotes_no_file_that_the_agent_may_not_read(container: Container) -> None:
    container.rootfs("/opt/answer").write_text("42 is the answer")
    container.rootfs("/opt/answer").chmod(0o600)
    script = "echo mine; rm -f /logs/agent/command.txt; ln -s /opt/answer /logs/agent/command.txt; exit 1"
    result = container.command(script, "--agent-user=agent")
    assert (result.error, result.error_output) == ("NonZeroAgentExitCodeError", "mine\n")


def test_pipes_are_out_of_the_agent_s_reach(container: Container) -> None:
    result = container.command("ls /dev/.multistep; echo 0 > /dev/.multistep/status", "--agent-user=agent")
    assert result.output.count("denied") == 2


def test_orphans_are_buried_while_the_agent_works(container: Container) -> None:
    script = "n=0; while [ $n -lt 40 ]; do sh -c 'sleep 0.05 &' ; n=$((n+1)); done; sleep 2.5; grep -l '^State:.Z' /proc/[0-9]*/status | wc -l"
    assert container.command(script).output.strip() == "0"


def test_agent_that_ends_all_other_processes_is_waited_for(container: Container) -> None:
    result = container.command(
        "trap '' TERM; kill -KILL -1; sleep 2; touch /app/finished; echo heard; exit 4", "--agent-timeout=30"
    )
    assert result.error == "NonZeroAgentExitCodeError"
    # Nobody is left to tell with which code it ended.
    assert result.report["error"]["exitCode"] == 137
    assert container.rootfs("/app/finished").exists()
    assert "heard" in result.output


def test_agent_that_ends_our_helpers_still_has_its_time_limit(container: Container) -> None:
    result = container.command("kill -KILL -1; while :; do sleep 1; done", "--agent-timeout=1.5", "--kill-grace=1")
    assert result.error == "AgentTimeoutError"


def test_agent_that_ignores_term_is_killed(container: Container) -> None:
    script = "trap 'echo not now' TERM; touch /app/up; while :; do sleep 0.1; done"
    result = container.command(script, "--agent-timeout=0.5", "--kill-grace=0.5")
    assert (result.error, result.stages["agent"]["exitCode"]) == ("AgentTimeoutError", 124)
    assert "not now" in result.output


def test_agent_that_stopped_itself_is_ended_too(container: Container) -> None:
    result = container.command("kill -STOP $$", "--agent-timeout=0.5", "--kill-grace=0.2")
    assert result.error == "AgentTimeoutError"


# Every process makes the next one and is gone: nobody can look at them all and then end them. (It ends by itself some day.)
HYDRA = "#!/bin/sh\ntrap '' TERM\n[ $1 -gt 15000 ] || /app/hydra $(($1 + 1)) &\n"


def test_endless_forks_are_ended_and_the_server_is_not(container: Container) -> None:
    container.write("step/workdir/setup.sh", "sleep 1000 >/dev/null 2>&1 & echo $! > /app/server\n")
    container.write("step/workdir/hydra", HYDRA, 0o755)
    hook = "--collect=20\n\ncat /proc/$(cat server)/comm; cat /proc/[0-9]*/comm | grep -c '^hydra'"
    script = "/app/hydra 1; sleep 1000"
    result = container.command(script, "--agent-timeout=0.5", "--kill-grace=0.2", hook)
    assert (result.error, result.output) == ("AgentTimeoutError", "sleep\n0\n")


def test_orphans_that_end_all_the_time_do_not_put_off_the_limit(container: Container) -> None:
    container.write("step/workdir/hydra", HYDRA, 0o755)
    script = "/app/hydra 1; sleep 3; touch /app/too-late; sleep 1000"
    result = container.command(script, "--agent-timeout=0.5", "--kill-grace=0.2")
    assert result.error == "AgentTimeoutError"
    assert not container.rootfs("/app/too-late").exists()


@pytest.mark.parametrize(("limit", "error"), [("inf", None), ("none", None), ("99999999999999999999", None), ("30.5", None), ("nan", "AgentTimeoutError"), ("-inf", "AgentTimeoutError"), ("0.001", "AgentTimeoutError")])  # fmt: skip
def test_odd_limits_mean_what_they_do_in_the_reference(container: Container, limit: str, error: str | None) -> None:
    assert container.command("sleep 0.3", f"--agent-timeout={limit}").error == error


def test_end_of_one_program_is_never_taken_for_another_s(container: Container) -> None:
    # The first try hangs and is ended; what it may have told of its end must not become the agent's.
    check = "[ -e /app/second ] || { touch /app/second; trap 'exit 9' TERM; while :; do sleep 0.05; done; }"
    flags = ("--healthcheck-step-timeout=0.3", "--healthcheck-step-interval=0.05", "--healthcheck-step-retries=5")
    result = container.command("exit 6", f"--healthcheck-step-command={check}", *flags)
    assert result.report["error"]["exitCode"] == 6


def test_background_process_does_not_delay_the_next_stage(container: Container) -> None:
    # Waiting for the pipe's end would take the two seconds after which it is given up, each time.
    uptime = "read -r up rest < /proc/uptime; echo ${up%.*}${up#*.}"
    container.write("step/workdir/setup.sh", f"sleep 1000 & {uptime}\n")
    took = []
    for _ in range(3):
        before, after = map(int, container.command(uptime).output.split())
        took.append(after - before)
    assert min(took) < 100


def test_output_of_the_last_moment_is_whole(container: Container) -> None:
    result = container.command("sleep 1000 & yes 0123456789 | head -c 3000000; echo; echo end")
    assert len(result.output) == 3_000_005 and result.output.endswith("\nend\n")
    assert (container.volume / "logs-agent/command.txt").stat().st_size == 3_000_005


@pytest.mark.parametrize("stubborn", [False, True])
def test_told_to_end_it_takes_no_more_than_the_kubelet_gives(container: Container, stubborn: bool) -> None:
    trap = "trap '' TERM; " if stubborn else ""
    script = f"{trap}echo up > /app/up; while :; do sleep 0.1; done"
    process = container.popen(
        "step", "--workdir=/app", "--agent=command", "--kill-grace=1000", "--", "sh", "-c", script
    )
    wait_for(container.rootfs("/app/up"))
    before = time.monotonic()
    os.kill(first_process(process), signal.SIGTERM)
    result = container.finish(process)
    assert (result.exit_code, result.error) == (143, "TerminatedError")
    assert time.monotonic() - before < 20


def test_told_to_end_between_healthchecks(container: Container) -> None:
    flags = ("--healthcheck-step-command=echo x > /app/tried; false", "--healthcheck-step-interval=1000")
    process = container.popen("step", "--workdir=/app", "--agent=nop", *flags)
    wait_for(container.rootfs("/app/tried"))
    time.sleep(0.2)
    os.kill(first_process(process), signal.SIGTERM)
    assert container.finish(process).error == "TerminatedError"


def test_half_of_an_exit_code_is_none(tools: Path, tmp_path: Path) -> None:
    """A program's end is told in a file, because a shell's `read -t` on a pipe drops what it has when its time is over: 41 became 1."""
    script = f"""
        TOOLS={tools} PIPES={tmp_path}; . {tools}/runner/stage.sh; LAUNCHES=1
        look() {{ if has_ended; then echo "$STAGE_EXIT"; else echo no; fi; }}
        look; : >$PIPES/ended-1; look; printf 4 >$PIPES/ended-1; look; printf '41 .\n' >$PIPES/ended-1; look
    """
    found = subprocess.check_output([tools / "busybox", "sh", "-c", script], text=True)
    assert found.split() == ["no", "no", "no", "41"]


def _bring_bash(container: Container) -> None:
    bash = shutil.which("bash") or ""
    shutil.copy(bash, container.root / "bin/bash")
    libraries = subprocess.check_output(["ldd", bash], text=True).split()
    for library in {word for word in libraries if word.startswith("/")}:
        target = Path(f"{container.root}{library}")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, target)


@pytest.mark.skipif(not shutil.which("ldd"), reason="needs ldd")
def test_scripts_are_run_with_the_image_s_bash(container: Container) -> None:
    _bring_bash(container)
    proof = '[[ -n $BASH_VERSION ]] && words=(a b) && echo "${#words[@]} $0"'
    container.write("step/workdir/setup.sh", f"{proof}\n")
    container.write("solution/solve.sh", f"{proof}\n")
    result = container.step(f"--healthcheck-step-command={proof}")
    assert result.error is None
    assert result.output == "2 /app/setup.sh\n2 /bin/bash\n2 /solution/solve.sh\n"
    assert container.verify(f"{proof}\n").output == "2 /tests/test.sh\n"
    # And with a first line for another shell, that one runs it.
    assert container.verify("#!/bin/sh\necho ${BASH_VERSION:-none}\n").output == "none\n"
