import json

from multistep.pods.collection import artifact_arguments, collect_arguments
from multistep.task import ArtifactConfig, CollectConfig

from .conftest import Container, Result


def _collect(
    container: Container,
    script: str,
    *artifacts: str | dict,
    flags: tuple[str, ...] = (),
    hooks: list[dict] | None = None,
) -> Result:
    entries = [entry if isinstance(entry, str) else ArtifactConfig.model_validate(entry) for entry in artifacts]
    # The manifest's flags are made for a pod's args, where Kubernetes turns `$$` into `$`.
    words = [word.replace("$$", "$") for word in artifact_arguments(entries)]
    words += [
        word.replace("$$", "$")
        for word in collect_arguments([CollectConfig.model_validate(hook) for hook in hooks or []], "")
    ]
    container.artifacts = True
    return container.command(script, *flags, *words)


def _manifest(container: Container) -> list[dict]:
    return json.loads((container.volume / "artifacts/manifest.json").read_text())


def _status(container: Container) -> dict[str, tuple[str, str]]:
    return {entry["source"]: (entry["type"], entry["status"]) for entry in _manifest(container)}


def test_files_and_directories_are_collected_with_a_manifest_like_harbor_s(container: Container) -> None:
    script = "echo r > report.txt; mkdir data; echo d > data/keep.csv; echo l > data/drop.log; ln -s /etc/passwd data/link; echo c > /logs/artifacts/x"
    data = {"source": "/app/data", "destination": "renamed", "exclude": ["*.log"]}
    result = _collect(container, script, "/app/report.txt", data, "/app/missing.txt")
    assert result.error is None
    assert _manifest(container) == [
        {"source": "/logs/artifacts", "destination": "artifacts/logs/artifacts", "type": "directory", "status": "ok", "service": None, "exclude": []},
        {"source": "/app/report.txt", "destination": "artifacts/app/report.txt", "type": "file", "status": "ok", "service": None, "exclude": []},
        {"source": "/app/data", "destination": "artifacts/renamed", "type": "directory", "status": "ok", "service": None, "exclude": ["*.log"]},
        {"source": "/app/missing.txt", "destination": "artifacts/app/missing.txt", "type": "file", "status": "failed", "service": None, "exclude": []},
    ]  # fmt: skip
    collected = container.volume / "artifacts"
    assert (collected / "app/report.txt").read_text() == "r\n"
    assert sorted(path.name for path in (collected / "renamed").iterdir()) == ["keep.csv", "link"]
    assert (collected / "renamed/link").is_symlink()


def test_exclusions_mean_what_they_do_for_tar(container: Container) -> None:
    script = "mkdir -p d/sub/deep d/node_modules/x; touch d/a.log d/sub/b.log d/sub/keep 'd/sub/c d.tmp' d/node_modules/x/y d/sub/deep/z"
    _collect(container, script, {"source": "/app/d", "exclude": ["*.log", "node_modules", "sub/deep", "c d.*"]})
    found = sorted(
        str(path.relative_to(container.volume / "artifacts/app/d"))
        for path in (container.volume / "artifacts/app/d").rglob("*")
    )
    assert found == ["sub", "sub/keep"]


def test_empty_convention_directory_is_said_to_be_empty(container: Container) -> None:
    _collect(container, "true")
    assert _status(container) == {"/logs/artifacts": ("directory", "empty")}


def test_first_claim_wins_and_the_manifest_s_place_is_nobody_s(container: Container) -> None:
    entries = [
        "/app/a",
        {"source": "/app/b", "destination": "app/a"},
        {"source": "/app/b", "destination": "app/a/below.txt"},
    ]
    entries += [
        {"source": "/app/b", "destination": "./manifest.json"},
        {"source": "/app/b", "destination": "manifest.json/x"},
    ]
    _collect(container, "echo a > a; echo b > b", *entries)
    assert [entry["status"] for entry in _manifest(container)] == [
        "empty",
        "ok",
        "skipped",
        "skipped",
        "skipped",
        "skipped",
    ]
    assert (container.volume / "artifacts/app/a").read_text() == "a\n"


def test_links_bring_out_only_what_the_agent_itself_may_read(container: Container) -> None:
    container.rootfs("/opt/secret").write_text("hidden")
    container.rootfs("/opt/secret").chmod(0o600)
    container.rootfs("/opt/open").write_text("shown")
    container.rootfs("/app").chmod(0o777)
    script = "ln -s /opt/secret secret; ln -s /opt/open open; ln -s /root home"
    container.rootfs("/root/private").write_text("hidden")
    _collect(container, script, "/app/secret", "/app/open", "/app/home", flags=("--agent-user=agent",))
    assert _status(container)["/app/secret"] == ("file", "failed")
    assert _status(container)["/app/open"] == ("file", "ok")
    assert _status(container)["/app/home"] == ("directory", "failed")
    texts = [path.read_text() for path in (container.volume / "artifacts").rglob("*") if path.is_file()]
    assert "hidden" not in "".join(texts) and "shown" in "".join(texts)


def test_root_only_files_are_collected_where_no_link_leads_to_them(container: Container) -> None:
    container.rootfs("/opt/ledger").write_text("42")
    container.rootfs("/opt/ledger").chmod(0o600)
    _collect(container, "true", "/opt/ledger", flags=("--agent-user=agent",))
    copied = container.volume / "artifacts/opt/ledger"
    assert (copied.read_text(), oct(copied.stat().st_mode & 0o777)) == ("42", "0o600")


def test_what_a_timed_out_agent_left_is_collected(container: Container) -> None:
    result = _collect(container, "echo p > part; sleep 1000", "/app/part", flags=("--agent-timeout=0.5",))
    assert result.error == "AgentTimeoutError"
    assert (container.volume / "artifacts/app/part").read_text() == "p\n"


def test_relative_and_odd_paths_are_collected(container: Container) -> None:
    name = "a 'b' \"c\" $d *ü"
    _collect(
        container,
        f"mkdir odd; cat > 'odd/{name.replace(chr(39), chr(39) + chr(92) + chr(39) * 2)}' </dev/null; echo 1 > rel",
        "rel",
        f"/app/odd/{name}",
    )
    assert _status(container)["rel"] == ("file", "ok")
    assert _status(container)[f"/app/odd/{name}"] == ("file", "ok")
    assert (container.volume / "artifacts/app/odd" / name).exists()


def test_hooks_run_between_agent_and_collection_and_may_fail(container: Container) -> None:
    hooks = [
        {"command": "cat /app/made > /logs/artifacts/hook; id -un >> /logs/artifacts/hook"},
        {"command": "exit 9"},
        {"command": "id -un > /logs/artifacts/who\necho two lines >> /logs/artifacts/who", "user": "agent"},
        {"command": "sleep 1000", "timeout_sec": 0.3},
    ]
    result = _collect(container, "echo made > made", hooks=hooks)
    assert result.error is None
    assert list(result.stages) == ["agent", "collect"]
    artifacts = container.volume / "logs-artifacts"
    assert (artifacts / "hook").read_text() == "made\nroot\n"
    assert (artifacts / "who").read_text() == "agent\ntwo lines\n"
