"""One tick of the scaler for 2,500 tables with two indexes each: time, calls, memory. `make benchmark-scaler`.

15,000 targets, real boto3 with its signing and parsing; in place of the network, answers made here. A fifth of the
tables is due in a tick; `--all` looks at every one, as an alarm storm would. Ends with 1 above 256 MiB.
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

from highwater.aws import plans
from highwater.aws.plans import ScaledPlans
from highwater.aws.region import AwsRegion
from highwater.core import Capacity, IndexCapacity, Plan
from highwater.core.names import ALARM_PREFIX, TargetName
from highwater.core.scaler.attention import alarm_threshold
from highwater.handlers.scaler.event import ScalerEvent
from highwater.handlers.scaler.run import Run

TABLES: Final = 2_500
LIMIT_MIB: Final = 256
NOW: Final = datetime(2026, 11, 21, 12, 0, 40, tzinfo=UTC)
_FLOOR, _UNITS = 40, 55
_PLAN: Final = Plan(
    read=Capacity.autoscaled(min_capacity=_FLOOR, max_capacity=4_000),
    write=Capacity.autoscaled(min_capacity=_FLOOR, max_capacity=4_000),
    indexes=(IndexCapacity(index_name="by-customer"), IndexCapacity(index_name="by-day")),
)
_PER_PAGE: Final = {"GetParametersByPath": 10, "DescribeAlarms": 100, "DescribeScalableTargets": 50}
# GetMetricData answers up to 100,800 datapoints at once
_DATAPOINTS: Final = 100_800


class Stub:
    """AWS's answers, made when a request is about to be sent."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        value = json.dumps({"mode": "floor", "plan": _PLAN.to_document()})
        self._parameters = [{"Name": f"/highwater/plans/{name}", "Value": value} for name in _names()]
        targets = [TargetName(name, target.index, target.dimension) for name in _names() for target in _PLAN.targets()]
        self._alarms = [_alarm(name) for name in targets]

    def serve(self, client: Any) -> None:
        """Answer that client's requests from now on."""
        client.meta.events.register("before-send", self._answer)

    def _answer(self, request: Any, event_name: str, **_: Any) -> Any:
        operation = event_name.rsplit(".", 1)[-1]
        self.calls[operation] += 1
        asked = json.loads(request.body or b"{}")
        body = json.dumps(getattr(self, f"_{operation}")(asked)).encode()
        headers: Any = {"date": "Sat, 21 Nov 2026 12:00:41 GMT", "content-type": "application/x-amz-json-1.0"}
        response: Any = AWSResponse(request.url, 200, headers, None)
        response._content = body
        return response

    def _GetParametersByPath(self, asked: dict[str, Any]) -> dict[str, Any]:
        return _page(asked, "Parameters", self._parameters, _PER_PAGE["GetParametersByPath"])

    def _DescribeAlarms(self, asked: dict[str, Any]) -> dict[str, Any]:
        return _page(asked, "MetricAlarms", self._alarms, _PER_PAGE["DescribeAlarms"])

    def _DescribeScalableTargets(self, asked: dict[str, Any]) -> dict[str, Any]:
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
            for resource_id in asked["ResourceIds"]
            for kind in ("Read", "Write")
        ]
        return _page(asked, "ScalableTargets", targets, _PER_PAGE["DescribeScalableTargets"])

    def _DescribeTable(self, asked: dict[str, Any]) -> dict[str, Any]:
        throughput = {"ReadCapacityUnits": _UNITS, "WriteCapacityUnits": _UNITS, "NumberOfDecreasesToday": 0}
        indexes = [
            {"IndexName": index.index_name, "IndexStatus": "ACTIVE", "ProvisionedThroughput": throughput}
            for index in _PLAN.indexes
        ]
        return {
            "Table": {
                "TableName": asked["TableName"],
                "TableArn": f"arn:aws:dynamodb:us-east-1:000000000000:table/{asked['TableName']}",
                "TableStatus": "ACTIVE",
                "ProvisionedThroughput": throughput,
                "GlobalSecondaryIndexes": indexes,
            }
        }

    def _GetMetricData(self, asked: dict[str, Any]) -> dict[str, Any]:
        start, end = int(asked["StartTime"]), int(asked["EndTime"])
        times = list(range(start, end - 120, 60))
        queries = asked["MetricDataQueries"]
        per_page = _DATAPOINTS // max(1, len(times))
        first = int(asked.get("NextToken") or 0)
        # a little up and down, the floors change for one in fifty
        results = [
            {
                "Id": query["Id"],
                "Timestamps": times,
                "Values": [60.0 * (80 if number % 50 == 7 else 20 + (at // 60 + number) % 17) for at in times],
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
        self._ssm = plans.client()
        for client in (self.clients.dynamodb, self.clients.autoscaling, self.clients.cloudwatch, self._ssm):
            stub.serve(client)

    def read_plans(self) -> ScaledPlans:
        """The plans that the stub has."""
        return plans.read_plans(self._ssm)


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


def _page(asked: dict[str, Any], member: str, items: list[dict[str, Any]], size: int) -> dict[str, Any]:
    first = int(asked.get("NextToken") or 0)
    more = {"NextToken": str(first + size)} if first + size < len(items) else {}
    return {member: items[first : first + size], **more}


def main() -> int:
    """Run one tick, print what it took."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaler", description=__doc__)
    parser.add_argument("--all", action="store_true", help="look at every table, not at those due in the minute")
    given = parser.parse_args()
    os.environ.update(AWS_REGION="us-east-1", AWS_DEFAULT_REGION="us-east-1")
    os.environ.update(dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "none"))
    stub = Stub()
    kept = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    home = _Stubbed(stub)
    run = Run(ScalerEvent("tables" if given.all else "tick", NOW), lambda: 600.0, lambda _: home)
    began, cpu = time.monotonic(), time.process_time()
    outcome = run.run()
    took, busy = time.monotonic() - began, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"targets due {outcome.counts['TargetsDue']:,} of {TABLES * 6:,}, failed tables {len(outcome.failed)}")
    print(f"wall {took:.1f} s, processor {busy:.1f} s, the stub's own work included")
    print(f"peak memory {peak:.0f} MiB (limit {LIMIT_MIB}), {kept:.0f} of it before the run")
    for operation, count in sorted(stub.calls.items()):
        print(f"  {operation:<28}{count:>7,}")
    print(f"  {'calls':<28}{sum(stub.calls.values()):>7,}")
    return 0 if peak <= LIMIT_MIB and not outcome.failed else 1


if __name__ == "__main__":
    sys.exit(main())
