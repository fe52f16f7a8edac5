"""What a strict cloud refuses: calls of functions that no policy of their role allows, and calls that come too fast."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from botocore.config import Config

from highwater_lab.local import LocalCloud
from highwater_lab.local.control import ACCOUNT, REGION
from tests.local.world import (
    HOUR,
    MINUTE,
    OF_LAMBDA,
    SECOND,
    create_function,
    create_tables,
    creation_failure,
    policy,
    refused,
    units,
)

pytestmark = pytest.mark.xdist_group("strict cloud")
CLOUD = {"is_strict": True}
# The function calls what the event says, and answers with the error's code and text.
HANDLER = """
import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

ONCE = Config(retries={"mode": "standard", "total_max_attempts": 1})

def handler(event, context):
    client = boto3.client(event["service"], config=ONCE)
    try:
        getattr(client, event["operation"])(**event["arguments"])
    except ClientError as error:
        return {"code": error.response["Error"]["Code"], "message": error.response["Error"]["Message"]}
    return {"code": "OK", "message": ""}
"""
PRINCIPAL = f"arn:aws:sts::{ACCOUNT}:assumed-role/caller/caller"
ORDERS = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/orders"
TARGETS = f"arn:aws:application-autoscaling:{REGION}:{ACCOUNT}:scalable-target/"
PLANS = f"arn:aws:ssm:{REGION}:{ACCOUNT}:parameter/highwater/plans/"
ALLOWED: list[dict[str, Any]] = [
    {"Action": ["dynamodb:DescribeTable", "dynamodb:UpdateTable"], "Resource": ORDERS},
    {
        "Action": "application-autoscaling:RegisterScalableTarget",
        "Resource": f"{TARGETS}*",
        "Condition": {"StringEquals": {"application-autoscaling:service-namespace": "dynamodb"}},
    },
    {"Action": ["application-autoscaling:DescribeScalableTargets", "cloudwatch:GetMetricData"], "Resource": "*"},
    {"Action": "application-autoscaling:DescribeScal*", "Resource": f"{TARGETS}*"},
    {
        "Action": "cloudwatch:PutMetricData",
        "Resource": "*",
        "Condition": {"StringEquals": {"cloudwatch:namespace": "Mine"}},
    },
    {
        "Action": ["cloudwatch:DeleteAlarms", "cloudwatch:DescribeAlarms", "cloudwatch:PutMetricAlarm"],
        "Resource": f"arn:aws:cloudwatch:{REGION}:{ACCOUNT}:alarm:*",
    },
    {"Action": "ssm:GetParameters", "Resource": f"{PLANS}mine/*"},
    {"Action": "ssm:GetParametersByPath", "Resource": f"{PLANS}mine"},
    {"Action": "sqs:SendMessage", "Resource": f"arn:aws:sqs:{REGION}:{ACCOUNT}:letters"},
]
URL = f"http://localhost/{ACCOUNT}/letters"


@pytest.fixture(scope="module", autouse=True)
def _caller(cloud: LocalCloud) -> None:
    """A role that may do some things, a function with it, and what it asks for."""
    iam, dynamodb = cloud.client("iam"), cloud.client("dynamodb")
    role = iam.create_role(RoleName="caller", AssumeRolePolicyDocument=json.dumps(OF_LAMBDA))["Role"]["Arn"]
    iam.put_role_policy(RoleName="caller", PolicyName="some", PolicyDocument=json.dumps(policy(*ALLOWED)))
    create_function(cloud.client("lambda"), "caller", HANDLER, Role=role, Timeout=60)
    create_tables(dynamodb, units(5, 6), orders=["pk"], others=["pk"])
    cloud.client("sqs").create_queue(QueueName="letters")


@pytest.fixture(autouse=True)
def _begins_with_a_second(cloud: LocalCloud) -> None:
    """A second in which the tests before have called nothing, as calls a second are counted."""
    cloud.advance(SECOND)


def _call(cloud: LocalCloud, service: str, operation: str, **arguments: Any) -> dict[str, str]:
    """What a function of the role gets."""
    event = json.dumps({"service": service, "operation": operation, "arguments": arguments})
    answer = cloud.client("lambda").invoke(FunctionName="caller", Payload=event.encode())
    return dict(json.load(answer["Payload"]))


def _target(table: str) -> dict[str, Any]:
    name = {"ServiceNamespace": "dynamodb", "ResourceId": f"table/{table}"}
    return name | {"ScalableDimension": "dynamodb:table:ReadCapacityUnits", "MinCapacity": 5, "MaxCapacity": 70}


@pytest.mark.parametrize(
    ("service", "operation", "arguments"),
    [
        ("dynamodb", "describe_table", {"TableName": "orders"}),
        ("application-autoscaling", "register_scalable_target", _target("orders")),
        ("application-autoscaling", "describe_scalable_targets", {"ServiceNamespace": "dynamodb"}),
        ("cloudwatch", "describe_alarms", {"AlarmNamePrefix": "Highwater "}),
        ("cloudwatch", "put_metric_data", {"Namespace": "Mine", "MetricData": [{"MetricName": "jobs", "Value": 7}]}),
        ("ssm", "get_parameters", {"Names": ["/highwater/plans/mine/orders"]}),
        ("ssm", "get_parameters_by_path", {"Path": "/highwater/plans/mine"}),
        ("sqs", "send_message_batch", {"QueueUrl": URL, "Entries": [{"Id": "1", "MessageBody": "late"}]}),
        # nobody needs a permission for this
        ("sts", "get_caller_identity", {}),
    ],
)
def test_function_may_do_what_its_role_allows(
    cloud: LocalCloud, service: str, operation: str, arguments: dict[str, Any]
) -> None:
    assert _call(cloud, service, operation, **arguments) == {"code": "OK", "message": ""}


DYNAMODB = {"ServiceNamespace": "dynamodb"}
TARGET = {name: value for name, value in _target("orders").items() if "Capacity" not in name}
OTHER_NAMES = {"Names": ["/highwater/plans/mine/orders", "/highwater/plans/other/orders"]}
LATE = {"QueueUrl": URL, "Entries": [{"Id": "1", "ReceiptHandle": "late"}]}


@pytest.mark.parametrize(
    ("service", "operation", "arguments", "arn"),
    [
        ("dynamodb", "delete_table", {"TableName": "orders"}, ORDERS),
        ("dynamodb", "describe_table", {"TableName": "others"}, ORDERS.replace("orders", "others")),
        ("application-autoscaling", "deregister_scalable_target", TARGET, f"{TARGETS}any"),
        ("application-autoscaling", "describe_scaling_policies", DYNAMODB, "*"),
        ("application-autoscaling", "describe_scaling_activities", DYNAMODB, "*"),
        ("ssm", "get_parameters", OTHER_NAMES, f"{PLANS}other/orders"),
        ("ssm", "get_parameters_by_path", {"Path": "/highwater/plans/other/"}, f"{PLANS}other/"),
        # with a slash at its end it is another resource
        ("ssm", "get_parameters_by_path", {"Path": "/highwater/plans/mine/"}, f"{PLANS}mine/"),
        ("sqs", "delete_message_batch", LATE, f"arn:aws:sqs:{REGION}:{ACCOUNT}:letters"),
    ],
)
def test_function_is_refused_what_its_role_does_not_allow(
    cloud: LocalCloud, service: str, operation: str, arguments: dict[str, Any], arn: str
) -> None:
    # there is no permission of its own for several messages
    action = f"{service}:{operation.removesuffix('_batch').title().replace('_', '')}"
    message = (
        f"User: {PRINCIPAL} is not authorized to perform: {action} on resource: {arn} because no identity-based "
        f"policy allows the {action} action"
    )
    assert _call(cloud, service, operation, **arguments) == {"code": "AccessDeniedException", "message": message}


def test_auto_scaling_lists_what_its_caller_lacks_on_the_table(cloud: LocalCloud) -> None:
    """It asks DynamoDB in the caller's name, and does not answer with AccessDenied."""
    message = "User is missing the following permissions: dynamodb:DescribeTable, dynamodb:UpdateTable"
    answer = _call(cloud, "application-autoscaling", "register_scalable_target", **_target("others"))
    assert answer == {"code": "ValidationException", "message": message}


