"""Command-line options common to the commands that work within a budget: how the work begins, and what it may spend."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import click

from highwater.core.pacing import Start

F = TypeVar("F", bound=Callable[..., Any])
_NAMES = ("start", "allow_throttles", "coordinator")


class Rate(click.ParamType["float | str"]):
    """A click type for units per second, or a share of the provisioned capacity such as `30%`."""

    name = "rate"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float | str:
        """Parse the text; raise `click.BadParameter` if it is neither. The client checks how large it is."""
        text = str(value).strip()
        if text.endswith("%"):
            return text
        try:
            return float(text)
        except ValueError:
            self.fail(f"{value!r} is no rate; write units per second, such as 200, or a share such as 30%", param, ctx)


def pace_options(command: F) -> F:
    """Add the options that say how work begins and what it may spend; the command gets them as *pacing*."""

    @click.option(
        "--start",
        type=click.Choice([str(each) for each in Start]),
        default=str(Start.FULL),
        help="full: at the whole rate at once, the default. slow: with what there is room for, and more as auto "
        "scaling follows. boosted: ask a coordinator for the capacity first, and start slowly if there is none.",
    )
    @click.option(
        "--allow-throttles",
        is_flag=True,
        help="Keep the rate when requests are throttled; for tables nobody else uses.",
    )
    @click.option("--coordinator", help="Name or URL of the coordinator of a boosted start. By default the only one.")
    @functools.wraps(command)
    def with_pacing(*arguments: Any, **options: Any) -> Any:
        pacing = {name: options.pop(name) for name in _NAMES}
        return command(*arguments, pacing=pacing, **options)

    return with_pacing  # type: ignore[return-value] # click's own decorators change the signature too
