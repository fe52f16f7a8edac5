"""A command that runs inside a lease: its exit status, and the signals that reach it."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import click

from highwater.cli.terminal import say
from highwater.client import Boost, BoostError

# what a shell reports for a process ended by a signal
_SIGNALLED = 128
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def run_in_lease(made: Boost, command: tuple[str, ...]) -> int:
    """Run a command inside the lease; its exit status, or 128 and the number of the signal that ended it."""
    process: subprocess.Popen[bytes] | None = None
    told: list[int] = []

    def forward(number: int, _frame: FrameType | None) -> None:
        told.append(number)
        if process is not None:
            process.send_signal(number)

    made.keep_renewed()
    # what is ignored stays so, as nohup wants it; a terminal sends its own interrupts to the command too
    heard = [number for number in _FORWARDED if signal.getsignal(number) is not signal.SIG_IGN]
    forwarded = [number for number in heard if number is not signal.SIGINT or not _is_in_foreground()]
    before = {number: signal.signal(number, forward) for number in forwarded}
    if signal.SIGINT in heard and signal.SIGINT not in before:
        before[signal.SIGINT] = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        process = subprocess.Popen(command)  # noqa: S603 - the user's own command
        for number in told:
            process.send_signal(number)
        status = process.wait()
    except OSError as failed:
        raise click.ClickException(f"{command[0]}: cannot be run: {failed.strerror}") from failed
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        try:
            made.release()
        except BoostError as failed:
            say(f"highwater boost: the lease could not be given back, it ends by itself: {failed}", err=True)
    return status if status >= 0 else _SIGNALLED - status


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Have the signals that end a process raise, where nothing else handles them, so that a lease is given back."""
    ending = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) is signal.SIG_DFL]

    def end(number: int, _frame: FrameType | None) -> None:
        raise click.exceptions.Exit(_SIGNALLED + number)

    for number in ending:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in ending:
            signal.signal(number, signal.SIG_DFL)


def _is_in_foreground() -> bool:
    """Whether the terminal sends its signals to this process and its children, whatever their input is."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
