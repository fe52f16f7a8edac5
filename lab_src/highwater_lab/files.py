"""Files of users: read as what they are, replaced whole or not at all."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

# Two months of seconds with a dozen columns stay below
_MOST_BYTES = 512 * 1024 * 1024


def read_file(path: Path) -> bytes:
    """All bytes of a file; raises `OSError` for what is none, such as a folder or a pipe, and for one too large."""
    status = path.stat()
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(21, "Is a directory", str(path))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(22, "is no file", str(path))
    if status.st_size > _MOST_BYTES:
        raise OSError(27, f"is larger than {_MOST_BYTES // 2**20} MiB", str(path))
    return path.read_bytes()


def replace_file(path: Path, content: bytes) -> None:
    """Write a file beside its place and move it there, so that a failure leaves what was there; raises `OSError`."""
    if path.exists() and not path.is_file():
        raise OSError(22, "is no file", str(path))
    target = path.resolve()
    try:
        number, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.")
    except OSError as refused:
        raise OSError(refused.errno, refused.strerror, str(path)) from refused
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content)
        mask = os.umask(0)
        os.umask(mask)
        Path(name).chmod(0o666 & ~mask)
        Path(name).replace(target)
    except OSError as refused:
        Path(name).unlink()
        raise OSError(refused.errno, refused.strerror, str(path)) from refused
