"""The real runner, with the real busybox and gosu, as process 1 of private namespaces in a small root filesystem."""

import base64
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from multistep.pods.reports import ProbeReport, SeedReport, StepReport, VerifierReport, parse_report

MODELS = {"probe": ProbeReport, "seed": SeedReport, "step": StepReport, "verifier": VerifierReport}
RUNNER = Path(__file__).parents[3] / "operator/multistep/runner"

ENTER = r"""
set -e
root=$1; shift
mount --make-rprivate /
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/dev"
mknod -m 666 "$root/dev/null" c 1 3
while [ "$1" != -- ]; do
  mkdir -p "$root$2"
  mount --bind "$1" "$root$2"
  shift 2
done
shift
[ -z "$VOLUME_SIZE" ] || mount -t tmpfs -o "size=$VOLUME_SIZE" tmpfs "$root/.multistep/volume"
ln -s /proc/self/fd/1 "$root/dev/stdout"
exec env -i PATH=/usr/bin:/bin HOME=/root "$@"
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.req_root)
            if os.geteuid() != 0 or not shutil.which("gosu") or not Path("/usr/bin/busybox").exists():
                item.add_marker(pytest.mark.skip(reason="needs root, gosu and busybox-static (see `make setup`)"))


@pytest.fixture(scope="session")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tools as `stage` puts them onto the volume."""
    directory = tmp_path_factory.mktemp("tools")
    directory.chmod(0o755)
    shutil.copy("/usr/bin/busybox", directory / "busybox")
    shutil.copy(shutil.which("gosu") or "", directory / "gosu")
    shutil.copytree(RUNNER, directory / "runner")
    (directory / "applets").mkdir()
    for applet in subprocess.check_output([directory / "busybox", "--list"], text=True).split():
        (directory / "applets" / applet).symlink_to("../busybox")
    return directory


