"""Task bundles: deterministic tar.gz archives, packed and, with limits and without trust, unpacked."""

from __future__ import annotations

import gzip
import io
import shutil
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from multistep.task.ignore import without_ignored
from multistep.task.problem import shown
from multistep.task.tree import REPOSITORY, Entry, FileTree, clean_path, path_fault

_MEBIBYTE = 1024 * 1024

_HEADER_BYTES = 4 * 1024
"""Bytes of an archive that an entry may take beside its content: its header and padding, and a long name's."""


class BundleError(Exception):
    """An archive that is broken, too large, or tries to leave its directory; the message names the member."""


@dataclass(frozen=True)
class Limits:
    """What an archive may hold at most.

    Attributes:
        unpacked_bytes: the sum of all files.
        entries: files, directories and links.
    """

    unpacked_bytes: int = 512 * _MEBIBYTE
    entries: int = 20_000


def pack(tree: FileTree) -> bytes:
    """Pack a tree as tar.gz: sorted, without times and owners, so that the same task gives the same bytes.

    Symbolic links that leave the tree are left out, because nothing unpacks them. `load_task` refuses them where the task needs them,
    and warns of the others.
    """
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, entry in tree.items():
            if entry.kind == "symlink" and tree.leaves(path):
                continue
            member = tarfile.TarInfo(path)
            member.mode = entry.mode
            if entry.kind == "directory":
                member.type = tarfile.DIRTYPE
            elif entry.kind == "symlink":
                member.type, member.linkname = tarfile.SYMTYPE, entry.target
            else:
                member.size = len(entry.content)
            archive.addfile(member, io.BytesIO(entry.content) if entry.kind == "file" else None)
    return gzip.compress(raw.getvalue(), compresslevel=9, mtime=0)


def split(data: bytes, size: int) -> list[bytes]:
    """Split a bundle into parts of at most `size` bytes; an empty one is one part."""
    return [data[start : start + size] for start in range(0, len(data), size)] or [data]


def tree_from_bundle(data: bytes, limits: Limits | None = None) -> FileTree:
    """Unpack a bundle in memory.

    Raises:
        BundleError: the archive is broken, over the limits, or holds something that no task may hold.
    """
    entries: dict[str, Entry] = {}
    for path, entry in _members(data, limits or Limits()):
        if path in entries and (entries[path].kind, entry.kind) != ("directory", "directory"):
            raise BundleError(f"{shown(path)} stands twice in the archive")
        entries[path] = entry
    for path in entries:
        for parent in map(str, PurePosixPath(path).parents):
            if parent in entries and entries[parent].kind != "directory":
                raise BundleError(f"{shown(path)} lies below {shown(parent)}, which is a {entries[parent].kind}")
    own = {path: entry for path, entry in entries.items() if path.split("/", 1)[0] != REPOSITORY}
    tree = without_ignored(FileTree(own))
    for path, entry in tree.items():
        # Only now: whether a link leaves the archive may depend on other links.
        if entry.kind == "symlink" and tree.leaves(path):
            raise BundleError(f"the link {shown(path)} leads out of the archive ({shown(entry.target)})")
    return tree


def extract(data: bytes, destination: Path, limits: Limits | None = None) -> None:
    """Unpack a bundle into a directory that does not exist yet; everything belongs to who calls.

    Nothing is written through a link: the whole archive is checked before the first byte is written, and nothing else writes there.

    Raises:
        BundleError: as `tree_from_bundle`, or the directory exists, or the disk is full; nothing is left behind then.
    """
    tree = tree_from_bundle(data, limits)
    try:
        destination.mkdir(parents=True)
    except FileExistsError as error:
        raise BundleError(f"{destination} exists already") from error
    except OSError as error:
        raise BundleError(f"{destination} cannot be made: {error.strerror}") from error
    try:
        _write(tree, destination)
    except BundleError:
        shutil.rmtree(destination, ignore_errors=True)
        raise


