"""The shapes in which users have traffic: one series of units by table and stream, written in each of them."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, timezone
from random import Random
from typing import Any, Final

from highwater.core import Dimension
from highwater_lab.traffic import Stream

# the units of each bin of each stream of each table
Units = Mapping[str, Mapping[Stream, list[float]]]
ENCODINGS: Final = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be")
METRICS: Final = {Dimension.READ: "ConsumedReadCapacityUnits", Dimension.WRITE: "ConsumedWriteCapacityUnits"}


def _iso(at: datetime, random: Random) -> str:
    zone = timezone(timedelta(minutes=random.choice([0, 60, -210, 345, 840])))
    return at.astimezone(zone).isoformat(random.choice("T "))


TIMES: Final[Mapping[str, Callable[[datetime, Random], str]]] = {
    "any offset": _iso,
    "Z": lambda at, _: at.strftime("%Y-%m-%dT%H:%M:%SZ"),
    "none": lambda at, _: at.strftime("%Y-%m-%d %H:%M"),
    "slashes": lambda at, _: at.strftime("%Y/%m/%d %H:%M:%S"),
    "basic": lambda at, _: at.strftime("%Y%m%dT%H%M%SZ"),
    "seconds": lambda at, _: str(int(at.timestamp())),
    "fractions": lambda at, _: f"{at.timestamp():.3f}",
    "milliseconds": lambda at, _: str(int(at.timestamp()) * 1000),
}


def as_csv(
    units: Units,
    start: datetime,
    seconds: int,
    random: Random,
    *,
    separator: str,
    comma: bool,
    encoding: str,
    times: str,
) -> bytes:
    """CSV with a column of tables, columns that mean nothing, rows in any order and some of them twice."""
    streams = list(next(iter(units.values())))
    headers = ["Host", "Table Name", "TIMESTAMP", *(_capitals(stream, random) for stream in streams)]
    columns = random.sample(range(len(headers)), len(headers))
    rows = []
    for table, series in units.items():
        for number in range(len(series[streams[0]])):
            at = TIMES[times](start + timedelta(seconds=number * seconds), random)
            rows.append(["a b", table, at, *(_number(series[stream][number], comma=comma) for stream in streams)])
    rows += random.sample(rows, random.randint(0, len(rows)))
    random.shuffle(rows)
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=separator, lineterminator=random.choice(["\n", "\r\n"]))
    for row in [headers, *rows]:
        writer.writerow([row[column] for column in columns])
    return text.getvalue().encode(encoding)


def _capitals(stream: Stream, random: Random) -> str:
    name = random.choice([f"{stream.dimension}s", METRICS[stream.dimension]])
    name = random.choice([name, name.upper(), name.capitalize(), f" {name} "])
    return name if stream.index is None else f"{name}:{stream.index}"


def _number(units: float, *, comma: bool) -> str:
    text = repr(units)
    return text.replace(".", ",") if comma else text


def as_console_export(units: Units, start: datetime, seconds: int, random: Random, *, hours: int) -> bytes:
    """The CSV of CloudWatch's console; what is 0 has a datapoint, as CloudWatch publishes zeros."""
    labels, columns = [], []
    for table, series in units.items():
        for stream, values in series.items():
            index = "" if stream.index is None else f"GlobalSecondaryIndexName:{stream.index} "
            labels.append(f"us-east-1:AWS/DynamoDB TableName:{table} {index}{METRICS[stream.dimension]} Sum {seconds}")
            columns.append(values)
    rows = [
        ["Id", *(f"m{number}" for number in range(len(labels)))],
        ["StatusCode", *("Complete" for _ in labels)],
        ["Messages", *("" for _ in labels)],
        ["Full label", *labels],
        ["Label", *(label.split()[-3] for label in labels)],
    ]
    times = []
    for number in range(len(columns[0])):
        at = (start + timedelta(seconds=number * seconds)).astimezone(timezone(timedelta(hours=hours)))
        times.append([at.strftime("%Y/%m/%d %H:%M:%S"), *(repr(values[number]) for values in columns)])
    random.shuffle(times)
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows + times)
    return text.getvalue().encode()


def as_metric_data(units: Units, start: datetime, seconds: int, random: Random, *, has_queries: bool) -> bytes:
    """What `aws cloudwatch get-metric-data` prints, with the queries in it or labels that tell the tables."""
    results: list[dict[str, Any]] = []
    queries = []
    for table, series in units.items():
        for stream, values in series.items():
            points = list(enumerate(values))
            random.shuffle(points)
            name = f"m{len(results)}"
            index = [] if stream.index is None else [stream.index]
            label = "anything" if has_queries else " ".join([table, *index, METRICS[stream.dimension]])
            times = [(start + timedelta(seconds=number * seconds)).astimezone(UTC).isoformat() for number, _ in points]
            result = {"Id": name, "Label": label, "Timestamps": times, "Values": [value for _, value in points]}
            results.append(result | {"StatusCode": "Complete"})
            dimensions = [{"Name": "TableName", "Value": table}]
            dimensions += [{"Name": "GlobalSecondaryIndexName", "Value": each} for each in index]
            metric = {"Namespace": "AWS/DynamoDB", "MetricName": METRICS[stream.dimension], "Dimensions": dimensions}
            queries.append({"Id": name, "MetricStat": {"Metric": metric, "Period": seconds, "Stat": "Sum"}})
    random.shuffle(results)
    answer: dict[str, Any] = {"MetricDataResults": results, "Messages": []}
    return json.dumps(
        answer | {"MetricDataQueries": queries} if has_queries else answer, indent=random.choice([None, 4])
    ).encode()


def as_metric_statistics(series: Mapping[Stream, list[float]], start: datetime, seconds: int, random: Random) -> bytes:
    """What `aws cloudwatch get-metric-statistics` prints for each metric of a table, one answer after another."""
    answers = []
    for stream, values in series.items():
        points = [
            {"Timestamp": (start + timedelta(seconds=number * seconds)).isoformat(), "Sum": value, "Unit": "Count"}
            for number, value in enumerate(values)
        ]
        random.shuffle(points)
        answers.append(json.dumps({"Label": METRICS[stream.dimension], "Datapoints": points}))
    return "\n".join(answers).encode()


def packed(content: bytes) -> bytes:
    """The content with gzip."""
    return gzip.compress(content, mtime=0)
