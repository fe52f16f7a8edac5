"""Boosts, background work and queues on the command line.

For example `write=8000 at 02:00 for 30m`, and `write=2000 at 02:00 for 7200000 units slow`, and
`500 within 6h`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, time

import click

from highwater.core import Dimension
from highwater.core.limits import LONGEST_DRAIN_SECONDS
from highwater.core.pacing.following import Start
from highwater.terminal.durations import DurationType
from highwater_lab.rehearse import PlannedBoost, PlannedJob
from highwater_lab.simulation import Buffer

_BOOST_FORM = re.compile(
    r"(?:(?P<index>[A-Za-z0-9_.-]{3,255})\.)?(?P<dimension>read|write)=(?P<units>[0-9]{1,8})(?P<total> in total)?"
    r" at (?P<at>[0-9:T-]{5,16}) for (?P<length>[0-9a-z]+)"
)


class BoostOption(click.ParamType[PlannedBoost]):
    """A click type for a boost, of the table or of an index: `by_status.write=900 in total at 02:00 for 30m`."""

    name = "boost"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> PlannedBoost:
        """Parse the text; raise `click.BadParameter` if it is not a boost."""
        if isinstance(value, PlannedBoost):
            return value
        match = _BOOST_FORM.fullmatch(" ".join(str(value).split()))
        at = None if match is None else parse_time(match["at"])
        if match is None or at is None:
            self.fail(f"{value!r} is no boost; write it like 'write=8000 at 02:00 for 30m'", param, ctx)
        return PlannedBoost(
            index=match["index"],
            dimension=Dimension(match["dimension"]),
            units=int(match["units"]),
            is_total=match["total"] is not None,
            at=at,
            length=DurationType().convert(match["length"], param, ctx),
        )


def parse_time(text: str) -> time | datetime | None:
    """Return a time of day, or an instant in UTC; `None` for a text that is neither, or has an offset from UTC."""
    try:
        at = time.fromisoformat(text) if "T" not in text else datetime.fromisoformat(text)
    except ValueError:
        return None
    if at.tzinfo is not None:
        return None
    return at if isinstance(at, time) else at.replace(tzinfo=UTC)


_JOB_FORM = re.compile(
    r"(?:(?P<index>[A-Za-z0-9_.-]{3,255})\.)?(?P<dimension>read|write)=(?P<rate>[1-9][0-9]{0,7})(?P<share>%)?"
    r" at (?P<at>[0-9:T-]{5,16}) for (?P<units>[1-9][0-9]{0,14}) units"
    r"(?: by (?P<workers>[1-9][0-9]{0,2}) workers)?(?: (?P<start>slow|boosted))?(?P<throttled> throttled)?"
)


class JobOption(click.ParamType[PlannedJob]):
    """A click type for a job: `write=900 at 02:00 for 5000000 units slow`, `read=30% at 02:00 for 900000 units`."""

    name = "job"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> PlannedJob:
        """Parse the text; raise `click.BadParameter` if it is not a job."""
        if isinstance(value, PlannedJob):
            return value
        match = _JOB_FORM.fullmatch(" ".join(str(value).split()))
        at = None if match is None else parse_time(match["at"])
        if match is None or at is None:
            self.fail(f"{value!r} is no job; write it like 'write=2000 at 02:00 for 7200000 units slow'", param, ctx)
        rate, is_share = int(match["rate"]), match["share"] is not None
        start = Start(match["start"] or Start.FULL)
        if match["index"] is not None and match["dimension"] == "write":
            self.fail(f"{value!r}: an index is written to by way of its table; leave the index out", param, ctx)
        if is_share and (rate > 100 or start is Start.BOOSTED):
            self.fail(f"{value!r}: a share is from 1% to 100%, and cannot be boosted", param, ctx)
        return PlannedJob(
            index=match["index"],
            dimension=Dimension(match["dimension"]),
            rate=0 if is_share else rate,
            percent=rate if is_share else None,
            units=int(match["units"]),
            start=start,
            allow_throttles=match["throttled"] is not None,
            workers=int(match["workers"] or 1),
            at=at,
        )


_BUFFER_FORM = re.compile(r"(?P<units>[1-9][0-9]{0,7})(?: within (?P<drain>[0-9a-z]+))?")


class BufferOption(click.ParamType[Buffer]):
    """A click type for a queue in front of the writes: `500 within 6h`, write units per second and the drain time."""

    name = "queue"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Buffer:
        """Parse the text; raise `click.BadParameter` if it is not a queue."""
        if isinstance(value, Buffer):
            return value
        match = _BUFFER_FORM.fullmatch(" ".join(str(value).split()))
        if match is None:
            self.fail(f"{value!r} is no queue; write it like '500 within 6h', or '500' for half a day", param, ctx)
        buffer = Buffer(units=int(match["units"]))
        if match["drain"] is None:
            return buffer
        drain = DurationType().convert(match["drain"], param, ctx)
        if drain.total_seconds() > LONGEST_DRAIN_SECONDS:
            self.fail(f"{value!r}: SQS deletes messages after 14 days; give up to 13d", param, ctx)
        return replace(buffer, drain_seconds=int(drain.total_seconds()))
