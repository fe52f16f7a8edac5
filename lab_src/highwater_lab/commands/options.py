"""What the commands of the lab share: misuse, numbers, pairs, key distributions, progress."""

from __future__ import annotations

import contextlib
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from highwater_lab.physics import KeyDistribution


class Misuse(click.UsageError):
    """One line that begins with the command's name, exit status 2."""

    def __init__(self, message: str) -> None:
        super().__init__(message, click.get_current_context(silent=True))


class Finite(click.FloatRange):
    """A number within a range; no number at all, such as NaN, is misuse."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read the number."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is no number", param, ctx)
        return number


def check_places(inputs: Mapping[str, Path | None], outputs: Mapping[str, Path | None]) -> None:
    """Raise `Misuse` where a file would be written over one that is read, or two over one another."""
    seen = {name: path for name, path in inputs.items() if path is not None}
    for name, path in outputs.items():
        if path is None:
            continue
        if not path.name or path.is_dir():
            raise Misuse(f"{name} {str(path)!r} is a folder; name a file in it")
        for other, taken in seen.items():
            is_same = path.resolve() == taken.resolve()
            if is_same or (path.exists() and taken.exists() and path.samefile(taken)):
                raise Misuse(f"{name} {path} is the file of {other} too; name another")
        seen[name] = path


class Pairs(click.ParamType[tuple[str, str]]):
    """Two texts with `=` between them."""

    def __init__(self, name: str) -> None:
        self.name = name

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """Split at the first `=`; anything else is misuse."""
        if isinstance(value, tuple):
            return value
        left, equals, right = str(value).partition("=")
        if not left or not equals:
            self.fail(f"{value!r} is no {self.name}", param, ctx)
        return left, right


class KeysOption(click.ParamType[tuple[str | None, KeyDistribution]]):
    """`uniform`, `zipf:1.2`, `hot:40` or `rolling`, for the table or, after `INDEX=`, for an index."""

    name = "[INDEX=]DISTRIBUTION"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str | None, KeyDistribution]:
        """Read the text; anything else is misuse."""
        if isinstance(value, tuple):
            return value
        index, equals, text = str(value).rpartition("=")
        match = re.fullmatch(r"(uniform|rolling|zipf|zipf:[0-9]{1,4}(\.[0-9]{1,6})?|hot:[0-9]{1,9})", text)
        if match is None:
            self.fail(f"{value!r} is none of uniform, zipf[:EXPONENT], hot:PERCENT, rolling", param, ctx)
        kind, _, number = text.partition(":")
        try:
            if kind == "zipf":
                made = KeyDistribution.zipf(float(number or "0.99"))
            elif kind == "hot":
                made = KeyDistribution.single_hot_key(int(number))
            else:
                made = KeyDistribution.rolling() if kind == "rolling" else KeyDistribution.uniform()
        except ValueError as wrong:
            self.fail(f"{value!r}: {wrong}", param, ctx)
        return (index if equals else None), made


@contextlib.contextmanager
def progress_bar(title: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error, where that is a terminal; yields what to call with the work done and all of it."""
    console = Console(stderr=True)
    if not sys.stderr.isatty():
        yield lambda _done, _all: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:.0f} %"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(title, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
