"""Holds a checkpoint for one process, so that two do not go on from the same place."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from highwater.client.paced_work import PacedWorkError

try:
    import fcntl
except ImportError:  # pragma: no cover - on Windows nothing is held
    fcntl = None  # type: ignore[assignment]


@contextmanager
def held(path: Path | None) -> Iterator[None]:
    """Hold the checkpoint at *path*, `None` for none, while the block runs; a process that dies holds nothing.

    Raises `PacedWorkError` where another process holds it.
    """
    if path is None or fcntl is None:
        yield
        return
    beside = path.with_name(f"{path.name}.lock")
    file = _lock(path, beside)
    try:
        yield
    finally:
        if file is not None:
            # before it is let go, so that nobody holds a file that is gone
            with suppress(OSError):
                beside.unlink()
            os.close(file)


def _lock(path: Path, beside: Path) -> int | None:
    while True:
        try:
            file = os.open(beside, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise PacedWorkError(f"checkpoint {path}: cannot be written: {error.strerror}") from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(file)
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                message = "another process goes on from it now; wait for it, or give another file"
                raise PacedWorkError(f"checkpoint {path}: {message}") from None
            # a file system without locks
            return None
        with suppress(FileNotFoundError):
            if beside.stat().st_ino == os.fstat(file).st_ino:
                return file
        # whoever held it has just deleted it
        os.close(file)
