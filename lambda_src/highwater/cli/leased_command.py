"""A command that runs inside a lease: its exit status, and the signals that reach it."""

from __future__ import annotations

import signal
import subprocess
import sys
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
    # a terminal sends its own interrupts to the command too
    forwarded = [number for number in _FORWARDED if number is not signal.SIGINT or not sys.stdin.isatty()]
    before = {number: signal.signal(number, forward) for number in forwarded}
    if signal.SIGINT not in before:
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
