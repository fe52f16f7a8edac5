"""Runs the `highwater` command many times a second: in a fork of this process, which has everything imported."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from highwater.cli.main import main
from highwater.cli.terminal import inert

# far more than any run takes; one that hangs is ended by SIGALRM and counts as wrong
_SECONDS = 120


@dataclass(frozen=True)
class Done:
    """How a run ended: its exit status, negative for a signal, and what it printed."""

    status: int
    out: str
    err: str

    def wrong(self) -> str | None:
        """What is wrong with it; `None` for a run that ended as a command should."""
        if self.status not in (0, 1, 2):
            return f"exit status {self.status}"
        for text in (self.out, self.err):
            if "Traceback" in text or "unforeseen" in text:
                return text[-1500:]
            if text != inert(text):
                return f"raw control characters: {text[-300:]!r}"
        if self.status == 2 and self.err.count("\n") != 1:
            return f"not one line: {self.err!r}"
        return None


def run(arguments: Sequence[str], folder: Path) -> Done:
    """Run `highwater` with these arguments in *folder*, which is also its home."""
    out, err = folder / ".out", folder / ".err"
    child = os.fork()
    if child == 0:
        _become(arguments, folder, out, err)
    _, status = os.waitpid(child, 0)
    texts = [path.read_bytes().decode("utf-8", "replace") for path in (out, err)]
    for path in (out, err):
        path.unlink()
    return Done(os.waitstatus_to_exitcode(status), *texts)


def _become(arguments: Sequence[str], folder: Path, out: Path, err: Path) -> None:
    signal.alarm(_SECONDS)
    status = 70
    with contextlib.suppress(BaseException):
        for number, path in ((1, out), (2, err)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
        sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            del os.environ[name]
        os.environ |= {
            "HOME": str(folder),
            "XDG_STATE_HOME": str(folder / ".state"),
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        os.chdir(folder)
        sys.argv = ["highwater", *arguments]
        try:
            main()
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else 0
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)
