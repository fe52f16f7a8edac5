"""Boosts on the command line: `write=8000 at 02:00 for 30m`."""

from __future__ import annotations

import re
from datetime import UTC, datetime, time

import click

from highwater.cli.durations import Duration
from highwater.core import Dimension
from highwater_lab.rehearse import PlannedBoost

_FORM = re.compile(
    r"(?:(?P<index>[A-Za-z0-9_.-]{3,255})\.)?(?P<dimension>read|write)=(?P<units>[0-9]{1,8})(?P<total> in total)?"
    r" at (?P<at>[0-9:T-]{5,16}) for (?P<length>[0-9a-z]+)"
)


class BoostOption(click.ParamType[PlannedBoost]):
    """A click type for a boost, of the table or of an index: `by_status.write=900 in total at 02:00 for 30m`."""

    name = "boost"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> PlannedBoost:
        """Parse the text; raise `click.BadParameter` if it is no boost."""
        if isinstance(value, PlannedBoost):
            return value
        match = _FORM.fullmatch(" ".join(str(value).split()))
        at = None if match is None else parse_time(match["at"])
        if match is None or at is None:
            self.fail(f"{value!r} is no boost; write it like 'write=8000 at 02:00 for 30m'", param, ctx)
        return PlannedBoost(
            index=match["index"],
            dimension=Dimension(match["dimension"]),
            units=int(match["units"]),
            is_total=match["total"] is not None,
            at=at,
            length=Duration().convert(match["length"], param, ctx),
        )


def parse_time(text: str) -> time | datetime | None:
    """Return a time of day, or an instant in UTC; `None` for a text that is neither."""
    try:
        return time.fromisoformat(text) if "T" not in text else datetime.fromisoformat(text).replace(tzinfo=UTC)
    except ValueError:
        return None
