"""`highwater shards`: which partition keys of a trace, a log or a report of throttled keys need how many shards."""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import Any, Final

import click

from highwater.cli.options import as_json_option
from highwater.core.documents import read_document
from highwater.core.findings import shown
from highwater.core.limits import PARTITION_READ_UNITS, PARTITION_WRITE_UNITS
from highwater.core.units import Dimension
from highwater.shards.key import shards_needed
from highwater.shards.key_log import read_key_log
from highwater.terminal.console import tell
from highwater.terminal.numbers import WholeNumber

_FINDING: Final = 1
_COLUMNS: Final = ("timestamp", "key", "units")
_FORM: Final = "timestamp,key,units, such as 2026-12-01T12:00:00Z,TENANT#1,1; or one key a line, with --seconds"
_OF_LOG: Final = (
    "lines that highwater.shards.count_keys has logged, such as the answer of `aws logs filter-log-events`; set that "
    "logger's level to INFO"
)
_MOST_SHOWN: Final = 50
# the end of the year 9999; a number beyond it counts milliseconds
_LAST_SECOND: Final = 253_402_300_799


@dataclass(frozen=True, slots=True)
class HotKey:
    """The rate of a key, and the shards that it needs.

    Attributes:
        key: The partition key.
        units_per_second: The units of its highest second; the mean where the trace has no times.
        at: That second in UTC, `None` for the mean.
        shards: How many shards it needs.
    """

    key: str
    units_per_second: float
    at: str | None
    shards: int


class TraceError(click.ClickException):
    """A trace that cannot be read."""

    def __init__(self, name: str, line: int, what: str) -> None:
        super().__init__(f"trace {name}, line {line:,}: {what}")


@click.command(short_help="Which partition keys of a trace need how many shards.")
@click.argument("table")
@click.option(
    "--trace",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    help="The requests: CSV with timestamp,key,units in any order of time, or one key a line; - for standard input.",
)
@click.option(
    "--report",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    help="Instead of a trace: the throttled keys of CloudWatch Contributor Insights by minute, as JSON of "
    "`aws cloudwatch get-insight-rule-report --period 60`.",
)
@click.option(
    "--log",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    help="Instead of a trace: a log with lines of the logger highwater.keys, of any number of processes.",
)
@click.option(
    "--units",
    type=click.FloatRange(min=0.5, max=1_000_000),
    help="With --report or --log: units of a throttled request. [default: 1]",
)
@click.option("--seconds", type=click.FloatRange(min=1), help="The time of a trace without timestamps, in seconds.")
@click.option("--reads", is_flag=True, help="The units are read units; a partition serves 3,000 instead of 1,000.")
@click.option(
    "--headroom",
    type=WholeNumber(0, 90),
    default=50,
    show_default=True,
    help="Percent of a partition that stays free; at 50, two shards that are in the same partition fit.",
)
@as_json_option
def shards(
    table: str,
    trace: str | None,
    report: str | None,
    log: str | None,
    units: float | None,
    seconds: float | None,
    reads: bool,
    headroom: int,
    as_json: bool,
) -> None:
    """Say which partition keys of TABLE need how many shards, from the busiest second of each in a trace.

    A report of throttled keys has only the requests that were throttled, for each minute. Those are taken to come on
    top of what one partition serves; clients' retries are in it, so fewer shards may do.

    A log has units by the minute, as the processes counted them: the busiest second of a minute may have more. What was
    throttled counts on top, also where a retry was served.

    Sends no request to AWS; TABLE is only the name in the answer. Exit status: 1 if a key needs more than one shard.
    """
    dimension = Dimension.READ if reads else Dimension.WRITE
    per_partition = PARTITION_READ_UNITS if reads else PARTITION_WRITE_UNITS
    given = [each for each in (trace, report, log) if each is not None]
    if len(given) != 1:
        raise click.UsageError("give the requests with exactly one of --trace FILE, --report FILE and --log FILE")
    if trace is not None and units is not None:
        raise click.UsageError("--units is of --report and --log, as a trace has the units of each request; remove it")
    if trace is None and seconds is not None:
        raise click.UsageError("--seconds is of --trace, as reports and logs have times; remove it")
    more: dict[str, int] = {}
    with click.open_file(given[0], encoding="utf-8", errors="replace") as lines:
        if trace is not None:
            peaks = read_peaks(lines, trace, seconds)
        elif report is not None:
            peaks = read_report(lines.read(), report, per_partition, 1.0 if units is None else units)
        else:
            logged = read_key_log(lines.read(), table, dimension, 1.0 if units is None else units)
            if not logged.lines:
                raise click.ClickException(f"log {log}: got no line of the logger highwater.keys, allowed: {_OF_LOG}")
            peaks, more = logged.peaks, {"secrets": logged.secrets}
    ranked = [
        HotKey(key, units, at, shards_needed(units, per_partition, headroom)) for key, (units, at) in peaks.items()
    ]
    ranked.sort(key=lambda each: (-each.units_per_second, each.key))
    hot = [each for each in ranked if each.shards > 1]
    found: dict[str, Any] = {"table": table, "dimension": str(dimension), "partition_units": per_partition}
    found |= {"headroom_percent": headroom, "keys_seen": len(ranked), "keys": [asdict(each) for each in hot]} | more
    room = f"{per_partition:,} units/s less {headroom} %"
    tell(found, chain(_lines(table, dimension, ranked, hot, room), _secrets(more)), as_json=as_json)
    if hot:
        raise click.exceptions.Exit(_FINDING)


