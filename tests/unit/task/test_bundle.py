import gzip
import io
import os
import stat
import tarfile
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.task.trees import tree_of

from multistep.task import BundleError, Entry, FileTree, Limits, extract, pack, split, tree_from_bundle


def _member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "", size: int = 0) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname, member.size = kind, target, size
    return member


def _archive(*members: tarfile.TarInfo) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as archive:
        for member in members:
            archive.addfile(member, io.BytesIO(b"x" * member.size))
    return raw.getvalue()


LINK, HARD, DEVICE, FIFO, DIRECTORY = (
    tarfile.SYMTYPE,
    tarfile.LNKTYPE,
    tarfile.CHRTYPE,
    tarfile.FIFOTYPE,
    tarfile.DIRTYPE,
)

UNSAFE = {
    "absolute": [_member("/etc/passwd")],
    "traversal": [_member("../x")],
    "hidden-traversal": [_member("a/../../x")],
    "inner-traversal": [_member("a/../x")],
    "long-name": [_member("x" * 256)],
    "too-deep": [_member("a/" * 1600 + "b")],
    "device": [_member("dev", DEVICE)],
    "fifo": [_member("fifo", FIFO)],
    "hard-link": [_member("a"), _member("b", HARD, "a")],
    "hard-link-outside": [_member("b", HARD, "/etc/shadow")],
    "absolute-link": [_member("l", LINK, "/etc")],
    "relative-link-outside": [_member("d/l", LINK, "../../etc")],
    "link-through-link": [_member("a/b/up", LINK, "../.."), _member("x", LINK, "a/b/up/..")],
    "link-through-later-link": [_member("x", LINK, "a/b/up/.."), _member("a/b/up", LINK, "../..")],
    "empty-link": [_member("l", LINK, "")],
    "write-through-link": [_member("d", DIRECTORY), _member("l", LINK, "d"), _member("l/x")],
    "link-over-directory": [_member("l", DIRECTORY), _member("l/x"), _member("l", LINK, "d")],
    "directory-over-link": [_member("l", LINK, "d"), _member("l", DIRECTORY)],
    "below-a-file": [_member("f"), _member("f/x")],
    "twice": [_member("f"), _member("./f")],
}


@pytest.mark.parametrize("name", UNSAFE)
def test_unsafe_archive_is_refused_and_nothing_is_written(name: str, tmp_path: Path) -> None:
    data = _archive(*UNSAFE[name])
    with pytest.raises(BundleError):
        tree_from_bundle(data)
    with pytest.raises(BundleError):
        extract(data, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("absolute", "'/etc/passwd' is absolute"),
        ("hidden-traversal", r"'a/\.\./\.\./x' is absolute or leaves"),
        ("device", "'dev' is a device"),
        ("fifo", "'fifo' is a fifo"),
        ("hard-link", "'b' is a hard link"),
        ("relative-link-outside", r"'d/l' leads out of the archive"),
        ("link-through-link", "the link 'x' leads out"),
        ("write-through-link", "'l/x' lies below 'l', which is a symlink"),
        ("twice", "'f' stands twice"),
    ],
)
def test_error_names_the_member_and_the_reason(name: str, words: str) -> None:
    with pytest.raises(BundleError, match=words):
        tree_from_bundle(_archive(*UNSAFE[name]))


@pytest.mark.parametrize(
    "data",
    [b"", b"no archive", gzip.compress(b""), gzip.compress(b"x" * 2000)],
    ids=["empty", "text", "nothing", "no tar"],
)
def test_what_is_no_archive_is_an_error_or_empty(data: bytes) -> None:
    try:
        assert len(tree_from_bundle(data)) == 0
    except BundleError as error:
        assert "archive" in str(error)


def test_damaged_archives_are_errors() -> None:
    data = pack(tree_of({f"f{number}": os.urandom(500).hex() for number in range(20)}))
    for length in range(0, len(data), 97):
        with pytest.raises(BundleError):
            tree_from_bundle(data[:length])
    wrong_checksum = data[:-8] + bytes(byte ^ 0xFF for byte in data[-8:-4]) + data[-4:]
    with pytest.raises(BundleError, match="CRC"):
        tree_from_bundle(wrong_checksum)


@given(st.binary(max_size=1200), st.integers(0, 600))
@settings(max_examples=150, deadline=None)
def test_any_bytes_are_a_tree_or_an_error(noise: bytes, position: int) -> None:
    raw = bytearray(gzip.decompress(pack(tree_of({"d/f": "text", "l": "@link:d/f"}))))
    raw[position : position + len(noise)] = noise
    for data in (noise, gzip.compress(bytes(raw), 1)):
        try:
            tree_from_bundle(data, Limits(unpacked_bytes=10_000, entries=20))
        except BundleError as error:
            assert str(error)


def test_number_of_entries_is_limited() -> None:
    data = _archive(*(_member(f"f{number}") for number in range(4)))
    assert len(tree_from_bundle(data, Limits(entries=4))) == 4
    with pytest.raises(BundleError, match="more than 3 entries"):
        tree_from_bundle(data, Limits(entries=3))


def test_unpacked_bytes_are_limited_in_sum() -> None:
    data = _archive(_member("a", size=600), _member("b", size=600))
    assert len(tree_from_bundle(data, Limits(unpacked_bytes=1200))) == 2
    with pytest.raises(BundleError, match="'b'"):
        tree_from_bundle(data, Limits(unpacked_bytes=1199))


