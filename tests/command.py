"""The `highwater` command as tests run it.

A new process imports for most of a second before it does anything. Commands therefore run in a fork of the test's
process, which has imported everything. The installed script is started for what a fork cannot show: signals, pipes that
others close, and what the interpreter does before the command begins.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import IO, Any, NoReturn

import boto3

from highwater.cli.main import COMMANDS_GROUP, main

SCRIPT = str(Path(sys.executable).parent / "highwater")
Done = subprocess.CompletedProcess[str]
# far more than any run takes; SIGALRM ends one that hangs
_MOST_SECONDS = 300
# what the commands import only when they need it
_LATE_IMPORTS = (
    "matplotlib.backends.backend_agg",
    "matplotlib.pyplot",
    "rich.progress",
    "rich.table",
    "zstandard",
)


@dataclass(frozen=True)
class Command:
    """`highwater` in a folder that is also its home; of AWS's variables it has only those given here.

    A variable that is `None` is not set.
    """

    folder: Path
    variables: Mapping[str, str | None] = field(default_factory=dict)

    def __call__(self, *arguments: str, given: str = "", closed: Collection[int] = (), **variables: str | None) -> Done:
        """Run it in a fork of this process.

        Its standard input is *given*. The streams with the numbers *closed* are closed before it starts.
        """
        environment = self.environment(**variables)
        _import_everything()
        with contextlib.ExitStack() as files:
            streams = [files.enter_context(tempfile.TemporaryFile()) for _ in range(3)]
            streams[0].write(given.encode())
            streams[0].seek(0)
            with warnings.catch_warnings():
                # Python 3.12 warns where other threads run, as xdist's do: the child could wait for a lock of theirs
                warnings.simplefilter("ignore", DeprecationWarning)
                child = os.fork()
            if child == 0:
                _become(arguments, environment, self.folder, streams, closed)
            _, status = os.waitpid(child, 0)
            for stream in streams:
                stream.seek(0)
            out, err = (stream.read().decode("utf-8", "replace") for stream in streams[1:])
        return Done(["highwater", *arguments], os.waitstatus_to_exitcode(status), out, err)

    def start(self, *arguments: str, **more: Any) -> subprocess.Popen[str]:
        """Start the installed script; *more* is for `subprocess.Popen`."""
        streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        more = {"env": self.environment()} | streams | more
        return subprocess.Popen([SCRIPT, *arguments], cwd=self.folder, text=True, **more)

    def environment(self, **variables: str | None) -> dict[str, str]:
        """The variables that it sees."""
        plain = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "HIGHWATER_"))}
        own = {"HOME": str(self.folder), "XDG_STATE_HOME": "", "AWS_EC2_METADATA_DISABLED": "true", "COLUMNS": "140"}
        every = plain | own | dict(self.variables) | variables
        return {name: value for name, value in every.items() if value is not None}


def refused(done: Done) -> str:
    """The one line with which a command ended that refused to begin."""
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done
    return done.stderr.removesuffix("\n")


@functools.cache
def _import_everything() -> None:
    for command in entry_points(group=COMMANDS_GROUP):
        command.load()
    for name in _LATE_IMPORTS:
        importlib.import_module(name)


def _become(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    streams: Sequence[IO[bytes]],
    closed: Collection[int],
) -> NoReturn:
    """Run the command as a new process would, and end this one."""
    status = 1
    try:
        # what the parent no longer uses is not collected here: it could write to files and sockets of the parent
        gc.freeze()
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(_MOST_SECONDS)
        for number, stream in enumerate(streams):
            os.dup2(stream.fileno(), number)
        for number in closed:
            os.close(number)
        sys.stdin, sys.stdout, sys.stderr = (
            # as the interpreter opens them
            None if number in closed else open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115
            for number, mode in enumerate("rww")
        )
        # pytest has replaced these; the command's own must be seen
        sys.unraisablehook, threading.excepthook = sys.__unraisablehook__, threading.__excepthook__
        logging.getLogger().handlers.clear()
        # other warnings stay errors; `local up` leaves the server that it has started to itself
        warnings.simplefilter("ignore", ResourceWarning)
        boto3.DEFAULT_SESSION = None
        # further processes would import all of it again; tests/rehearse and tests/recommend have several simulate
        os.cpu_count = lambda: 1
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)
        sys.argv = [SCRIPT, *arguments]
        # click names the program by it
        sys.modules["__main__"].__package__ = None
        main()
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 0
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)
