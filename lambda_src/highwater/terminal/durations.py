"""Durations on the command line, such as `90s`, `45m`, `2h30m` or `3d`."""

from __future__ import annotations

import re
from datetime import timedelta

import click

_PART = re.compile(r"(\d{1,20})([dhms])", re.ASCII)
_UNITS = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
# Time zone rules are not reliable further ahead, and a longer duration is more likely a typing error
_LONGEST = timedelta(days=3660)


class DurationType(click.ParamType[timedelta]):
    """A click type for durations in whole seconds, from one second to 3,660 days."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """Parse the text; raise `click.BadParameter` if it is not a duration or out of range."""
        text = str(value).strip().lower()
        parts = _PART.findall(text)
        if not parts or "".join(number + unit for number, unit in parts) != text:
            self.fail(f"{value!r} is not a duration; write it like 90s, 45m, 2h30m or 3d", param, ctx)
        try:
            duration = sum((timedelta(**{_UNITS[unit]: int(number)}) for number, unit in parts), timedelta(0))
        except OverflowError:
            duration = timedelta.max
        if not timedelta(0) < duration <= _LONGEST:
            self.fail(f"{value!r} is out of range; allowed: 1s to {_LONGEST.days}d", param, ctx)
        return duration