def _lines(table: str, dimension: Dimension, ranked: list[HotKey], hot: list[HotKey], room: str) -> Iterator[str]:
    if not hot:
        top = f"; the busiest is {ranked[0].key} with {ranked[0].units_per_second:,.0f}" if ranked else ""
        yield f"{table}: none of {len(ranked):,} keys needs shards for its {dimension}s ({room} each){top}"
        return
    verb = "needs" if len(hot) == 1 else "need"
    yield f"{table}: {len(hot):,} of {len(ranked):,} keys {verb} shards for their {dimension}s ({room} each)"
    for each in hot[:_MOST_SHOWN]:
        when = "on average" if each.at is None else f"at {each.at}"
        yield f"  {each.key}: {each.shards:,} shards, for {each.units_per_second:,.0f} units/s {when}"
    if len(hot) > _MOST_SHOWN:
        yield f"  and {len(hot) - _MOST_SHOWN:,} more; all of them: --json"
    yield (
        "  several shards may be in one partition until DynamoDB splits it; "
        "where these minutes matter, take twice as many"
    )


def _secrets(more: dict[str, int]) -> Iterator[str]:
    number = more.get("secrets", 0)
    if number > 1:
        yield (
            f"  the hashes are made with {number:,} secrets, and a key has another hash with each: its units are not "
            "added up; give all processes one, count_keys(..., secret=...)"
        )


def read_peaks(lines: Iterable[str], name: str, seconds: float | None) -> dict[str, tuple[float, str | None]]:
    """Return each key's units in its highest second, and that second; or its mean over *seconds*, and `None`.

    Raises `TraceError` for a line that is neither form, or for times given twice or not at all.
    """
    rows = csv.reader(lines)
    by_second: Counter[tuple[str, int]] = Counter()
    counts: Counter[str] = Counter()
    for row in rows:
        if not any(row) or tuple(each.strip().lower() for each in row) == _COLUMNS:
            continue
        if seconds is not None:
            # a key may have commas of its own
            counts[",".join(row)] += 1
            continue
        if len(row) != len(_COLUMNS):
            raise TraceError(name, rows.line_num, f"got {','.join(row)!r}, allowed: {_FORM}")
        at, units = _second_of(row[0].strip()), _units_of(row[2].strip())
        if at is None or units is None:
            wrong = row[0] if at is None else row[2]
            raise TraceError(name, rows.line_num, f"got {wrong!r}, allowed: {_FORM}")
        by_second[row[1], at] += units  # type: ignore[assignment] # a counter counts fractions as well
    if seconds is not None:
        return {key: (count / seconds, None) for key, count in counts.items()}
    peaks: dict[str, tuple[float, str | None]] = {}
    for (key, at), units in by_second.items():
        if key not in peaks or units > peaks[key][0]:
            peaks[key] = (units, datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z"))
    return peaks


def read_report(
    text: str, name: str, per_partition: int, units_of_request: float
) -> dict[str, tuple[float, str | None]]:
    """Return the units a second of each throttled key in its worst minute, and when that minute began.

    Args:
        text: JSON of GetInsightRuleReport with a period of a minute, for a rule of throttled keys (Amazon CloudWatch
            API Reference, "GetInsightRuleReport", read 2026-11).
        name: The file's name, for messages.
        per_partition: What one partition serves, which was served of each of these keys, in units per second.
        units_of_request: How many units a request consumes.

    Raises `click.ClickException` for another document.
    """
    try:
        contributors = read_document(text)["Contributors"]
        worst = {
            ", ".join(each["Keys"]): max(
                (float(point["ApproximateValue"]), _text_of(point["Timestamp"])) for point in each["Datapoints"]
            )
            for each in contributors
            if each["Datapoints"]
        }
        if not all(0 <= requests < math.inf for requests, _ in worst.values()):
            raise ValueError(worst)
    except (ValueError, LookupError, TypeError):
        form = "JSON of `aws cloudwatch get-insight-rule-report`: Contributors with Keys and Datapoints"
        message = f"report {name}: got {shown(text)}, allowed: {form}"
        raise click.ClickException(message) from None
    return {key: (per_partition + requests / 60 * units_of_request, at) for key, (requests, at) in worst.items()}


def _text_of(timestamp: str | float) -> str:
    second = _second_of(str(timestamp))
    if second is None:
        raise ValueError(timestamp)
    return datetime.fromtimestamp(second, UTC).isoformat().replace("+00:00", "Z")


def _second_of(text: str) -> int | None:
    """Return whole seconds since 1970 of such a number, or of a time in ISO 8601; UTC where it names no zone."""
    try:
        seconds = float(text)
    except ValueError:
        try:
            at = datetime.fromisoformat(text)
        except ValueError:
            return None
        seconds = (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    return math.floor(seconds) if 0 <= seconds <= _LAST_SECOND else None


def _units_of(text: str) -> float | None:
    try:
        units = float(text)
    except ValueError:
        return None
    return units if 0 <= units < math.inf else None
