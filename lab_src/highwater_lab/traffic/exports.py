"""Reads what CloudWatch's console and the AWS CLI write: sums of consumed capacity units, and throttle events.

The console writes CSV with a few lines in front (`Id`, `StatusCode`, `Messages`, `Full label`, `Label`), the CLI the
JSON of `get-metric-data` and `get-metric-statistics`.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, timedelta, timezone
from itertools import pairwise
from typing import Any, Final

from highwater.core import Dimension
from highwater_lab.traffic.bins import Laid, Rows, joined, lay
from highwater_lab.traffic.csv_files import TABLE_NAME, is_header
from highwater_lab.traffic.series import MINUTE, MOST_BINS, Stream, TrafficError
from highwater_lab.traffic.text import SECOND, DataPlace, Numbers, Row, parse_instant, read_rows

_METRIC: Final = re.compile(
    r"consumed(read|write)capacityunits|(read|write)throttleevents|provisioned(read|write)capacityunits", re.IGNORECASE
)
# says that a table is there, in time without a datapoint of what it consumes
_GAUGE: Final = "provisioned"
_COLUMN: Final = re.compile(r"(read|write)s(?::([a-zA-Z0-9_.-]{3,255}))?", re.ASCII)
_STATISTIC: Final = re.compile(
    r"Sum|Average|Minimum|Maximum|SampleCount|IQM|(?:p|tm|wm|tc|ts)\d{1,3}(?:\.\d+)?|(?:PR|TM|WM|TC|TS)\(.*\)"
)
_STATISTICS: Final = ("SampleCount", "Average", "Minimum", "Maximum", "ExtendedStatistics")
_WANTED: Final = "ConsumedReadCapacityUnits or ConsumedWriteCapacityUnits"
_ONLY_SUMS: Final = "only sums tell the units of a period, so ask CloudWatch for the statistic Sum"
_DIMENSIONS: Final = ("TableName", "GlobalSecondaryIndexName")
_FRONT: Final = ("id", "statuscode", "messages", "full label", "label")
# The console names its file after the graph, the time shown and the zone in which it shows it:
# carts-2026_11_02_00_00_00-2026_11_03_00_00_00-UTC+2.csv; a browser adds a number where there is such a file
_ZONE: Final = re.compile(
    r"(?:-\d{4}(?:_\d{2}){5}){0,2}-UTC(?:([+-])(\d{1,2})(?:[_:.]?(\d{2}))?)?(?: ?\(\d+\))?(?=\.csv|$)", re.IGNORECASE
)
_LONGEST_PERIOD: Final = 86_400 * 30


@dataclass(slots=True)
class _Series:
    """One metric of a table or an index: its datapoints, and where they are in the file.

    Attributes:
        where: Its place, for messages.
        label: What CloudWatch calls it.
        stream: What it is for; `None` for metrics of other things.
        metric: Its name, in lower case.
        table: Its table, if the file tells.
        period: The seconds of a period, if the file tells.
        has_statistic: Whether the file tells that values are sums.
        expression: The metric math whose result it is; empty for a metric itself.
        points: The units by time in microseconds since 1970.
        numbers: The row of each time.
    """

    where: str
    label: str
    stream: Stream | None = None
    metric: str = ""
    table: str | None = None
    period: int | None = None
    has_statistic: bool = False
    expression: str = ""
    points: dict[int, float] = field(default_factory=dict)
    numbers: dict[int, int] = field(default_factory=dict)

    @property
    def is_gauge(self) -> bool:
        """Whether it is provisioned capacity, which is no traffic."""
        return self.metric.startswith(_GAUGE)

    def add(self, place: DataPlace, time: int, units: float, number: int) -> None:
        """Add a datapoint; the same one may come twice. Raises `TrafficError` if there is another of its time."""
        if self.points.setdefault(time, units) != units:
            raise TrafficError(
                f"{place.at(number)}: {self.label} is {units:g}, but {place.row} {self.numbers[time]} has the same "
                f"time and {self.points[time]:g}; give each datapoint once"
            )
        self.numbers.setdefault(time, number)


def is_console_export(cells: list[str]) -> bool:
    """Whether a file's first row is one that CloudWatch's console writes in front of its rows."""
    return cells[0].lower() in _FRONT and not is_header(cells)


def without_zone(name: str) -> str:
    """Return the name of a file of CloudWatch's console without the time and the zone at its end."""
    return _ZONE.sub("", name)


