"""The lines about throttling, for templates whose limits differ: each has the remedy of its own situation."""

from __future__ import annotations

from pathlib import Path

import pytest

from highwater_lab.physics import KeyDistribution
from highwater_lab.rehearse import Workload, rehearse
from highwater_lab.report.document import run_document
from highwater_lab.report.terminal import advice
from highwater_lab.traffic import Stream, Traffic
from tests.simulation.tables import READ, START, WRITE

KEYS = "KeySchema: [{AttributeName: id, KeyType: HASH}]"
INDEX = "{IndexName: by-state, KeySchema: [{AttributeName: state, KeyType: HASH}], Projection: {ProjectionType: ALL}"
FIXED = f"""
Resources:
  Visits:
    Type: AWS::DynamoDB::Table
    Properties:
      ProvisionedThroughput: {{ReadCapacityUnits: 3, WriteCapacityUnits: 2}}
      AttributeDefinitions: [{{AttributeName: id, AttributeType: S}}]
      {KEYS}
"""
LOW_CEILING = f"""{FIXED}
  Reads:
    Type: AWS::ApplicationAutoScaling::ScalableTarget
    Properties:
      {{ServiceNamespace: dynamodb, ResourceId: !Sub "table/${{Visits}}",
       ScalableDimension: "dynamodb:table:ReadCapacityUnits", MinCapacity: 3, MaxCapacity: 12}}
  Policy:
    Type: AWS::ApplicationAutoScaling::ScalingPolicy
    Properties:
      PolicyName: reads
      PolicyType: TargetTrackingScaling
      ScalingTargetId: !Ref Reads
      TargetTrackingScalingPolicyConfiguration:
        {{TargetValue: 70, PredefinedMetricSpecification: {{PredefinedMetricType: DynamoDBReadCapacityUtilization}}}}
"""
HOT_INDEX = f"""
Resources:
  Payments:
    Type: AWS::DynamoDB::Table
    Properties:
      ProvisionedThroughput: {{ReadCapacityUnits: 4000, WriteCapacityUnits: 4500}}
      AttributeDefinitions: [{{AttributeName: id, AttributeType: S}}, {{AttributeName: state, AttributeType: S}}]
      {KEYS}
      GlobalSecondaryIndexes:
        - {INDEX}, ProvisionedThroughput: {{ReadCapacityUnits: 4100, WriteCapacityUnits: 5000}}}}
"""
CAPPED = f"""
Resources:
  Jobs:
    Type: AWS::DynamoDB::Table
    Properties:
      BillingMode: PAY_PER_REQUEST
      OnDemandThroughput: {{MaxReadRequestUnits: 9000, MaxWriteRequestUnits: 2000}}
      AttributeDefinitions: [{{AttributeName: id, AttributeType: S}}]
      {KEYS}
"""


@pytest.mark.parametrize(
    ("template", "stream", "rates", "hot", "lines"),
    [
        pytest.param(
            LOW_CEILING,
            Stream(None, READ),
            [2] * 5 + [31] * 120,
            None,
            [
                "worst minute: Tue 2026-11-03 10:06 UTC, 1,680 units throttled (28/s)",
                "cause: provisioned, 96 % of the throttled units; table read needs up to 31 units/s, and its ceiling "
                "is 12: raise the ceiling",
                "cause: provisioned, 4 % of the throttled units; table read rises to 31 units/s faster than it is "
                "scaled from its floor of 3: raise the floor ahead of the surge, or lower the target utilization of "
                "70 %",
            ],
            id="a ceiling below the demand",
        ),
        pytest.param(
            FIXED,
            Stream(None, READ),
            [2] * 5 + [31] * 120,
            None,
            [
                "worst minute: Tue 2026-11-03 10:06 UTC, 1,680 units throttled (28/s)",
                "cause: provisioned, 100 % of the throttled units; table read needs up to 31 units/s, and nothing "
                "scales its capacity of 3: raise the capacity, or have auto scaling scale it",
            ],
            id="a table that nothing scales",
        ),
        pytest.param(
            HOT_INDEX,
            Stream(None, WRITE),
            [1_500] * 10,
            "by-state",
            [
                "worst minute: Tue 2026-11-03 10:00 UTC, 30,000 units throttled (500/s)",
                "cause: index, 100 % of the throttled units; an index throttles the table's writes: one key needs more "
                "than the 1,000 units/s of a partition, so more capacity of index 'by-state' write does not help: give "
                "the index a key with more values, such as the value with the number of a shard",
            ],
            id="a hot key of an index with capacity to spare",
        ),
        pytest.param(
            CAPPED,
            Stream(None, READ),
            [8_000] * 10,
            "",
            [
                "worst minute: Tue 2026-11-03 10:00 UTC, 300,000 units throttled (5,000/s)",
                "cause: key-range, 100 % of the throttled units; one key needs more than the 3,000 units/s of a "
                "partition, so more capacity of table read does not help: spread the key over shards, or put a cache "
                "in front of it",
            ],
            id="a hot key on demand",
        ),
        pytest.param(
            CAPPED,
            Stream(None, READ),
            [11_000] * 10,
            None,
            [
                "worst minute: Tue 2026-11-03 10:00 UTC, 120,000 units throttled (2,000/s)",
                "cause: max-on-demand, 100 % of the throttled units; table read needs up to 11,000 units/s, more than "
                "its maximum on-demand throughput: raise or remove the maximum",
            ],
            id="a maximum on demand",
        ),
    ],
)
def test_advice_follows_from_what_the_template_declares(
    tmp_path: Path, template: str, stream: Stream, rates: list[int], hot: str | None, lines: list[str]
) -> None:
    path = tmp_path / "template.yaml"
    path.write_text(template)
    traffic = Traffic.from_counts("made", {stream: [rate * 60 for rate in rates]}, bin_seconds=60, start=START)
    keys = {} if hot is None else {hot or None: KeyDistribution.single_hot_key(100)}
    run = rehearse(path, traffic, workload=Workload(keys=keys)).declared
    assert advice(run) == lines
    # machines read the same sentences
    texts = [each["text"] for each in run_document(run)["remedies"]]
    assert [line.partition("; ")[2] for line in lines[1:]] == texts