def test_stack_that_the_role_does_not_name_is_refused(cloud: LocalCloud) -> None:
    """A protocol with other errors than JSON's."""
    assert _call(cloud, "cloudformation", "describe_stacks", StackName="any")["code"] == "AccessDenied"


def test_developer_may_do_everything(cloud: LocalCloud) -> None:
    assert cloud.client("dynamodb").describe_table(TableName="others")["Table"]["TableStatus"] == "ACTIVE"


def test_two_callers_who_change_a_target_at_once_meet(cloud: LocalCloud) -> None:
    """AWS refuses to change what has a pending update; a caller who waits for the answer is never refused."""
    clients = [cloud.client("application-autoscaling") for _ in range(2)]
    together = Barrier(2, timeout=60)

    def register(number: int, table: str) -> str:
        together.wait()
        try:
            clients[number].register_scalable_target(**_target(table) | {"MinCapacity": 5 + number})
        except clients[number].exceptions.ConcurrentUpdateException as error:
            return str(error.response["Error"]["Message"])
        return ""

    met: list[str] = []
    with ThreadPoolExecutor(2) as callers:
        # two different targets never meet
        for _ in range(20):
            assert list(callers.map(register, (0, 1), ("orders", "others"))) == ["", ""]
        # the two calls of one round may miss each other
        for _ in range(1_000):
            met = [refusal for refusal in callers.map(register, (0, 1), ("orders", "orders")) if refusal]
            if met:
                break
    assert met == ["You already have a pending update to an Auto Scaling resource."]
    for lowest in range(5, 25):
        clients[0].register_scalable_target(**_target("orders") | {"MinCapacity": lowest})
    described = clients[1].describe_scalable_targets(ServiceNamespace="dynamodb", ResourceIds=["table/orders"])
    assert described["ScalableTargets"][0]["MinCapacity"] == 24