def read_console_export(place: DataPlace, text: str) -> dict[str | None, Laid]:
    """Read the CSV of CloudWatch's console: the bins by table, `None` if the file does not name it.

    Times are in the zone that the file's name ends with, as the console names it, such as `-UTC+2.csv`; otherwise in
    UTC, and a note says so. Raises `TrafficError`.
    """
    zone = _ZONE.search(place.file)
    sign = -1 if zone and zone[1] == "-" else 1
    hours, minutes = (int(zone[2] or 0), int(zone[3] or 0)) if zone else (0, 0)
    offset = sign * timedelta(hours=hours, minutes=minutes)
    separator, rows = read_rows(place, text)
    numbers = Numbers(place, separator)
    front: dict[str, Row] = {}
    series: list[_Series] = []
    for row in rows:
        time = parse_instant(row.cells[0], timezone(offset) if abs(offset) < timedelta(days=1) else UTC)
        if time is None:
            if series:
                raise TrafficError(
                    f"{place.at(row.number)}: timestamp is {row.cells[0]!r}; write it as 2026/11/02 05:00:00"
                )
            front[row.cells[0].lower()] = row
            continue
        if not series:
            series = _series_of_console(place, front)
        if len(row.cells) > len(series) + 1:
            raise TrafficError(
                f"{place.at(row.number)}: has {len(row.cells)} columns, but the lines in front have {len(series) + 1}; "
                "download the file again"
            )
        for each, cell in zip(series, row.cells[1:], strict=False):
            if cell and each.stream is not None:
                each.add(place, time, numbers.parse(cell, row.number, each.label), row.number)
    series = series or _series_of_console(place, front)
    notes = [] if zone else ["the file's name does not end with a zone such as -UTC+2.csv: times are read as UTC"]
    return _laid(place, series, notes)


def _series_of_console(place: DataPlace, front: Mapping[str, Row]) -> list[_Series]:
    labels = front.get("full label") or front.get("label")
    if labels is None:
        raise TrafficError(f"{place.file}: has no line 'Label' before its first row; download it again from CloudWatch")
    made = []
    for column, label in enumerate(labels.cells[1:], 1):
        series = _labelled(place.at(labels.number), label)
        for name in ("label", "id"):
            row = front.get(name)
            if series.stream is None and row is not None and column < len(row.cells):
                found = _labelled(place.at(row.number), row.cells[column])
                series = found if found.stream is not None else series
        made.append(series)
    return made


def read_json(place: DataPlace, text: str) -> dict[str | None, Laid]:
    """Read the answers of `aws cloudwatch get-metric-data` and `get-metric-statistics`: the bins by table.

    The key is `None` where the answer does not name the table. There may be several answers, one after another or in a
    list. An answer of `get-metric-data` may have its `MetricDataQueries` beside its results; they tell tables, periods
    and statistics. Raises `TrafficError`.
    """
    place = DataPlace(place.file, "datapoint")
    series: list[_Series] = []
    answers = list(_answers(place, text))
    whole = _whole(answers)
    for answer in answers:
        if isinstance(answer, dict) and isinstance(answer.get("MetricDataResults"), list):
            series.extend(_series_of_data(place, answer, whole))
        elif isinstance(answer, dict) and isinstance(answer.get("Datapoints"), list):
            series.append(_series_of_statistics(place, answer))
        else:
            raise TrafficError(
                f"{place.file}: has neither 'MetricDataResults' nor 'Datapoints'; give what aws cloudwatch "
                "get-metric-data or get-metric-statistics prints as JSON"
            )
    return _laid(place, series, [])


