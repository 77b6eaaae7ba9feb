"""Names of steps: directory names that every file system takes, and that differ on every one."""

from __future__ import annotations

import re
import unicodedata

_FORBIDDEN = frozenset('/\\:*?"<>|') | {chr(code) for code in (*range(32), 127)}
"""What no file name of Windows may hold, and control characters."""

_DEVICE = re.compile(r"(CON|PRN|AUX|NUL|CONIN\$|CONOUT\$|(COM|LPT)[1-9¹²³])", re.IGNORECASE)
_LONGEST_BYTES = 255


def check_step_name(name: str) -> str:
    """Return the name if it can be a step's.

    Raises:
        ValueError: it is empty, too long, or no portable name of a directory.
    """
    if not name.strip():
        raise ValueError("a step needs a name")
    if name in (".", "..") or name.endswith((".", " ")):
        raise ValueError("a step's name must not end in a dot or a space")
    if not _FORBIDDEN.isdisjoint(name):
        raise ValueError("a step's name is a directory's name: without control characters and < > : \" / \\ | ? *")
    if _DEVICE.fullmatch(name.partition(".")[0].rstrip(" ")):
        raise ValueError("a step must not be called like a device of Windows (CON, NUL, COM1, ...)")
    if len(name.encode("utf-8", "surrogatepass")) > _LONGEST_BYTES:
        raise ValueError(f"a step's name has at most {_LONGEST_BYTES} bytes")
    return name


def collision_key(name: str) -> str:
    """Return what must differ between two steps: their names without case and Unicode normalization."""
    return unicodedata.normalize("NFC", name).casefold()