def _write(tree: FileTree, destination: Path) -> None:
    for path, entry in tree.items():
        try:
            _write_entry(destination / path, entry)
        except OSError as error:
            raise BundleError(f"{shown(path)} cannot be unpacked: {error.strerror}") from error
    # Last, and from the leaves up: a directory without write permission must be filled before it loses it.
    for path in sorted(tree, reverse=True):
        if tree[path].kind == "directory":
            (destination / path).chmod(tree[path].mode)


def _write_entry(target: Path, entry: Entry) -> None:
    if entry.kind == "directory":
        target.mkdir()
    elif entry.kind == "symlink":
        target.symlink_to(entry.target)
    else:
        target.write_bytes(entry.content)
        # Not by the mode of its creation, which the umask would cut.
        target.chmod(entry.mode)


class _Bounded(io.RawIOBase):
    """The unpacked archive, up to a limit: whatever a header claims, no more than this is ever held."""

    def __init__(self, data: bytes, limits: Limits) -> None:
        super().__init__()
        self._source = gzip.GzipFile(fileobj=io.BytesIO(data), mode="rb")
        self._limits = limits
        self._left = limits.unpacked_bytes + (limits.entries + 1) * _HEADER_BYTES

    def read(self, size: int = -1) -> bytes:
        wanted = self._left + 1 if size < 0 else min(size, self._left + 1)
        chunk = self._source.read(wanted)
        self._left -= len(chunk)
        if self._left < 0:
            raise BundleError(_too_large(self._limits))
        return chunk


def _too_large(limits: Limits) -> str:
    return f"the archive unpacks to more than {limits.unpacked_bytes / _MEBIBYTE:.4g} MiB"


def _members(data: bytes, limits: Limits) -> Iterator[tuple[str, Entry]]:
    total = 0
    stream = _Bounded(data, limits)
    try:
        # "r|" never seeks: a bomb is noticed while it unpacks, not after.
        with tarfile.open(fileobj=stream, mode="r|", errorlevel=2) as archive:
            for number, member in enumerate(archive, start=1):
                if number > limits.entries:
                    raise BundleError(f"the archive has more than {limits.entries} entries")
                total += max(0, member.size)
                if total > limits.unpacked_bytes:
                    raise BundleError(f"{_too_large(limits)} (at {shown(member.name)})")
                if member.isdir() and member.name.strip("./") == "" and ".." not in member.name:
                    continue
                yield _path(member), _entry(archive, member)
        while stream.read(_MEBIBYTE):
            # To the end: only there does gzip compare its checksum.
            pass
    except (tarfile.TarError, EOFError, OSError, zlib.error, ValueError) as error:
        raise BundleError(f"this is no readable tar.gz archive: {error}") from error


def _path(member: tarfile.TarInfo) -> str:
    # tarfile drops the first slashes of a name silently when it extracts; a task's archive has no business with them.
    path = clean_path(member.name)
    if path is None:
        raise BundleError(f"{shown(member.name)} is absolute or leaves the archive's directory")
    fault = path_fault(member.name)
    if fault is not None:
        raise BundleError(f"{shown(member.name)} cannot be unpacked: {fault}")
    return path


_KINDS = {
    tarfile.LNKTYPE: "a hard link",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
    tarfile.FIFOTYPE: "a fifo",
}


def _entry(archive: tarfile.TarFile, member: tarfile.TarInfo) -> Entry:
    if not (member.isdir() or member.issym() or member.isreg()):
        kind = _KINDS.get(member.type, "neither a file nor a directory nor a symbolic link")
        raise BundleError(f"{shown(member.name)} is {kind}: a task cannot hold it")
    if member.issym() and (not member.linkname or "\0" in member.linkname):
        raise BundleError(f"the link {shown(member.name)} has no target")
    mode = member.mode & 0o7777
    if member.isdir():
        return Entry("directory", mode)
    if member.issym():
        return Entry("symlink", 0o777, target=member.linkname)
    source = archive.extractfile(member)
    content = source.read() if source is not None else b""
    if len(content) != member.size:
        raise BundleError(f"{shown(member.name)} is cut off")
    return Entry("file", mode, content)