def _answers(place: DataPlace, text: str) -> Iterator[Any]:
    decoder = json.JSONDecoder()
    at = 0
    while (begin := re.compile(r"\s*").match(text, at)) and begin.end() < len(text):
        try:
            answer, at = decoder.raw_decode(text, begin.end())
        except json.JSONDecodeError as error:
            raise TrafficError(f"{place.file}, line {error.lineno}: is not valid JSON: {error.msg}") from error
        except (RecursionError, ValueError) as error:
            # numbers of thousands of digits are a ValueError
            raise TrafficError(f"{place.file}: is not valid JSON: {type(error).__name__}") from error
        yield from answer if isinstance(answer, list) else [answer]


def _whole(answers: list[Any]) -> set[tuple[str, str]]:
    """The ids and labels of the metrics whose last page is there."""
    return {
        (str(result.get("Id")), str(result.get("Label", "")))
        for answer in answers
        if isinstance(answer, dict) and isinstance(answer.get("MetricDataResults"), list)
        for result in answer["MetricDataResults"]
        if isinstance(result, dict) and result.get("StatusCode", "Complete") == "Complete"
    }


def _series_of_data(place: DataPlace, answer: Mapping[str, Any], whole: set[tuple[str, str]]) -> Iterator[_Series]:
    asked = answer.get("MetricDataQueries")
    queries = {str(q.get("Id")): q for q in asked if isinstance(q, dict)} if isinstance(asked, list) else {}
    for number, result in enumerate(answer["MetricDataResults"]):
        where = f"{place.file}, MetricDataResults[{number}]"
        if not isinstance(result, dict):
            raise TrafficError(f"{where}: is {_shown(result)}; expected an object with 'Timestamps' and 'Values'")
        name = str(result.get("Id"))
        label = str(result.get("Label", ""))
        series = _labelled(where, label, name)
        if isinstance(queries.get(name), dict):
            series = _as_asked(where, series, queries[name])
        if series.stream is not None and (name, label) not in whole:
            raise TrafficError(
                f"{where}: StatusCode is {_shown(result['StatusCode'])}, so datapoints are missing; fetch all pages"
            )
        times, values = result.get("Timestamps"), result.get("Values")
        if not isinstance(times, list) or not isinstance(values, list) or len(times) != len(values):
            raise TrafficError(f"{where}: 'Timestamps' and 'Values' must be lists of one length; fetch it again")
        _add_all(DataPlace(where, "datapoint"), series, zip(times, values, strict=True))
        yield series


def _series_of_statistics(place: DataPlace, answer: Mapping[str, Any]) -> _Series:
    series = _labelled(place.file, str(answer.get("Label", "")))
    points = answer["Datapoints"]
    for number, point in enumerate(points):
        if not isinstance(point, dict):
            raise TrafficError(f"{place.at(number)}: is {_shown(point)}; expected an object with 'Timestamp' and 'Sum'")
        if "Sum" not in point and series.stream is not None and not series.is_gauge:
            found = ", ".join(name for name in _STATISTICS if name in point) or "no statistic"
            raise TrafficError(f"{place.at(number)}: has {found}, expected Sum; {_ONLY_SUMS}")
    series.has_statistic = True
    # of provisioned capacity only the time matters
    _add_all(place, series, ((point.get("Timestamp"), 0 if series.is_gauge else point.get("Sum")) for point in points))
    return series


def _add_all(place: DataPlace, series: _Series, points: Iterable[tuple[Any, Any]]) -> None:
    if series.stream is None:
        return
    numbers = Numbers(place)
    for number, (at, value) in enumerate(points):
        time = None if isinstance(at, bool) else parse_instant(str(at))
        if time is None:
            raise TrafficError(f"{place.at(number)}: time is {_shown(at)}; write it as 2026-11-02T05:00:00Z")
        units = numbers.parse("" if isinstance(value, bool) else str(value), number, series.label)
        series.add(place, time, units, number)


def _shown(value: object) -> str:
    return repr(value)[:60]


