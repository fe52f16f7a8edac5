"""`PacedLoad`: what its state machine asks the function, what the function may do, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns

from cdk_highwater import BoostCoordinator, PacedJob, PacedLoad
from tests.constructs.template_view import TemplateView, placed_stack, scalable_table


def _load(stack: cdk.Stack, **more: Any) -> PacedLoad:
    arguments: dict[str, Any] = {
        "table": more.pop("table", None) or scalable_table(stack, "Orders", table_name="orders"),
        "coordinator": BoostCoordinator(stack, "Boosts"),
        "bucket": more.pop("bucket", None) or s3.Bucket.from_bucket_name(stack, "Exports", "exports"),
        "write": 500,
        **more,
    }
    return PacedLoad(stack, "Nightly", **arguments)


def _statements(stack: cdk.Stack) -> dict[str, list[Any]]:
    """The statements of the function's policy, by their actions."""
    (policy,) = (
        each
        for name, each in TemplateView(stack).named("AWS::IAM::Policy").items()
        if name.startswith("NightlyLoaderRole")
    )
    statements = policy["Properties"]["PolicyDocument"]["Statement"]
    found: dict[str, list[Any]] = {}
    for each in statements:
        actions = each["Action"]
        name = actions if isinstance(actions, str) else " ".join(sorted(actions))
        found.setdefault(name, []).append(each)
    return found


def _arn(value: Any) -> str:
    parts = value["Fn::Join"][1]
    return "".join(part if isinstance(part, str) else "<>" for part in parts)


def test_execution_loads_the_object_of_its_input_or_of_the_construct() -> None:
    stack = placed_stack()
    load = _load(stack, key="orders.jsonl", workers=20, segments=64)
    machine = TemplateView(stack).properties_of("AWS::StepFunctions::StateMachine")
    parts = machine["DefinitionString"]["Fn::Join"][1]
    states = json.loads("".join(part if isinstance(part, str) else "<reference>" for part in parts))["States"]
    start = states["Start"]["Parameters"]
    assert isinstance(load, PacedJob)
    assert start == {
        "job.$": f"States.Format('{load.job_prefix}{{}}', $$.Execution.Name)",
        "coordinator": start["coordinator"],
        "start": {
            "table": "<reference>",
            "write": 500,
            "budget": load.budget,
            "segments": 64,
            "bucket": "exports",
            "key": "orders.jsonl",
            "rejects": "s3://exports/rejects",
        },
        "workers": 20,
        "input.$": "$",
    }
    assert states["Workers"]["MaxConcurrency"] == 20


def test_function_may_put_items_read_the_objects_and_work_on_the_jobs_and_nothing_else() -> None:
    stack = placed_stack()
    load = _load(
        stack,
        key="orders.jsonl",
        prefix="nightly/",
        rejects=s3.Bucket.from_bucket_name(stack, "Rejects", "rejected"),
        budget="shared",
    )
    statements = _statements(stack)
    assert set(statements) == {
        "logs:CreateLogStream logs:PutLogEvents",
        "dynamodb:BatchWriteItem dynamodb:DescribeTable dynamodb:PutItem",
        "s3:GetObject",
        "s3:PutObject",
        "dynamodb:GetItem dynamodb:Query dynamodb:UpdateItem",
        "dynamodb:GetItem dynamodb:UpdateItem",
        "ssm:GetParameter ssm:GetParametersByPath",
    }
    (writing,) = statements["dynamodb:BatchWriteItem dynamodb:DescribeTable dynamodb:PutItem"]
    assert writing["Resource"]["Fn::GetAtt"][0].startswith("Orders")
    assert [_arn(each) for each in statements["s3:GetObject"][0]["Resource"]] == [
        "arn:<>:s3:::exports/orders.jsonl",
        "arn:<>:s3:::exports/nightly/*",
    ]
    assert _arn(statements["s3:PutObject"][0]["Resource"]) == f"arn:<>:s3:::rejected/rejects/{load.job_prefix}*"
    (job,) = statements["dynamodb:GetItem dynamodb:Query dynamodb:UpdateItem"]
    assert job["Condition"]["ForAllValues:StringLike"] == {"dynamodb:LeadingKeys": [f"job#{load.job_prefix}*"]}
    budgets = [each["Condition"] for each in statements["dynamodb:GetItem dynamodb:UpdateItem"]]
    assert [next(iter(each.values())) for each in budgets] == [
        {"dynamodb:LeadingKeys": [f"budget#{load.job_prefix}*"]},
        {"dynamodb:LeadingKeys": ["budget#shared"]},
    ]


