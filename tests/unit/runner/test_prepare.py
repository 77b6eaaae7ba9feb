import contextlib
import os
import socket
import stat

import pytest

from .conftest import Container


def test_probe_says_who_the_image_s_user_is(container: Container) -> None:
    result = container.run("probe")
    assert result.report["user"] == {"uid": 0, "gid": 0, "passwdGid": 0}
    assert (result.report["groups"], result.report["workdir"]) == ([0], "/")


def test_probe_of_another_user(container: Container) -> None:
    container.user = "agent"
    container.directory = "/home/agent"
    report = container.run("probe").report
    assert report["user"] == {"uid": 1000, "gid": 1000, "passwdGid": 1000}
    assert (sorted(report["groups"]), report["workdir"]) == ([1000, 2000], "/home/agent")


def test_probe_of_a_user_that_passwd_does_not_know(container: Container) -> None:
    container.user = "4321:5"
    assert container.run("probe").report["user"] == {"uid": 4321, "gid": 5, "passwdGid": None}


def test_seed_copies_directories_with_modes_owners_and_links(container: Container) -> None:
    image = container.root
    (image / "opt/wrapper").write_text("x")
    (image / "opt/wrapper").chmod(0o4755)
    (image / "opt/link").symlink_to("wrapper")
    os.link(image / "opt/wrapper", image / "opt/hard")
    os.chown(image / "app", 1000, 1000)
    (image / "lib").symlink_to("usr")
    container.persistent = []
    result = container.run("seed", "--persistence=Filesystem", "--workdir=/workspace/deep")
    assert result.error is None
    directories = result.report["directories"]
    assert {"app", "etc", "opt", "bin", "workspace", "logs", "home"} <= set(directories)
    assert not {"proc", "dev", "sys", ".multistep", "tests", "solution", "lib"} & set(directories)
    rootfs = container.volume / "rootfs"
    assert (rootfs / "workspace/deep").is_dir()
    assert stat.S_IMODE((rootfs / "opt/wrapper").stat().st_mode) == 0o4755
    assert (rootfs / "opt/link").is_symlink()
    assert (rootfs / "opt/hard").stat().st_ino == (rootfs / "opt/wrapper").stat().st_ino
    assert (rootfs / "app").stat().st_uid == 1000
    assert stat.S_IMODE((rootfs / "tmp").stat().st_mode) == 0o1777


def test_seed_finds_the_image_s_working_directory(container: Container) -> None:
    container.persistent = []
    result = container.run("seed", "--persistence=Filesystem", "--workdir=")
    assert result.report["workdir"] == "/"


def test_seed_of_the_working_directory_keeps_its_owner(container: Container) -> None:
    image = container.root
    (image / "app/file").write_text("x")
    os.chown(image / "app", 1000, 1000)
    (image / "app").chmod(0o750)
    container.persistent = []
    result = container.run("seed", "--persistence=Workdir", "--workdir=/app")
    assert (result.error, result.report["directories"], result.report["workdir"]) == (None, [], "/app")
    copied = container.volume / "workdir"
    assert (copied / "file").read_text() == "x"
    assert (copied.stat().st_uid, stat.S_IMODE(copied.stat().st_mode)) == (1000, 0o750)


@pytest.mark.parametrize("name", ['/a "b" \\c ü', "/tab\tand\nline", "/\U0001f600 face", "/a:b/$c `d`"])
def test_odd_working_directory_is_reported_as_valid_json(container: Container, name: str) -> None:
    container.persistent = []
    result = container.run("seed", "--persistence=Filesystem", f"--workdir={name}")
    assert (result.error, result.report["workdir"]) == (None, name)


def test_working_directory_that_is_no_text_is_an_error(container: Container) -> None:
    container.persistent = []
    os.mkdir(os.fsencode(container.root) + b"/latin-\xe9")  # noqa: PTH102
    container.directory = os.fsdecode(b"/latin-\xe9")
    result = container.run("seed", "--persistence=Filesystem", "--workdir=")
    assert (result.exit_code, result.error) == (1, "SeedError")
    assert "no UTF-8" in result.error_output
    assert container.run("probe").report["workdir"] is None


def test_directories_that_cannot_be_mounts_are_left_to_the_carry(container: Container) -> None:
    container.persistent = []
    for name in (b"latin-\xe9", b"with:colon", "gut-ä".encode(), b".hidden"):
        os.mkdir(os.fsencode(container.root) + b"/" + name)  # noqa: PTH102
    result = container.run("seed", "--persistence=Filesystem", "--workdir=/app")
    found = result.report["directories"]
    assert {"gut-ä", ".hidden"} <= set(found)
    assert not [name for name in found if ":" in name or "latin" in name]


def test_seed_keeps_times_sockets_and_pipes(container: Container) -> None:
    container.persistent = []
    opt = container.root / "opt"
    (opt / "deep/er").mkdir(parents=True)
    (opt / "deep/er/file").write_text("x")
    with socket.socket(socket.AF_UNIX) as listener, contextlib.chdir(opt):
        listener.bind("socket")
    os.mkfifo(opt / "pipe")
    for path in (opt / "deep/er/file", opt / "deep/er", opt / "deep"):
        os.utime(path, (1e9, 1e9))
    assert container.run("seed", "--persistence=Filesystem", "--workdir=/app").error is None
    copied = container.volume / "rootfs/opt"
    assert {(copied / name).stat().st_mtime for name in ("deep", "deep/er", "deep/er/file")} == {1e9}
    assert (copied / "socket").is_socket() and (copied / "pipe").is_fifo()


def test_working_directory_behind_a_link_is_made_where_the_link_leads(container: Container) -> None:
    container.persistent = []
    (container.root / "work").symlink_to("opt")
    result = container.run("seed", "--persistence=Filesystem", "--workdir=/work/deep")
    assert result.error is None and "work" not in result.report["directories"]
    assert (container.volume / "rootfs/opt/deep").is_dir()
    assert not (container.volume / "rootfs/work").exists()


@pytest.mark.parametrize("name", ["/linked", "/.hidden/", "/not-there/yet"])
def test_seed_of_an_odd_working_directory(container: Container, name: str) -> None:
    container.persistent = []
    (container.root / "linked").symlink_to("app")
    (container.root / "app/.dot").write_text("x")
    (container.root / ".hidden").mkdir()
    (container.root / ".hidden/.dot").write_text("x")
    (container.volume / "workdir").mkdir()
    result = container.run("seed", "--persistence=Workdir", f"--workdir={name}")
    assert result.error is None
    copied = container.volume / "workdir"
    assert copied.is_dir() and not copied.is_symlink()
    assert (copied / ".dot").exists() == ("not-there" not in name)
    assert not (container.volume / "seeding").exists()


def test_full_volume_is_named(container: Container) -> None:
    container.persistent = []
    container.volume_size = "300k"
    (container.root / "opt/large").write_bytes(b"x" * 600_000)
    result = container.run("seed", "--persistence=Filesystem", "--workdir=/app")
    assert (result.exit_code, result.error) == (1, "SeedError")
    assert "No space left" in result.error_output


def test_too_many_directories_are_an_error(container: Container) -> None:
    container.persistent = []
    for number in range(90):
        (container.root / f"{number:050}").mkdir()
    result = container.run("seed", "--persistence=Filesystem", "--workdir=/app")
    assert (result.exit_code, result.error) == (1, "SeedError")
    assert "too many directories" in result.error_output
