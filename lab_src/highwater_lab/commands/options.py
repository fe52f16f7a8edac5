"""Options that the lab's commands share: pairs, key distributions, quotas, places of files, progress bars."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import re
import sys
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from highwater.core import HighwaterError
from highwater.core.plan.zones import find_zone
from highwater.terminal.console import open_console
from highwater_lab.physics import KeyDistribution
from highwater_lab.template import read_parameters


class Misuse(click.UsageError):
    """An error of usage: the command prints one line that begins with its name, and exits with status 2."""

    def __init__(self, message: str) -> None:
        super().__init__(message, click.get_current_context(silent=True))


@contextlib.contextmanager
def misuse_of_errors() -> Iterator[None]:
    """Raise `Misuse` for an error of Highwater's own, and for a file that cannot be written."""
    try:
        yield
    except HighwaterError as error:
        raise Misuse(str(error)) from error
    except OSError as error:
        raise Misuse(f"{error.filename}: cannot be written: {error.strerror}") from error


class Finite(click.FloatRange):
    """A click type for finite numbers within a range; NaN and infinity are rejected."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse the number; raise `click.BadParameter` if it is not finite or out of range."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number


def _check_zone(ctx: click.Context, option: click.Parameter, name: str) -> str:  # noqa: ARG001 - click gives them
    if find_zone(name) is None:
        raise Misuse(f"--timezone: unknown timezone {name!r}; use an IANA name such as 'Europe/Berlin'")
    return name


timezone_option = click.option(
    "--timezone",
    default="UTC",
    show_default=True,
    callback=_check_zone,
    help="IANA time zone of windows and of surges that recur.",
)


def check_places(inputs: Mapping[str, Path | None], outputs: Mapping[str, Path | None]) -> None:
    """Raise `Misuse` if an output is a folder or the same file as an input or another output.

    Both mappings are from the option's name to its path, `None` if the option is not given.
    """
    paths = {name: path for name, path in inputs.items() if path is not None}
    for name, path in outputs.items():
        if path is None:
            continue
        if not path.name or path.is_dir():
            raise Misuse(f"{name} {str(path)!r} is a folder; give the name of a file")
        for other_name, other_path in paths.items():
            # unlike Path.resolve, realpath does not fail on a loop of links
            is_same = os.path.realpath(path) == os.path.realpath(other_path)
            if is_same or (path.exists() and other_path.exists() and path.samefile(other_path)):
                raise Misuse(f"{name} and {other_name} are the same file, {path}; give another file")
        paths[name] = path


class Pairs(click.ParamType[tuple[str, str]]):
    """A click type for two texts with `=` between them; *name* is the form in messages, such as `NAME=VALUE`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """Split the text at its first `=`; raise `click.BadParameter` if there is none or no text before it."""
        if isinstance(value, tuple):
            return value
        left, equals, right = str(value).partition("=")
        if not left or not equals:
            self.fail(f"{value!r} does not have the form {self.name}", param, ctx)
        return left, right


def parameters_options(command: Callable[..., object]) -> Callable[..., object]:
    """Add the options that a template is read with: `--parameter`, `--parameters` and `--no-scaling`.

    The command gets all values of parameters as one mapping, `parameters`. A value of `--parameter` takes the place of
    a file's, and that of a later file of an earlier one's. They stay apart in the mapping, as a file may have more than
    a template declares.
    """

    @functools.wraps(command)
    def with_parameters(
        *, pairs: tuple[tuple[str, str], ...], parameter_files: tuple[str, ...], **given: Any
    ) -> object:
        in_files: dict[str, str] = {}
        with misuse_of_errors():
            for place in parameter_files:
                in_files |= read_parameters(place)
        return command(parameters=ChainMap(dict(pairs), in_files), **given)

    with_vouching = click.option(
        "--no-scaling",
        metavar="LOGICAL_ID",
        multiple=True,
        help="A custom resource, or another that is not read, scales no table: its logical id, or its address in a "
        "plan.",
    )(with_parameters)
    with_file = click.option(
        "--parameters",
        "parameter_files",
        metavar="FILE",
        multiple=True,
        help="Values of template parameters: a file for the AWS CLI, CodePipeline or SAM (samconfig.toml:prod), or an "
        "object of names and values in JSON or YAML. --parameter wins over it.",
    )(with_vouching)
    return click.option(
        "--parameter", "pairs", type=Pairs("NAME=VALUE"), multiple=True, help="Value of a template parameter."
    )(with_file)


class KeysOption(click.ParamType[tuple[str | None, KeyDistribution]]):
    """A click type for `uniform`, `zipf:1.2`, `hot:40`, `hot:40/8` or `rolling`; after `INDEX=` it is an index's."""

    name = "[INDEX=]DISTRIBUTION"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str | None, KeyDistribution]:
        """Parse the text; raise `click.BadParameter` if it is not a key distribution."""
        if isinstance(value, tuple):
            return value
        index, equals, text = str(value).rpartition("=")
        match = re.fullmatch(
            r"(uniform|rolling|zipf|zipf:[0-9]{1,4}(\.[0-9]{1,6})?|hot:[0-9]{1,9}(/[0-9]{1,9})?)", text
        )
        if match is None:
            self.fail(
                f"{value!r} is not a key distribution; give uniform, zipf[:EXPONENT], hot:PERCENT[/SHARDS] or rolling",
                param,
                ctx,
            )
        kind, _, number = text.partition(":")
        try:
            if kind == "zipf":
                distribution = KeyDistribution.zipf(float(number or "0.99"))
            elif kind == "hot":
                percent, _, shards = number.partition("/")
                distribution = KeyDistribution.single_hot_key(int(percent), int(shards or "1"))
            else:
                distribution = KeyDistribution.rolling() if kind == "rolling" else KeyDistribution.uniform()
        except ValueError as error:
            self.fail(f"{value!r}: {error}", param, ctx)
        return (index if equals else None), distribution


@contextlib.contextmanager
def progress_bar(title: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar on standard error, if that is a terminal.

    Yields a function to call with the amount of work done and its total.
    """
    console = open_console(stderr=True)
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
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


def refuse_options(given: Mapping[str, object], where: str, of: str = "one table") -> None:
    """Raise `Misuse` for the first option that has a value, saying what it is *of* and *where* it has no effect."""
    for option, value in given.items():
        if value:
            raise Misuse(f"{option} is for {of}; remove it {where}")
