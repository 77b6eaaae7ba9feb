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

from multistep.task.tree import Entry, FileTree, clean_path

_MEBIBYTE = 1024 * 1024


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
    """Pack a tree as tar.gz: sorted, without times and owners, so that the same task gives the same bytes."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, entry in tree.items():
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
        if path in entries and entries[path].kind != "directory":
            raise BundleError(f"{path} stands twice in the archive")
        entries[path] = entry
    for path in entries:
        for parent in map(str, PurePosixPath(path).parents):
            if parent in entries and entries[parent].kind != "directory":
                raise BundleError(f"{path} lies below {parent}, which is a {entries[parent].kind}")
    return FileTree(entries)


def extract(data: bytes, destination: Path, limits: Limits | None = None) -> None:
    """Unpack a bundle into a directory that does not exist yet; everything belongs to who calls.

    Nothing is written through a link: the whole archive is checked before the first byte is written.

    Raises:
        BundleError: as `tree_from_bundle`, or the directory exists.
    """
    tree = tree_from_bundle(data, limits)
    try:
        destination.mkdir(parents=True)
    except FileExistsError as error:
        raise BundleError(f"{destination} exists already") from error
    try:
        _write(tree, destination)
    except OSError as error:
        shutil.rmtree(destination, ignore_errors=True)
        raise BundleError(f"the bundle cannot be unpacked: {error.strerror}") from error


def _write(tree: FileTree, destination: Path) -> None:
    for path, entry in tree.items():
        target = destination / path
        if entry.kind == "directory":
            target.mkdir(exist_ok=True)
        elif entry.kind == "symlink":
            target.symlink_to(entry.target)
        else:
            target.write_bytes(entry.content)
            target.chmod(entry.mode)
    # Last, and from the leaves up: a directory without write permission must be filled before it loses it.
    for path in sorted(tree, reverse=True):
        if tree[path].kind == "directory":
            (destination / path).chmod(tree[path].mode)


def _members(data: bytes, limits: Limits) -> Iterator[tuple[str, Entry]]:
    total = 0
    try:
        # Streaming ("r|gz") never seeks: a bomb is noticed while it unpacks.
        with tarfile.open(fileobj=io.BytesIO(data), mode="r|gz") as archive:
            for number, member in enumerate(archive, start=1):
                if number > limits.entries:
                    raise BundleError(f"the archive has more than {limits.entries} entries")
                total += max(0, member.size)
                if total > limits.unpacked_bytes:
                    raise BundleError(
                        f"the archive unpacks to more than {limits.unpacked_bytes // _MEBIBYTE} MiB (at {member.name})"
                    )
                path = clean_path(member.name)
                if path is None:
                    if member.isdir() and member.name.strip("./") == "":
                        continue
                    raise BundleError(f"{member.name!r} is absolute or leaves the archive's directory")
                yield path, _entry(archive, member)
    except (tarfile.TarError, EOFError, OSError, zlib.error, ValueError) as error:
        raise BundleError(f"this is no readable tar.gz archive: {error}") from error


def _entry(archive: tarfile.TarFile, member: tarfile.TarInfo) -> Entry:
    mode = member.mode & 0o7777
    if member.isdir():
        return Entry("directory", mode)
    if member.issym():
        if member.linkname.startswith("/"):
            raise BundleError(f"the link {member.name} is absolute ({member.linkname}): it leaves the task")
        return Entry("symlink", 0o777, target=member.linkname)
    if member.isreg():
        source = archive.extractfile(member)
        content = source.read() if source is not None else b""
        if len(content) != member.size:
            raise BundleError(f"{member.name} is cut off")
        return Entry("file", mode, content)
    raise BundleError(
        f"{member.name} is neither a file nor a directory nor a symbolic link (hard links are not unpacked)"
    )
