"""A terminal that is closed and a pipe that nobody reads."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import IO, cast

import pytest
from rich.console import Console

from acceptance.__main__ import LastingOutput, hear_hangup


@pytest.fixture(autouse=True)
def _handler() -> Iterator[None]:
    before = signal.getsignal(signal.SIGHUP)
    yield
    signal.signal(signal.SIGHUP, before)


def test_closed_terminal_interrupts_once() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    hear_hangup()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGHUP)
    # the shell's, after the terminal's: the deletion goes on
    signal.raise_signal(signal.SIGHUP)


def test_nohup_is_respected() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    hear_hangup()
    signal.raise_signal(signal.SIGHUP)


def test_pipe_that_nobody_reads_stops_no_printing() -> None:
    reader, writer = os.pipe()
    with os.fdopen(writer, "w") as stream:
        console = Console(file=cast("IO[str]", LastingOutput(stream)))
        console.print("heard")
        assert os.read(reader, 100) == b"heard\n"
        os.close(reader)
        for _ in range(3):
            console.print("not heard")
