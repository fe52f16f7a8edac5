"""A terminal that is closed, and output that nobody reads any more: neither keeps a run from deleting what it made."""

from __future__ import annotations

import os
import signal
from typing import TextIO


def hear_hangup() -> None:
    """Have SIGHUP raise `KeyboardInterrupt` once; a program that was started with `nohup` goes on not to hear it.

    The terminal and its shell may both send it; only the first counts, as a second one would end the deletion.
    """
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        return

    def hear(_: int, __: object) -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        raise KeyboardInterrupt

    signal.signal(signal.SIGHUP, hear)


class LastingOutput:
    """A stream that drops what is written once its reader is gone, such as `tee` after Ctrl-C or a closed terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.encoding = stream.encoding

    def write(self, text: str) -> int:
        """Write *text*, or drop it."""
        try:
            self._stream.write(text)
        except OSError:
            self._give_up()
        return len(text)

    def flush(self) -> None:
        """Flush, or drop what was written."""
        try:
            self._stream.flush()
        except OSError:
            self._give_up()

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """The number of its file."""
        return self._stream.fileno()

    def _give_up(self) -> None:
        # what is still buffered would raise again at the end of the program
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)