def test_without_a_prefix_only_the_key_may_be_loaded() -> None:
    stack = placed_stack()
    _load(stack, key="orders.jsonl")
    assert _arn(_statements(stack)["s3:GetObject"][0]["Resource"]) == "arn:<>:s3:::exports/orders.jsonl"


def test_keys_of_encrypted_buckets_may_be_used() -> None:
    stack = placed_stack()
    keys = [kms.Key(stack, name) for name in ("Source", "Rejected")]
    source, rejects = (s3.Bucket(stack, f"{key.node.id}Bucket", encryption_key=key) for key in keys)
    _load(stack, key="orders.jsonl", bucket=source, rejects=rejects)
    statements = _statements(stack)
    assert statements["kms:Decrypt"][0]["Resource"]["Fn::GetAtt"][0].startswith("Source")
    assert statements["kms:GenerateDataKey"][0]["Resource"]["Fn::GetAtt"][0].startswith("Rejected")


def test_function_is_the_runtimes_with_the_time_that_a_worker_needs_and_an_alarm_tells_of_a_failure() -> None:
    stack = placed_stack()
    load = _load(stack, key="orders.jsonl", topic=sns.Topic(stack, "OnCall"))
    (function,) = (
        each["Properties"]
        for name, each in TemplateView(stack).named("AWS::Lambda::Function").items()
        if name.startswith("NightlyLoader")
    )
    assert (function["Handler"], function["Timeout"], function["MemorySize"]) == (
        "highwater.bulk.jobs.handler",
        900,
        512,
    )
    assert isinstance(load.state_machine.state_machine_arn, str)
    (alarm,) = (
        each["Properties"]
        for name, each in TemplateView(stack).named("AWS::CloudWatch::Alarm").items()
        if name.startswith("Nightly")
    )
    assert alarm["AlarmDescription"] == (
        "Highwater: a paced load failed; mend what its execution tells, and redrive it"
    )
    assert len(alarm["AlarmActions"]) == 1


REFUSED: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "bucket": (
        {"bucket": "exports"},
        TypeError,
        "bucket must be an S3 bucket, got 'exports'; give its construct; an existing one is "
        "s3.Bucket.from_bucket_name(...)",
    ),
    "rejects": (
        {"rejects": "exports"},
        TypeError,
        "rejects must be an S3 bucket, got 'exports'; give its construct; an existing one is "
        "s3.Bucket.from_bucket_name(...)",
    ),
    "key": ({"key": 5}, TypeError, "key must be a text, got 5; give it in quotes"),
    "neither": (
        {"key": None},
        ValueError,
        "neither key nor prefix is given; give the key of an object, or what the keys that are loaded begin with",
    ),
    "compressed": (
        {"key": "orders.jsonl.gz"},
        ValueError,
        "key is 'orders.jsonl.gz'; allowed: one object with lines of JSON, not compressed; convert other ones first",
    ),
    "write": (
        {"write": 7, "workers": 8},
        ValueError,
        "write is 7; allowed: at least one unit per second for each of the 8 workers; give more, or fewer workers",
    ),
    "rate": ({"write": "30%"}, TypeError, "write must be a number of units per second, got '30%'; give a number"),
    "segments": (
        {"segments": 10_001},
        ValueError,
        "segments is 10,001; allowed: whole numbers, from 1 to 10,000",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_argument_that_is_not_allowed_is_refused(case: str) -> None:
    arguments, kind, message = REFUSED[case]
    with pytest.raises(kind, match=r"allowed|must|neither") as refused:
        _load(placed_stack(), **{"key": "orders.jsonl", **arguments})
    assert str(refused.value) == message