def wait_for(path: Path, seconds: float = 30) -> None:
    """Wait until a program in the container has written a file."""
    deadline = time.monotonic() + seconds
    while not (path.exists() and path.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert path.exists()


def fresh_signals() -> None:
    """Begin as a container does, whatever the tests' own starter ignores or blocks: nohup, a shell's background job, CI."""
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def first_process(process: "subprocess.Popen[str]") -> int:
    """The number that the container's first process has outside."""
    return int(subprocess.check_output(["pgrep", "-P", str(process.pid)], text=True))


@dataclass
class Result:
    exit_code: int
    output: str
    report: dict[str, Any]

    @property
    def error(self) -> str | None:
        return self.report["error"] and self.report["error"]["type"]

    @property
    def error_output(self) -> str:
        return base64.b64decode(self.report["error"]["outputBase64"]).decode(errors="replace")

    @property
    def stages(self) -> dict[str, dict[str, Any]]:
        return {stage["name"]: stage for stage in self.report["stages"]}

    @property
    def reward(self) -> bytes | None:
        reward = self.report["reward"]
        return None if reward is None else base64.b64decode(reward["contentBase64"])


@dataclass
class Container:
    """A container's filesystem; each run is a new pod on the same volume."""

    root: Path
    volume: Path
    tools: Path
    persistent: list[str] = field(default_factory=lambda: ["etc", "opt", "root", "tmp", "var", "app", "logs", "home"])
    number: int = 0
    environment: dict[str, str] = field(default_factory=dict)
    volume_size: str = ""
    directory: str = "/"
    user: str = "0"
    artifacts: bool = False
    started: list["subprocess.Popen[str]"] = field(default_factory=list)

    def write(self, path: str, text: str, mode: int = 0o644) -> Path:
        target = self.volume / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        target.chmod(mode)
        return target

    def rootfs(self, path: str) -> Path:
        """A path below a persistent directory, as it lies on the volume."""
        return self.volume / "rootfs" / path.lstrip("/")

    def popen(self, role: str, *flags: str, run: str | None = None, **mounts: str) -> subprocess.Popen[str]:
        self.number += 1
        root = self.root.parent / f"pod-{self.number}"
        subprocess.check_call(["cp", "-a", self.root, root])
        reports = self.volume / "reports"
        reports.mkdir(exist_ok=True)
        log = reports / f"termination-{self.number}"
        log.touch()
        log.chmod(0o666)
        binds: list[str] = [str(self.tools), "/.multistep/bin"]
        for name in self.persistent:
            if (self.volume / "rootfs" / name).is_dir():
                binds += [str(self.volume / "rootfs" / name), f"/{name}"]
        standard = {
            "/logs/agent": "logs-agent",
            "/logs/artifacts": "logs-artifacts",
            "/.multistep/run": run or f"run-{self.number}",
            "/.multistep/carry": "carry",
            "/.multistep/step": "step",
            "/.multistep/reports": "reports",
        }
        if self.artifacts:
            standard["/.multistep/artifacts"] = "artifacts"
        if role == "verify":
            standard["/logs/verifier"] = "logs-verifier"
        for path, source in {**standard, **{f"/.multistep/{key}": value for key, value in mounts.items()}}.items():
            (self.volume / source).mkdir(parents=True, exist_ok=True)
            binds += [str(self.volume / source), path]
        binds += [str(self.volume), "/.multistep/volume"]
        command = [
            *(
                "/usr/sbin/chroot",
                str(root),
                "/.multistep/bin/gosu",
                self.user,
                "/.multistep/bin/busybox",
                "env",
                "HOME=/root",
            ),
            f"MULTISTEP_TERMINATION_LOG=/.multistep/reports/{log.name}",
            *(f"{name}={value}" for name, value in self.environment.items()),
        ]
        # As the container's runtime does: into the working directory, then the program.
        enter = 'cd "$1" && shift && exec "$@"'
        command += (
            ["/.multistep/bin/busybox", "sh", "-c", enter, "enter", self.directory] if self.directory != "/" else []
        )
        command += ["/.multistep/bin/busybox", "sh", "/.multistep/bin/runner/runner.sh", role, *flags]
        process = subprocess.Popen(
            [
                "unshare",
                "-m",
                "-p",
                "-f",
                "--kill-child",
                "sh",
                "-c",
                ENTER,
                "enter",
                str(root),
                *binds,
                "--",
                *command,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            errors="replace",
            start_new_session=True,
            env={**os.environ, "VOLUME_SIZE": self.volume_size},
            preexec_fn=fresh_signals,
        )
        self.started.append(process)
        return process

    def end(self) -> None:
        """End what a failed test left behind."""
        for process in self.started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()

    def finish(self, process: subprocess.Popen[str], seconds: float = 40) -> Result:
        number = self.number
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        text = (self.volume / f"reports/termination-{number}").read_bytes().decode("utf-8", errors="strict")
        assert len(text.encode()) <= 4000
        report = json.loads(text)
        if process.returncode in (0, 143):
            # The operator reads these; of other exit codes it reads the code.
            parse_report(MODELS[report["role"]], text)
        return Result(process.returncode, output, report)

    def run(self, role: str, *flags: str, run: str | None = None, **mounts: str) -> Result:
        return self.finish(self.popen(role, *flags, run=run, **mounts))

    def step(self, *flags: str, agent: str = "oracle", run: str | None = None) -> Result:
        mounts = {"solution": "solution"} if (self.volume / "solution").is_dir() and agent == "oracle" else {}
        if (self.volume / "environment").is_dir():
            mounts["environment"] = "environment"
        return self.run("step", "--workdir=/app", f"--agent={agent}", "--step-name=one", *flags, run=run, **mounts)

    def command(self, script: str, *flags: str) -> Result:
        return self.step(*flags, "--", "sh", "-c", script, agent="command")

    def verify(self, test: str | None = None, *flags: str) -> Result:
        if test is not None:
            self.write("tests-shared/test.sh", test, 0o755)
        mounts = {
            f"tests/{kind}": f"tests-{kind}" for kind in ("shared", "step") if (self.volume / f"tests-{kind}").is_dir()
        }
        return self.run("verify", "--workdir=/app", "--step-name=one", *flags, **mounts)


@pytest.fixture
def container(tmp_path: Path, tools: Path) -> Iterator[Container]:
    root = tmp_path / "image"
    for name in (
        "bin",
        "proc",
        "dev",
        "sys",
        "etc",
        "opt",
        "root",
        "tmp",
        "var",
        "app",
        "home/agent",
        ".multistep",
        "usr/bin",
    ):
        (root / name).mkdir(parents=True)
    (root / "tmp").chmod(0o1777)
    (root / "root").chmod(0o700)
    shutil.copy("/usr/bin/busybox", root / "bin/busybox")
    for applet in subprocess.check_output([root / "bin/busybox", "--list"], text=True).split():
        if applet not in ("busybox", "bash"):
            (root / "bin" / applet).symlink_to("busybox")
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\nagent:x:1000:1000::/home/agent:/bin/sh\n")
    (root / "etc/group").write_text("root:x:0:\nagent:x:1000:\nextra:x:2000:agent\n")
    shutil.chown(root / "home/agent", 1000, 1000)
    volume = tmp_path / "volume"
    volume.mkdir()
    result = Container(root, volume, tools)
    result.write("step/instruction.md", "say hello\n")
    rootfs = volume / "rootfs"
    rootfs.mkdir()
    for name in result.persistent:
        source = root / name
        if source.is_dir():
            subprocess.check_call(["cp", "-a", source, rootfs / name])
        else:
            (rootfs / name).mkdir()
    yield result
    result.end()
