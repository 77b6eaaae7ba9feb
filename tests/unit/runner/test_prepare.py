import os
import stat

from .conftest import Container


def test_probe_says_who_the_image_s_user_is(container: Container) -> None:
    result = container.run("probe")
    assert result.report["user"] == {"uid": 0, "gid": 0, "passwdGid": 0}


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


def test_odd_working_directory_is_reported_as_valid_json(container: Container) -> None:
    container.persistent = []
    result = container.run("seed", "--persistence=Filesystem", '--workdir=/a "b" \\c ü')
    assert result.report["workdir"] == '/a "b" \\c ü'
