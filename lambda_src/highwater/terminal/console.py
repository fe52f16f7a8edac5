"""The terminal: names are printed without control characters, and Ctrl-C and SIGTERM end work between two steps."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
import sys
import textwrap
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderResult


# C0 except tab and newline, delete, C1, and characters that reverse the direction of a line
_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_NARROWEST: Final = 40
# wider than any line
_UNBOUNDED: Final = 10_000


def inert(text: str) -> str:
    """Return *text* with every control character except tab and newline replaced by U+FFFD."""
    return _CONTROL.sub("\ufffd", text)


def open_console(*, stderr: bool = False, is_cut_when_piped: bool = True) -> Console:
    """Return a console on standard output or standard error that prints inert text.

    A terminal that reports fewer than 40 columns is treated as if it had 40. Where the stream is no terminal and
    `COLUMNS` is not set, lines have 80 columns; if not *is_cut_when_piped*, they are as long as they need to be.
    """
    from rich.console import Console, RenderHook
    from rich.segment import Segment

    class Inert:
        """Any renderable with its text made inert; rich's own styles and cursor movements are not changed."""

        def __init__(self, inner: ConsoleRenderable) -> None:
            self._inner = inner

        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            for segment in console.render(self._inner, options):
                yield segment if segment.control else Segment(inert(segment.text), segment.style)

    class Hook(RenderHook):
        def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
            return [Inert(renderable) for renderable in renderables]

    console = Console(stderr=stderr)
    if not is_cut_when_piped and not console.is_terminal and "COLUMNS" not in os.environ:
        console = Console(stderr=stderr, width=_UNBOUNDED)
    if console.width < _NARROWEST:
        console = Console(stderr=stderr, width=_NARROWEST)
    console.push_render_hook(Hook())
    return console


class Hanging:
    """A line for a console; where it is too long for the terminal, what follows is indented by two more."""

    def __init__(self, line: str) -> None:
        self._line = line

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.segment import Segment

        indent = " " * (len(self._line) - len(self._line.lstrip()) + 2)
        wrapped = textwrap.wrap(self._line, options.max_width, subsequent_indent=indent, break_on_hyphens=False)
        for line in wrapped or [""]:
            yield Segment(line)
            yield Segment.line()


def say(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print inert *text* as it is, without wrapping: code, paths and single lines."""
    import click

    click.echo(inert(text), err=err, nl=nl)


def tell(document: object, lines: Iterable[str], *, as_json: bool) -> None:
    """Print a document for machines, or inert lines for people."""
    import click

    if as_json:
        click.echo(json.dumps(document, indent=1))
        return
    for line in lines:
        say(line)


def prepare_streams() -> None:
    """Make sure that standard output and standard error can be written to, whatever their state.

    A closed stream is replaced by one that discards. Characters that the stream's encoding lacks are replaced. An
    invalid terminal width in the environment is removed.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            # not closed before the process ends, like the stream that it replaces
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    columns = os.environ.get("COLUMNS", "")
    if columns and not (columns.isascii() and columns.isdigit() and int(columns) > 0):
        del os.environ["COLUMNS"]


_AGAIN_SECONDS: Final = 0.05


def hear_interrupts(*numbers: signal.Signals) -> None:
    """Make these signals raise `KeyboardInterrupt` from now on, by default only Ctrl-C, whatever code is running.

    Python drops an exception that is raised in a finalizer or in a callback of a weak reference, and an import has many
    of both. Such an interrupt is sent again a moment later. A shell starts background programs with Ctrl-C ignored;
    after this call it is not ignored.
    """
    heard = numbers or (signal.SIGINT,)
    for number in heard:
        signal.signal(number, signal.default_int_handler)
    hearing = threading.get_ident()
    before = sys.unraisablehook

    def hook(dropped: Any) -> None:
        if dropped.exc_type is not None and issubclass(dropped.exc_type, KeyboardInterrupt):
            # Sent later, as raising here would be dropped too. The signal is one that is handled, as Ctrl-C may be
            # ignored, and goes to the thread that handles it, so that a blocking call in that thread is interrupted.
            again = threading.Timer(_AGAIN_SECONDS, signal.pthread_kill, (hearing, heard[0]))
            # a program that ends by itself meanwhile does not wait to be interrupted
            again.daemon = True
            again.start()
        else:
            before(dropped)

    sys.unraisablehook = hook


@contextlib.contextmanager
def stopped_by_signals(stop: Callable[[], None]) -> Iterator[list[int]]:
    """Call *stop* at Ctrl-C and SIGTERM while the block runs; yields the numbers of the received signals.

    A second signal has its previous effect, so that an operator can end the command at once.
    """
    came: list[int] = []

    def hear(number: int, _: object) -> None:
        came.append(number)
        stop()
        signal.signal(number, before[number])

    # known before the first is replaced, as a signal may come at once
    before = {int(number): signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        for number in before:
            signal.signal(number, hear)
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
