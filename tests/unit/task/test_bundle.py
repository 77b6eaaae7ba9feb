import gzip
import io
import os
import stat
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multistep.task import (
    BundleError,
    Entry,
    FileTree,
    Limits,
    extract,
    pack,
    split,
    tree_from_bundle,
    tree_from_directory,
)


def _archive(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as archive:
        for member, content in members:
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return raw.getvalue()


def _member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, link
    return member


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ([(_member("../evil"), b"x")], "'../evil'"),
        ([(_member("a/../../evil"), b"x")], "leaves"),
        ([(_member("/etc/passwd"), b"x")], "absolute"),
        ([(_member("device", tarfile.CHRTYPE), b"")], "device"),
        ([(_member("fifo", tarfile.FIFOTYPE), b"")], "fifo"),
        ([(_member("hard", tarfile.LNKTYPE, "/etc/passwd"), b"")], "hard"),
        ([(_member("link", tarfile.SYMTYPE, "/etc"), b"")], "absolute"),
        ([(_member("d", tarfile.SYMTYPE, "x"), b""), (_member("d/file"), b"x")], "below d"),
        ([(_member("twice"), b"1"), (_member("twice"), b"2")], "twice"),
        ([(_member("f"), b"1"), (_member("f/below"), b"2")], "below f"),
    ],
)
def test_archive_that_tries_to_leave_is_refused_by_name(members, words: str, tmp_path: Path) -> None:
    data = _archive(*members)
    with pytest.raises(BundleError, match=words):
        tree_from_bundle(data)
    with pytest.raises(BundleError):
        extract(data, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "data",
    [b"", b"garbage", gzip.compress(b"garbage" * 200), _archive((_member("a"), b"x" * 10_000))[:60]],
    ids=["empty", "no gzip", "no tar", "cut off"],
)
def test_broken_archive_is_said_to_be_one(data: bytes) -> None:
    with pytest.raises(BundleError, match=r"no readable tar\.gz|cut off"):
        tree_from_bundle(data)


def test_bomb_is_noticed_while_it_unpacks() -> None:
    bomb = _archive((_member("zeros"), b"\0" * 8_000_000))
    assert len(bomb) < 20_000
    with pytest.raises(BundleError, match="more than 4 MiB"):
        tree_from_bundle(bomb, Limits(unpacked_bytes=4 * 1024 * 1024))
    many = _archive(*((_member(f"f{number}"), b"") for number in range(50)))
    with pytest.raises(BundleError, match="more than 20 entries"):
        tree_from_bundle(many, Limits(entries=20))


def test_modes_links_and_bytes_survive(tmp_path: Path) -> None:
    source = tmp_path / "task"
    (source / "bin").mkdir(parents=True)
    (source / "bin/tool").write_bytes(b"\0\xff")
    (source / "bin/tool").chmod(0o755)
    (source / "plain").write_text("x")
    (source / "plain").chmod(0o640)
    (source / "link").symlink_to("bin/tool")
    data = pack(tree_from_directory(source))
    extract(data, tmp_path / "out")
    out = tmp_path / "out"
    assert (out / "bin/tool").read_bytes() == b"\0\xff"
    assert [stat.S_IMODE((out / name).stat().st_mode) for name in ("bin/tool", "plain")] == [0o755, 0o640]
    assert (out / "link").readlink() == Path("bin/tool")
    assert tree_from_directory(out).digest() == tree_from_directory(source).digest()


def test_same_task_gives_the_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "b").write_text("1")
    first = pack(tree_from_directory(tmp_path))
    os.utime(tmp_path / "b", (0, 0))
    assert pack(tree_from_directory(tmp_path)) == first


def test_digest_sees_content_mode_and_target() -> None:
    base = {"a": Entry("file", 0o644, b"x"), "l": Entry("symlink", 0o777, target="a")}
    digests = {
        FileTree(base).digest(),
        FileTree({**base, "a": Entry("file", 0o755, b"x")}).digest(),
        FileTree({**base, "a": Entry("file", 0o644, b"y")}).digest(),
        FileTree({**base, "l": Entry("symlink", 0o777, target="b")}).digest(),
    }
    assert len(digests) == 4


names = st.text(st.characters(blacklist_characters="/\0", blacklist_categories=["Cs"]), min_size=1, max_size=12).filter(
    lambda name: name not in (".", "..")
)
files = st.dictionaries(
    st.builds("{}/{}".format, names, names),
    st.tuples(st.binary(max_size=50), st.sampled_from([0o644, 0o755, 0o600])),
    max_size=8,
)


@given(files)
def test_packing_and_unpacking_give_the_same_tree(content: dict[str, tuple[bytes, int]]) -> None:
    tree = FileTree({path: Entry("file", mode, data) for path, (data, mode) in content.items()})
    assert dict(tree_from_bundle(pack(tree))) == dict(tree)


@given(st.binary(max_size=100), st.integers(1, 40))
def test_parts_make_up_the_whole(data: bytes, size: int) -> None:
    parts = split(data, size)
    assert b"".join(parts) == data and all(len(part) <= size for part in parts)
