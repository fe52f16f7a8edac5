"""Measures `highwater recommend` for an app of thirty tables with a fortnight of traffic each, by minutes.

Half of the tables have the traffic of a scenario, or with --traces of a file there, in turn and each day anew; half are
idle. Every third of the busy ones has an index. Prints the seconds until the first answer, the wall time, and the
processor seconds for each target with traffic and for each idle table. Exits with status 1 if the first answer takes a
minute or longer, or a target more than 13 processor seconds, which is what one table's search with the scaler takes.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from benchmarks.scoreboard import find_traces
from highwater.core import Dimension
from highwater_lab.traffic import SCENARIOS, Stream, Traffic, read_traffic, scenario, write_traffic

DAYS: Final = 14
START: Final = datetime(2026, 11, 2, tzinfo=UTC)
_MINUTES: Final = DAYS * 1440
_MOST_FIRST_SECONDS: Final = 60
_MOST_SECONDS_A_TARGET: Final = 13
_MEAN: Final = 700


def template_of(tables: Sequence[str], with_index: Sequence[str]) -> dict[str, Any]:
    """Return a template with these tables, provisioned and scaled at 70 % like many."""
    resources: dict[str, Any] = {}
    throughput = {"ReadCapacityUnits": 60, "WriteCapacityUnits": 40}
    for name in tables:
        properties: dict[str, Any] = {
            "TableName": name,
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            "ProvisionedThroughput": throughput,
        }
        if name in with_index:
            key, projection = [{"AttributeName": "pk", "KeyType": "HASH"}], {"ProjectionType": "ALL"}
            index = {"IndexName": "by_pk", "KeySchema": key, "Projection": projection}
            properties["GlobalSecondaryIndexes"] = [{**index, "ProvisionedThroughput": throughput}]
        logical_id = "".join(part.capitalize() for part in name.split("-"))
        resources[logical_id] = {"Type": "AWS::DynamoDB::Table", "Properties": properties}
        for dimension in ("Read", "Write"):
            target = {
                "ServiceNamespace": "dynamodb",
                "ScalableDimension": f"dynamodb:table:{dimension}CapacityUnits",
                "ResourceId": {"Fn::Sub": f"table/${{{logical_id}}}"},
                "MinCapacity": 40,
                "MaxCapacity": 4_000,
                "RoleARN": "arn:aws:iam::123456789012:role/scaling",
            }
            metric = {"PredefinedMetricType": f"DynamoDB{dimension}CapacityUtilization"}
            policy = {
                "PolicyName": f"{name}-{dimension}",
                "PolicyType": "TargetTrackingScaling",
                "ScalingTargetId": {"Ref": f"{logical_id}{dimension}"},
                "TargetTrackingScalingPolicyConfiguration": {
                    "PredefinedMetricSpecification": metric,
                    "TargetValue": 70,
                },
            }
            scaling = "AWS::ApplicationAutoScaling"
            resources[f"{logical_id}{dimension}"] = {"Type": f"{scaling}::ScalableTarget", "Properties": target}
            resources[f"{logical_id}{dimension}Policy"] = {"Type": f"{scaling}::ScalingPolicy", "Properties": policy}
    return {"Resources": resources}


def minutes_of(shape: Traffic) -> list[float]:
    """Return the units of a fortnight of minutes: those of the table's first stream, repeated."""
    stream = next(iter(shape.rates))
    per_minute = 60 // shape.bin_seconds if shape.bin_seconds <= 60 else 1
    rates = shape.rates[stream]
    mean = sum(rates) / len(rates) or 1.0
    bins = [sum(rates[at : at + per_minute]) / per_minute / mean for at in range(0, len(rates), per_minute)]
    return [bins[minute % len(bins)] * _MEAN * 60 for minute in range(_MINUTES)]


def make_app(folder: Path, tables: int, traces: Path | None) -> tuple[int, int]:
    """Write the template and the traffic; return the number of targets with traffic, and of idle tables."""
    files = [] if traces is None else [trace.file for trace in find_traces(traces)]
    kinds: list[str | Path] = [*(file for file in files if file is not None), *SCENARIOS]
    names = [f"warehouse-inventory-reservations-by-region-{number:02}" for number in range(tables)]
    busy, idle = names[::2], names[1::2]
    with_index = busy[::3]
    (folder / "traffic").mkdir()
    (folder / "template.json").write_text(json.dumps(template_of(names, with_index)))
    targets = 0
    for number, name in enumerate(names):
        streams = [Stream(None, dimension) for dimension in Dimension]
        streams += [Stream("by_pk", dimension) for dimension in Dimension if name in with_index]
        units = [0.0] * _MINUTES
        if name in busy:
            targets += len(streams)
            kind = kinds[number // 2 % len(kinds)]
            units = minutes_of(scenario(kind) if isinstance(kind, str) else read_traffic(kind))
        shares = {Dimension.READ: 1.0, Dimension.WRITE: 0.4}
        counts = {stream: [each * shares[stream.dimension] for each in units] for stream in streams}
        write_traffic(
            Traffic.from_counts(name, counts, bin_seconds=60, start=START), folder / "traffic" / f"{name}.csv"
        )
    return targets, len(idle)


def measure(folder: Path, more: Sequence[str] = ()) -> tuple[float, float, float, list[str]]:
    """Run the command; return the seconds until its first line, its wall and processor seconds, and its lines."""
    script = Path(sys.executable).parent / "highwater"
    began, before = time.perf_counter(), _processor_seconds()
    first = 0.0
    lines = []
    arguments = [str(script), "recommend", "template.json", "--traffic", "traffic", *more]
    with subprocess.Popen(arguments, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            first = first or time.perf_counter() - began
            lines.append(line.rstrip("\n"))
    return first, time.perf_counter() - began, _processor_seconds() - before, lines


def _processor_seconds() -> float:
    """Return the processor time of children that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main(arguments: Sequence[str]) -> int:
    """Measure and print; return 1 if it takes too long, else 0."""
    parser = argparse.ArgumentParser(prog="thirty", description=__doc__)
    parser.add_argument("--tables", type=int, default=30, help="number of tables (default %(default)s)")
    parser.add_argument("--traces", type=Path, help="a folder of CSV files of traffic, each used for a table")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        targets, idle = make_app(folder, options.tables, options.traces)
        first, wall, used, lines = measure(folder)
        for busy in sorted((folder / "traffic").iterdir())[::2]:
            busy.unlink()
        _, _, of_idle, _ = measure(folder)
        # with a header alone, a table is unknown
        for file in (folder / "traffic").iterdir():
            file.write_text("minute_index,writes\n")
        _, _, of_nothing, _ = measure(folder)
    print("\n".join(lines))
    a_target, an_idle = (used - of_idle) / targets, (of_idle - of_nothing) / idle
    print(
        f"recommend, {DAYS} days of {options.tables} tables with {targets} targets, {idle} of them idle: first answer "
        f"after {first:.1f} s, all after {wall:.0f} s; {used:.0f} s of processors, {a_target:.1f} s a target with "
        f"traffic, {an_idle:.1f} s an idle table"
    )
    return int(first >= _MOST_FIRST_SECONDS or a_target > _MOST_SECONDS_A_TARGET)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
