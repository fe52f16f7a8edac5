"""Ctrl-C is heard wherever it comes."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

# The interrupt comes while a weak reference's callback runs, in which Python drops exceptions.
DROPPED = """
import signal, sys, threading, weakref
from highwater.cli.terminal import hear_interrupts

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
OTHER = """
from highwater.cli.terminal import hear_interrupts

class Broken:
    def __del__(self):
        raise ValueError("broken")

hear_interrupts()
Broken()
print("went on")
"""


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


def test_other_errors_that_python_drops_are_told_as_before() -> None:
    status, output, errors = _run(OTHER)
    assert (status, output) == (0, "went on\n")
    assert errors.startswith("Exception ignored in: <function Broken.__del__")
    assert errors.endswith("ValueError: broken\n")
