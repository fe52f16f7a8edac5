"""Measures one run of the scaler for 2,500 tables with two indexes each: time, calls, memory.

Run it with `make benchmark NAME=scaler`. The tables have 15,000 targets. The calls go through real boto3 with its
signing and parsing; a stub answers in place of the network. A scheduled run reviews a fifth of the tables; with `--all`
the run reviews every table. With `--storm` the alarms of 200 tables start a run each, one after the other. Exits with
status 1 if the runs need more than 200 MiB, or if a table fails.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from typing import Any, Final

from botocore.awsrequest import AWSResponse

from highwater.aws.region import AwsRegion
from highwater.core import Capacity, IndexCapacity, Plan
from highwater.core.names import ALARM_PREFIX, TargetName, plan_parameter
from highwater.core.scaler.attention import alarm_threshold
from highwater.handlers.scaler.event import ALARM, ScalerEvent
from highwater.handlers.scaler.gather import RunOutcome
from highwater.handlers.scaler.run import ScalerRun

TABLES: Final = 2_500
_STORM: Final = 200
LIMIT_MIB: Final = 200
NOW: Final = datetime(2026, 11, 21, 12, 0, 40, tzinfo=UTC)
_FLOOR, _UNITS = 40, 55
_PLAN: Final = Plan(
    read=Capacity.autoscaled(min_capacity=_FLOOR, max_capacity=4_000),
    write=Capacity.autoscaled(min_capacity=_FLOOR, max_capacity=4_000),
    indexes=(IndexCapacity(index_name="by-customer"), IndexCapacity(index_name="by-day")),
)
_PER_PAGE: Final = {"GetParametersByPath": 10, "DescribeAlarms": 100, "DescribeScalableTargets": 50}
# GetMetricData returns up to 100,800 datapoints per call
_DATAPOINTS: Final = 100_800


class Stub:
    """Answers boto3's requests in place of AWS, just before they would be sent."""

    def __init__(self, *, busy_percent: int) -> None:
        self._busy_percent = busy_percent
        self.calls: Counter[str] = Counter()
        value = json.dumps({"mode": "floor", "plan": _PLAN.to_document()})
        self._parameters = [{"Name": plan_parameter("scaler", name), "Value": value} for name in _names()]
        targets = [TargetName(name, target.index, target.dimension) for name in _names() for target in _PLAN.targets()]
        self._alarms = [_alarm(name) for name in targets]

    def serve(self, client: Any) -> None:
        """Answer all further requests of *client*."""
        client.meta.events.register("before-send", self._answer)

    def _answer(self, request: Any, event_name: str, **_: Any) -> Any:
        operation = event_name.rsplit(".", 1)[-1]
        self.calls[operation] += 1
        parameters = json.loads(request.body or b"{}")
        body = json.dumps(getattr(self, f"_{operation}")(parameters)).encode()
        headers: Any = {"date": "Sat, 21 Nov 2026 12:00:41 GMT", "content-type": "application/x-amz-json-1.0"}
        response: Any = AWSResponse(request.url, 200, headers, None)
        response._content = body
        return response

    def _GetParametersByPath(self, request: dict[str, Any]) -> dict[str, Any]:
        return _page(request, "Parameters", self._parameters, _PER_PAGE["GetParametersByPath"])

    def _GetParameters(self, request: dict[str, Any]) -> dict[str, Any]:
        return {"Parameters": [each for each in self._parameters if each["Name"] in request["Names"]]}

    def _DescribeAlarms(self, request: dict[str, Any]) -> dict[str, Any]:
        wanted = set(request.get("AlarmNames", ()))
        alarms = [alarm for alarm in self._alarms if not wanted or alarm["AlarmName"] in wanted]
        return _page(request, "MetricAlarms", alarms, _PER_PAGE["DescribeAlarms"])

    def _DescribeScalableTargets(self, request: dict[str, Any]) -> dict[str, Any]:
        targets = [
            {
                "ServiceNamespace": "dynamodb",
                "ResourceId": resource_id,
                "ScalableDimension": f"dynamodb:{'index' if '/index/' in resource_id else 'table'}:{kind}CapacityUnits",
                "MinCapacity": _FLOOR,
                "MaxCapacity": 4_000,
                "RoleARN": "arn:aws:iam::000000000000:role/aws-service-role",
                "CreationTime": 1795000000,
                "SuspendedState": {},
            }
            for resource_id in request["ResourceIds"]
            for kind in ("Read", "Write")
        ]
        return _page(request, "ScalableTargets", targets, _PER_PAGE["DescribeScalableTargets"])

    def _DescribeTable(self, request: dict[str, Any]) -> dict[str, Any]:
        throughput = {"ReadCapacityUnits": _UNITS, "WriteCapacityUnits": _UNITS, "NumberOfDecreasesToday": 0}
        indexes = [
            {"IndexName": index.index_name, "IndexStatus": "ACTIVE", "ProvisionedThroughput": throughput}
            for index in _PLAN.indexes
        ]
        return {
            "Table": {
                "TableName": request["TableName"],
                "TableArn": f"arn:aws:dynamodb:us-east-1:000000000000:table/{request['TableName']}",
                "TableStatus": "ACTIVE",
                "ProvisionedThroughput": throughput,
                "GlobalSecondaryIndexes": indexes,
            }
        }

    def _GetMetricData(self, request: dict[str, Any]) -> dict[str, Any]:
        start, end = int(request["StartTime"]), int(request["EndTime"])
        times = list(range(start, end - 120, 60))
        queries = request["MetricDataQueries"]
        per_page = _DATAPOINTS // max(1, len(times))
        first = int(request.get("NextToken") or 0)
        # consumption varies a little; some targets consume so much that the scaler changes their floors
        is_busy = [(number + 43) % 50 < self._busy_percent / 2 for number in range(len(queries))]
        results = [
            {
                "Id": query["Id"],
                "Timestamps": times,
                "Values": [60.0 * (80 if is_busy[number] else 20 + (at // 60 + number) % 17) for at in times],
                "StatusCode": "Complete",
            }
            for number, query in enumerate(queries[first : first + per_page], first)
        ]
        more = {"NextToken": str(first + per_page)} if first + per_page < len(queries) else {}
        return {"MetricDataResults": results, **more}

    def _RegisterScalableTarget(self, _asked: dict[str, Any]) -> dict[str, Any]:
        return {}

    def _PutMetricAlarm(self, _asked: dict[str, Any]) -> dict[str, Any]:
        return {}


class _Stubbed(AwsRegion):
    """The scaler's region, answered by the stub."""

    def __init__(self, stub: Stub) -> None:
        super().__init__()
        for client in (self.dynamodb, self.autoscaling, self.cloudwatch, self.ssm):
            stub.serve(client)


def _names() -> list[str]:
    return [f"table-{number:04}" for number in range(TABLES)]


def _alarm(name: TargetName) -> dict[str, Any]:
    dimensions = [{"Name": "TableName", "Value": name.table}]
    if name.index:
        dimensions.append({"Name": "GlobalSecondaryIndexName", "Value": name.index})
    return {
        "AlarmName": name.alarm,
        "AlarmDescription": f"{ALARM_PREFIX}of a benchmark",
        "StateValue": "OK",
        "Namespace": "AWS/DynamoDB",
        "MetricName": f"Consumed{name.dimension.title()}CapacityUnits",
        "Dimensions": dimensions,
        "Statistic": "Sum",
        "Period": 60,
        "EvaluationPeriods": 1,
        "Threshold": float(alarm_threshold(_UNITS)),
        "ComparisonOperator": "GreaterThanThreshold",
    }


def _page(request: dict[str, Any], member: str, items: list[dict[str, Any]], size: int) -> dict[str, Any]:
    first = int(request.get("NextToken") or 0)
    more = {"NextToken": str(first + size)} if first + size < len(items) else {}
    return {member: items[first : first + size], **more}


def main() -> int:
    """Run the scaler once and print time, memory and calls; return 1 above the limit or if a table failed, else 0."""
    parser = argparse.ArgumentParser(prog="scaler", description=__doc__)
    parser.add_argument("--all", action="store_true", help="review every table, not only those due in this minute")
    parser.add_argument("--storm", action="store_true", help="one run for each of 200 tables whose alarms went off")
    options = parser.parse_args()
    os.environ.update(AWS_REGION="us-east-1", AWS_DEFAULT_REGION="us-east-1")
    os.environ.update(dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "none"))
    # all targets of a table whose alarm went off are busy
    stub = Stub(busy_percent=100 if options.storm else 2)
    memory_before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    home = _Stubbed(stub)
    events = [ScalerEvent("tables" if options.all else "tick", NOW)]
    if options.storm:
        events = [ScalerEvent(ALARM, NOW, (name,)) for name in _names()[:_STORM]]
    outcome = RunOutcome()
    wall_start, cpu_start = time.monotonic(), time.process_time()
    for event in events:
        done = ScalerRun(event, lambda: 600.0, lambda _: home).run()
        outcome.add(done)
        outcome.failed |= done.failed
    wall_seconds, cpu_seconds = time.monotonic() - wall_start, time.process_time() - cpu_start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    due = f"targets due {outcome.figures['TargetsDue']:,} of {TABLES * 6:,}"
    print(f"runs {len(events)}, {due}, failed tables {len(outcome.failed)}")
    print(f"wall {wall_seconds:.1f} s, processor {cpu_seconds:.1f} s, including the stub's own work")
    print(f"peak memory {peak:.0f} MiB (limit {LIMIT_MIB}), of which {memory_before:.0f} MiB before the run")
    for operation, count in sorted(stub.calls.items()):
        print(f"  {operation:<28}{count:>7,}")
    print(f"  {'calls':<28}{sum(stub.calls.values()):>7,}")
    return 0 if peak <= LIMIT_MIB and not outcome.failed else 1


if __name__ == "__main__":
    sys.exit(main())
