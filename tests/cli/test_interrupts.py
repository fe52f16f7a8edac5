"""Ctrl-C is heard wherever it comes."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

# The interrupt comes while a weak reference's callback runs, in which Python drops exceptions.
DROPPED = """
import signal, sys, threading, weakref
from highwater.terminal.console import hear_interrupts

class Module:
    pass

def callback(_):
    signal.raise_signal(getattr(signal, sys.argv[1]))

hear_interrupts(*(getattr(signal, name) for name in sys.argv[2:]))
module = Module()
reference = weakref.ref(module, callback)
try:
    del module
    threading.Event().wait(60)
except KeyboardInterrupt:
    print("heard")
"""
# Both signals come as soon as each is heard, and the second of a kind has its effect again.
AT_ONCE = """
import signal
from highwater.terminal.console import stopped_by_signals

set_handler = signal.signal

def set_and_receive(number, handler):
    before = set_handler(number, handler)
    if callable(handler) and handler.__name__ == "hear":
        signal.raise_signal(number)
    return before

signal.signal = set_and_receive
stopped = []
with stopped_by_signals(lambda: stopped.append("stop")) as came:
    print(came, stopped, signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)
"""
# The interrupt is dropped while `highwater` imports its commands.
COMMAND = """
import signal, sys, threading, weakref
import highwater.cli.main as command

class Module:
    pass

def import_commands(group):
    print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)
    if sys.argv.pop() == "interrupted":
        module = Module()
        reference = weakref.ref(module, lambda _: signal.raise_signal(signal.SIGINT))
        del module
        threading.Event().wait(60)
    return ()

command.entry_points = import_commands
command.main()
"""
OTHER = """
from highwater.terminal.console import hear_interrupts

class Broken:
    def __del__(self):
        raise ValueError("broken")

hear_interrupts()
Broken()
print("went on")
"""


@pytest.fixture(autouse=True)
def interrupts() -> Iterator[None]:
    """Programs that a test starts hear Ctrl-C, also where the tests themselves run in a shell's background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def _run(code: str, *arguments: str, is_in_background: bool = False) -> tuple[int, str, str]:
    command = [sys.executable, "-c", code, *arguments]
    if is_in_background:
        # as a shell starts a program that ends with &: with Ctrl-C ignored
        command = ["sh", "-c", "trap '' INT; exec \"$@\"", "sh", *command]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("is_in_background", [False, True])
@pytest.mark.parametrize(
    ("sent", "heard"), [("SIGINT", ()), ("SIGINT", ("SIGINT", "SIGTERM")), ("SIGTERM", ("SIGTERM",))]
)
def test_interrupt_that_python_drops_comes_again(sent: str, heard: tuple[str, ...], *, is_in_background: bool) -> None:
    assert _run(DROPPED, sent, *heard, is_in_background=is_in_background) == (0, "heard\n", "")


def test_signal_that_nobody_asked_to_hear_ends_the_program() -> None:
    assert _run(DROPPED, "SIGTERM")[0] == -signal.SIGTERM


def test_signal_that_comes_while_the_command_begins_to_hear_stops_it() -> None:
    assert _run(AT_ONCE) == (0, "[2, 15] ['stop', 'stop'] True\n", "")


def test_command_hears_an_interrupt_that_python_drops() -> None:
    assert _run(COMMAND, "--version", "interrupted") == (130, "False\n", "")


def test_command_in_the_background_goes_on_to_ignore_ctrl_c() -> None:
    status, output, errors = _run(COMMAND, "--version", "in peace", is_in_background=True)
    assert (status, output.splitlines()[0], errors) == (0, "True", "")


def test_other_errors_that_python_drops_are_told_as_before() -> None:
    status, output, errors = _run(OTHER)
    assert (status, output) == (0, "went on\n")
    assert errors.startswith("Exception ignored in: <function Broken.__del__")
    assert errors.endswith("ValueError: broken\n")
