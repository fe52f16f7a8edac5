"""Durations as people type them: `90s`, `45m`, `2h30m`, `3d`."""

from __future__ import annotations

import re
from datetime import timedelta

import click

_PART = re.compile(r"(\d{1,20})([dhms])", re.ASCII)
_UNITS = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
# Farther ahead, zone rules are guesses, and a typing error likelier than an intention
_LONGEST = timedelta(days=3660)


class Duration(click.ParamType[timedelta]):
    """A click type for whole durations, from a second to ten years."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """Read the text; anything else is misuse."""
        text = str(value).strip().lower()
        parts = _PART.findall(text)
        if not parts or "".join(number + unit for number, unit in parts) != text:
            self.fail(f"{value!r} is no duration; write it as in 90s, 45m, 2h30m or 3d", param, ctx)
        try:
            duration = sum((timedelta(**{_UNITS[unit]: int(number)}) for number, unit in parts), timedelta(0))
        except OverflowError:
            duration = timedelta.max
        if not timedelta(0) < duration <= _LONGEST:
            self.fail(f"{value!r} is out of range; allowed: 1s to {_LONGEST.days}d", param, ctx)
        return duration