def _policy(characters: int) -> str:
    """A policy of so many characters, and some spaces."""
    document = policy({"Action": "sqs:SendMessage", "Resource": f"arn:aws:sqs:{REGION}:{ACCOUNT}:"})
    document["Statement"][0]["Resource"] += "x" * (characters - len(json.dumps(document, separators=(",", ":"))))
    return json.dumps(document, indent=4)


def test_policies_of_a_role_have_the_size_that_iam_allows(iam: Any, clients: dict[str, Any]) -> None:
    """All of them together, spaces not counted: a stack of many tables comes near it."""
    iam.create_role(RoleName="full", AssumeRolePolicyDocument=json.dumps(OF_LAMBDA))
    iam.put_role_policy(RoleName="full", PolicyName="first", PolicyDocument=_policy(6_000))
    iam.put_role_policy(RoleName="full", PolicyName="second", PolicyDocument=_policy(4_240))
    said = "Maximum policy size of 10240 bytes exceeded for role full"
    with refused("LimitExceeded", said):
        iam.put_role_policy(RoleName="full", PolicyName="second", PolicyDocument=_policy(4_241))
    with refused("LimitExceeded", said):
        iam.put_role_policy(RoleName="full", PolicyName="third", PolicyDocument=_policy(150))
    iam.put_role_policy(RoleName="full", PolicyName="first", PolicyDocument=_policy(5_800))
    iam.put_role_policy(RoleName="full", PolicyName="third", PolicyDocument=_policy(150))
    fourth = {"PolicyName": "fourth", "Roles": ["full"], "PolicyDocument": json.loads(_policy(200))}
    assert creation_failure(clients["cloudformation"], "AWS::IAM::Policy", fourth) == said
    iam.delete_role_policy(RoleName="full", PolicyName="third")
    assert creation_failure(clients["cloudformation"], "AWS::IAM::Policy", fourth) == ""
    with refused("NoSuchEntity", "The role with name nobody cannot be found."):
        iam.put_role_policy(RoleName="nobody", PolicyName="first", PolicyDocument=_policy(10_241))


ONCE = Config(retries={"mode": "standard", "total_max_attempts": 1})


@pytest.mark.parametrize(
    ("service", "operation", "arguments", "limit"),
    [("ssm", "get_parameters", {"Names": ["/any"]}, 40), ("cloudwatch", "describe_alarms", {}, 9)],
)
def test_calls_that_come_too_fast_are_refused(
    cloud: LocalCloud, service: str, operation: str, arguments: dict[str, Any], limit: int
) -> None:
    """A second of the cloud has so many, and the next one as many again."""
    client = cloud.client(service, ONCE)
    accepted = 0
    with refused("ThrottlingException", "Rate exceeded"):
        for _ in range(100 * limit):
            getattr(client, operation)(**arguments)
            accepted += 1
    assert accepted >= limit


def test_datapoints_that_are_asked_for_too_fast_are_refused(cloud: LocalCloud) -> None:
    """One call alone may ask for too many; boto3 sends it as JSON."""
    client = cloud.client("cloudwatch", ONCE)
    now = cloud.status().now
    query = {"MetricStat": {"Metric": {"Namespace": "mine", "MetricName": "jobs"}, "Period": 60, "Stat": "Sum"}}
    queries = [query | {"Id": f"q{number}"} for number in range(500)]
    client.get_metric_data(MetricDataQueries=queries, StartTime=now - 2 * HOUR, EndTime=now)
    cloud.advance(SECOND)
    with refused("ThrottlingException", "Rate exceeded"):
        # 361 minutes of 500 metrics, most of them still to come
        client.get_metric_data(MetricDataQueries=queries, StartTime=now - 2 * HOUR, EndTime=now + 4 * HOUR + MINUTE)
