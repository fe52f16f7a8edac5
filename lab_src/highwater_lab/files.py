"""Reads, decodes and replaces users' files: only regular files are read, and a replacement is atomic."""

from __future__ import annotations

import codecs
import errno
import os
import stat
import tempfile
from pathlib import Path
from typing import Final

# A traffic file of two months by the second with a dozen columns is smaller
MOST_BYTES = 512 * 1024 * 1024
_BYTE_ORDERS: Final = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


def read_file(path: Path) -> bytes:
    """Return all bytes of a regular file of at most 512 MiB.

    Raises `OSError` for a folder, a pipe or a device, and for a file that is too large or not readable.
    """
    status = path.stat()
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(21, "Is a directory", str(path))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(22, "it is not a regular file", str(path))
    if status.st_size > MOST_BYTES:
        raise OSError(27, f"it is larger than {MOST_BYTES // 2**20} MiB", str(path))
    return path.read_bytes()


def decode_text(content: bytes) -> str:
    """Return the text of bytes in UTF-8 or UTF-16, with or without a byte order mark; raises `UnicodeDecodeError`."""
    encoding = _BYTE_ORDERS.get(content[:2], "utf-8-sig")
    if encoding == "utf-8-sig" and len(content) > 1 and b"\0" in content[:2]:
        # a file begins with a letter or sign of ASCII, so that in UTF-16 every other byte is null
        encoding = "utf-16-be" if content[0] == 0 else "utf-16-le"
    return content.decode(encoding).removeprefix("\ufeff")


def replace_file(path: Path, content: bytes) -> None:
    """Replace *path* with *content*: write a temporary file in the same folder, then rename it.

    If anything fails, the old file stays as it was. Raises `OSError` with *path* as its filename.
    """
    if path.exists() and not path.is_file():
        raise OSError(22, "it is not a regular file", str(path))
    try:
        target = path.resolve()
    except (OSError, RuntimeError) as error:
        # before Python 3.13 a loop is a RuntimeError
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path)) from error
    if target.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    try:
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.")
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        # mkstemp makes the file accessible to its owner only; the user's umask is applied here
        mask = os.umask(0)
        os.umask(mask)
        Path(name).chmod(0o666 & ~mask)
        Path(name).replace(target)
    except OSError as error:
        Path(name).unlink()
        raise OSError(error.errno, error.strerror, str(path)) from error