def _bomb(header: tarfile.TarInfo, megabytes: int) -> bytes:
    raw = io.BytesIO()
    with gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=1) as out:
        out.write(header.tobuf(tarfile.GNU_FORMAT))
        for _ in range(megabytes):
            out.write(bytes(1024 * 1024))
    return raw.getvalue()


@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME])
def test_a_bomb_does_not_fill_the_memory(kind: bytes) -> None:
    """Also where it hides in what tarfile reads on its own: extended headers and long names."""
    data = _bomb(_member("bomb", kind, size=200 * 1024 * 1024), 200)
    tracemalloc.start()
    try:
        with pytest.raises(BundleError, match="more than"):
            tree_from_bundle(data, Limits(unpacked_bytes=1024 * 1024, entries=100))
        assert tracemalloc.get_traced_memory()[1] < 20 * 1024 * 1024
    finally:
        tracemalloc.stop()


def test_bytes_after_the_archive_count() -> None:
    data = _archive(_member("a")) + gzip.compress(bytes(5 * 1024 * 1024))
    with pytest.raises(BundleError, match="more than"):
        tree_from_bundle(data, Limits(unpacked_bytes=1024, entries=10))


def test_ordinary_archives_are_taken() -> None:
    data = _archive(_member(".", DIRECTORY), _member("./", DIRECTORY), _member("./a/b"), _member("a", DIRECTORY))
    assert list(tree_from_bundle(data)) == ["a", "a/b"]


def test_the_tasks_own_repository_is_left_out() -> None:
    data = _archive(_member(".git/config"), _member("w/.git/config"))
    assert list(tree_from_bundle(data)) == ["w", "w/.git", "w/.git/config"]


def test_packing_is_deterministic() -> None:
    first = pack(tree_of({"b": "x", "a/c": "y"}))
    assert first == pack(tree_of({"a/c": "y", "b": "x"}))
    with tarfile.open(fileobj=io.BytesIO(first)) as archive:
        members = archive.getmembers()
    assert [member.name for member in members] == ["a", "a/c", "b"]
    assert {(member.mtime, member.uid, member.gid, member.uname) for member in members} == {(0, 0, 0, "")}


def test_extract_keeps_modes_and_links_whatever_the_umask(tmp_path: Path) -> None:
    tree = FileTree(
        {
            "d": Entry("directory", 0o555),
            "d/run": Entry("file", 0o6775, b"x"),
            "d/secret": Entry("file", 0o000, b"y"),
            "l": Entry("symlink", 0o777, target="d/run"),
        }
    )
    previous = os.umask(0o077)
    try:
        extract(pack(tree), tmp_path / "new/out")
    finally:
        os.umask(previous)
    modes = {path: stat.S_IMODE((tmp_path / "new/out" / path).lstat().st_mode) for path in tree}
    assert modes == {path: entry.mode for path, entry in tree.items()}
    assert (tmp_path / "new/out/l").readlink() == Path("d/run")
    status = (tmp_path / "new/out/d/run").stat()
    assert (status.st_uid, status.st_gid) == (os.geteuid(), os.getegid())


def test_extract_does_not_write_into_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").symlink_to("elsewhere")
    with pytest.raises(BundleError, match="exists already"):
        extract(pack(tree_of({"a": "x"})), tmp_path / "out")
    with pytest.raises(BundleError, match="cannot be made"):
        (tmp_path / "file").write_text("")
        extract(pack(tree_of({"a": "x"})), tmp_path / "file/out")
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize(("length", "size"), [(0, 5), (4, 5), (5, 5), (11, 5)])
def test_split_parts_make_the_whole(length: int, size: int) -> None:
    data = bytes(range(length))
    parts = split(data, size)
    assert b"".join(parts) == data
    assert all(len(part) <= size for part in parts)
    assert len(parts) == max(1, -(-length // size))


# Lone surrogates of this range are how Python holds bytes of file names that are no UTF-8.
_NAMES = st.text(
    st.characters(exclude_characters="/\0", exclude_categories=["Cs"]) | st.just("\udcff"), min_size=1, max_size=60
)
_PATHS = st.lists(_NAMES.filter(lambda name: name not in (".", "..", ".git", ".harborignore")), min_size=1, max_size=4)
_FILES = st.builds(Entry, st.just("file"), st.integers(0, 0o7777), st.binary(max_size=200))
_FOLDERS = st.builds(Entry, st.just("directory"), st.integers(0, 0o7777))


@st.composite
def _trees(draw: st.DrawFn) -> FileTree:
    entries: dict[str, Entry] = {}
    for parts in draw(st.lists(_PATHS, max_size=8)):
        path = "/".join(parts)
        parents = ["/".join(parts[:length]) for length in range(1, len(parts))]
        if any(parent in entries and entries[parent].kind != "directory" for parent in parents):
            continue
        if not any(other == path or other.startswith(f"{path}/") for other in entries):
            entries[path] = draw(_FILES | _FOLDERS)
    entries["the-link"] = Entry("symlink", 0o777, target=draw(st.sampled_from(["nothing", *entries])))
    return FileTree(entries)


@given(_trees())
@settings(max_examples=150, deadline=None)
def test_unpacking_gives_what_was_packed(tree: FileTree) -> None:
    again = tree_from_bundle(pack(tree))
    assert dict(again) == dict(tree)
    assert again.digest() == tree.digest()
    assert pack(again) == pack(tree)