def _labelled(where: str, label: str, name: str = "") -> _Series:
    """Return an empty series by its label, or by its id *name* where its label does not tell a metric.

    A label is a metric's name, with the table and the index before it where there are several, as CloudWatch itself
    labels; or it has these with their dimensions' names, as the console's full labels; or it is like a column of CSV.
    """
    words = [word for word in label.split() if "AWS/DynamoDB" not in word]
    series = _Series(where, label or name)
    for text in (label, name):
        if column := _COLUMN.fullmatch(text.strip()):
            series.stream = Stream(column[2], Dimension(column[1]))
            series.metric = f"consumed{column[1]}capacityunits"
            return series
    dimensions = {
        key: word[len(key) + 1 :] for word in words for key in _DIMENSIONS if word.startswith((f"{key}:", f"{key}="))
    }
    named = [word for word in words if not word.startswith(_DIMENSIONS)]
    at = next((number for number, word in enumerate(named) if _METRIC.fullmatch(word)), None)
    if at is None:
        found = _METRIC.search(name)
        if found:
            _set_metric(series, found[0], None)
        return series
    rest = [*named[:at], *named[at + 1 :]]
    if rest and rest[-1].isascii() and rest[-1].isdigit() and at < len(named) - 1:
        series.period = _parse_period(where, rest.pop(), label)
    statistics = [word for word in rest if _STATISTIC.fullmatch(word)]
    if not named[at].lower().startswith(_GAUGE):
        _check_statistics(where, statistics, label)
    series.has_statistic = bool(statistics)
    places = [word for word in rest if word not in statistics]
    if len(places) > 2 or not all(TABLE_NAME.fullmatch(word) for word in places):
        raise TrafficError(f"{where}: label is {label!r}; expected METRIC, TABLE METRIC or TABLE INDEX METRIC")
    index = dimensions.get("GlobalSecondaryIndexName") or (places[1] if len(places) == 2 else None)
    series.table = dimensions.get("TableName") or (places[0] if places else None)
    _set_metric(series, named[at], index)
    return series


def _set_metric(series: _Series, metric: str, index: str | None) -> None:
    series.metric = metric.lower()
    series.stream = Stream(index, Dimension.READ if "read" in series.metric else Dimension.WRITE)


def _as_asked(where: str, series: _Series, query: Mapping[str, Any]) -> _Series:
    """Return a series as its query has it: metric, dimensions, period and statistic, or metric math."""
    found = query.get("MetricStat")
    asked = found if isinstance(found, dict) else {}
    if isinstance(query.get("Expression"), str):
        return _Series(where, series.label, expression=query["Expression"])
    metric = asked.get("Metric")
    if not isinstance(metric, dict):
        return series
    name = str(metric.get("MetricName"))
    told = _Series(where, series.label)
    if not _METRIC.fullmatch(name):
        return told
    found = metric.get("Dimensions")
    dimensions = (
        {str(each.get("Name")): str(each.get("Value")) for each in found if isinstance(each, dict)}
        if isinstance(found, list)
        else {}
    )
    _set_metric(told, name, dimensions.get("GlobalSecondaryIndexName"))
    told.table = dimensions.get("TableName", series.table)
    told.period = _parse_period(where, str(asked.get("Period")), series.label)
    if not told.is_gauge:
        _check_statistics(where, [str(asked.get("Stat"))], series.label)
    told.has_statistic = True
    return told


def _parse_period(where: str, text: str, label: str) -> int:
    seconds = int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 0
    if not 1 <= seconds <= _LONGEST_PERIOD:
        raise TrafficError(f"{where}: period of {label!r} is {text!r}; expected seconds from 1 to {_LONGEST_PERIOD:,}")
    return seconds


def _check_statistics(where: str, statistics: list[str], label: str) -> None:
    for statistic in statistics:
        if statistic != "Sum":
            raise TrafficError(f"{where}: statistic of {label!r} is {statistic}, expected Sum; {_ONLY_SUMS}")


def _laid(place: DataPlace, series: list[_Series], notes: list[str]) -> dict[str | None, Laid]:
    """Put the series of each table together."""
    others = list(dict.fromkeys(each.label for each in series if each.stream is None))
    tables: dict[str | None, list[_Series]] = {}
    for each in series:
        if each.stream is not None:
            tables.setdefault(each.table, []).append(each)
    if not tables:
        math = next((each for each in series if each.expression), None)
        if math is not None:
            raise TrafficError(
                f"{math.where}: {math.label!r} is the result of the expression {math.expression!r}, which is not read; "
                "ask for the metric itself with the statistic Sum"
            )
        found = f"found only {', '.join(map(repr, others[:5]))}" if others else "it has no metric"
        raise TrafficError(f"{place.file}: has no metric {_WANTED} by its label or id; {found}")
    if others:
        notes.append(f"ignored metrics: {', '.join(map(repr, others[:5]))}{', ...' if len(others) > 5 else ''}")
    rows = {table: _joined(place, found) for table, found in tables.items()}
    # where the file tells no period, its tables have one
    steps = [
        later - earlier
        for table, found in rows.items()
        if all(each.period is None for each in _traffic_of(tables[table]))
        for earlier, later in pairwise(found.times)
    ]
    guess = max(1, min(steps, default=MINUTE * SECOND) // SECOND)
    laid = {}
    for table, joint in rows.items():
        if joint.times:
            laid[table] = _table(place, table, _traffic_of(tables[table]), joint, guess, notes)

        else:
            laid[table] = _without_datapoints(place, tables[table])
    return laid


def _traffic_of(series: list[_Series]) -> list[_Series]:
    return [each for each in series if not each.is_gauge]


def _without_datapoints(place: DataPlace, series: list[_Series]) -> Laid:
    """Return a table without a datapoint of consumption: idle if it has some of provisioned capacity, else unknown."""
    times = sorted({time for each in series for time in each.points})
    if not times:
        return Laid.without_bins(
            f"{place.file}: has no datapoints of what the table consumes, and none of ProvisionedReadCapacityUnits or "
            "ProvisionedWriteCapacityUnits, which would tell an idle table from one that is not there"
        )
    minute = MINUTE * SECOND
    first = times[0] // minute * minute
    idle = array("d", bytes(8 * ((times[-1] - first) // minute + 1)))
    rows = Rows(array("q", range(first, first + len(idle) * minute, minute)), array("q", bytes(8 * len(idle))))
    rows.units = {Stream(None, dimension): array("d", idle) for dimension in Dimension}
    note = f"{place.file}: has datapoints of provisioned capacity and none of consumption: the table is idle"
    return lay(place, rows, bin_seconds=MINUTE).with_notes(note)


def _table(
    place: DataPlace, table: str | None, series: list[_Series], rows: Rows, guess: int, notes: list[str]
) -> Laid:
    periods = {each.period for each in series if each.period is not None}
    if len(periods) > 1:
        shown = " and ".join(str(period) for period in sorted(periods))
        raise TrafficError(f"{series[0].where}: periods are {shown} s; fetch all metrics of a table with one period")
    period = next(iter(periods), None)
    laid = lay(place, rows, table=table, bin_seconds=period or guess)
    mine = [f"{place.file}: {note}" for note in notes]
    if not all(each.has_statistic for each in series):
        mine.append(f"{place.file}: the file does not tell its statistic: values are taken as sums")
    if period is None:
        mine.append(
            f"{place.file}: the file does not tell its period: it is taken as {guess} s, the shortest distance between "
            "two datapoints"
        )
    return laid.with_notes(*mine)


def _joined(place: DataPlace, series: list[_Series]) -> Rows:
    """Return one row for each time, with the units of each stream: consumed ones and one for each throttle event."""
    by_metric: dict[tuple[Stream, str], _Series] = {}
    for each in series:
        if each.stream is None or each.is_gauge:
            continue
        first = by_metric.setdefault((each.stream, each.metric), each)
        if first is not each:
            # pages of one metric
            for time, units in each.points.items():
                first.add(place, time, units, each.numbers[time])
    numbers = {time: number for each in by_metric.values() for time, number in each.numbers.items()}
    if len(numbers) > MOST_BINS:
        raise TrafficError(f"{place.file}: more than {MOST_BINS:,} datapoints; give a shorter period of time")
    consumed = {stream: each.points for (stream, metric), each in by_metric.items() if metric.startswith("consumed")}
    throttled = {stream: each.points for (stream, metric), each in by_metric.items() if "throttle" in metric}
    return joined(consumed, throttled, numbers)
