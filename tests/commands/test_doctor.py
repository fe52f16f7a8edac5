"""`highwater doctor` of a strict local cloud, in which what it warns of is made to happen, by its page's policy."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import botocore.session
import pytest

from highwater.core import Capacity, Plan
from highwater.core.scaler import Mode, ScaledPlan
from highwater_lab.doctor import CHECKS, CheckedPlace, run_checks
from highwater_lab.local import LocalCloud
from tests.cdk_cli import ROOT
from tests.command import Command, refused
from tests.doctor.stubs import CloudSession, assembly, table, target

pytestmark = pytest.mark.xdist_group("cloud-doctor")
ACCOUNT, REGION = "000000000000", "us-east-1"
WRITE = "dynamodb:table:WriteCapacityUnits"
# a policy needs a statement, and this call needs no permission
STATEMENT = {"Effect": "Allow", "Action": "sts:GetCallerIdentity", "Resource": "*"}
NOTHING = json.dumps({"Version": "2012-10-17", "Statement": [STATEMENT]})
ROLE = "AWSServiceRoleForApplicationAutoScaling_DynamoDBTable"
DEPLOYS = f"cdk-hnb659fds-cfn-exec-role-{ACCOUNT}-{REGION}"
OF_ORDERS = f"--region {REGION} --service-namespace dynamodb --resource-id table/orders --scalable-dimension {WRITE}"


def _policy() -> str:
    """The policy of the page."""
    (policy,) = re.findall(r"```json\n(.*?)```", (ROOT / "docs" / "doctor.md").read_text(), re.DOTALL)
    return str(policy)


# what IAM calls a service where its own name is another
_PREFIXES = {
    "application-auto-scaling": "application-autoscaling",
    "config-service": "config",
    "resource-groups-tagging-api": "tag",
}


@pytest.fixture(scope="module")
def cloud() -> Iterator[LocalCloud]:
    """A cloud as a new account is: nothing is in it but the role of whoever runs the doctor."""
    with LocalCloud(clock="driven", has_instant_updates=True, is_strict=True) as made:
        iam = made.client("iam")
        caller = {"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}, "Action": "sts:AssumeRole"}
        trust = json.dumps({"Version": "2012-10-17", "Statement": [caller]})
        for name, document in (("doctor", _policy()), ("nobody", NOTHING)):
            iam.create_role(RoleName=name, AssumeRolePolicyDocument=trust)
            iam.put_role_policy(RoleName=name, PolicyName="own", PolicyDocument=document)
        iam.close()
        yield made


@pytest.fixture
def doctor(cloud: LocalCloud, tmp_path: Path) -> Command:
    """The command by that role, in a second of the cloud's clock in which nothing was requested yet."""
    cloud.step(2)
    return Command(tmp_path, cloud.environment("doctor"))


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """An app with a table from 7 to 70 write units."""
    return assembly(tmp_path, _resources(), account=ACCOUNT, region=REGION)


def _resources() -> dict[str, Any]:
    return {"Orders": table("orders", 5, 9), "Writes": target("orders", 7, 70)}


def _lines(doctor: Command, check: str, *arguments: str) -> list[str]:
    """What a check says, without its fixes, after its state."""
    return [f"{state} {text}" for state, text, _ in _results(doctor, check, *arguments)]


def _results(doctor: Command, check: str, *arguments: str) -> list[tuple[str, str, str | None]]:
    done = doctor("doctor", *arguments, "--only", check, "--json")
    assert done.stderr == "", done.stderr
    results = json.loads(done.stdout)["results"]
    has_failure = any(each["state"] == "failure" for each in results)
    assert (done.returncode, {each["check"] for each in results}) == (int(has_failure), {check})
    return [(each["state"], each["text"], each["fix"]) for each in results]


def test_new_account_lacks_the_role_and_the_bootstrap(doctor: Command, cloud: LocalCloud, app: Path) -> None:
    done = doctor("doctor", str(app))
    assert (done.returncode, done.stderr) == (1, "")
    first, left_out, *lines, last = done.stdout.splitlines()
    assert first == f"account {ACCOUNT}, region {REGION}, with {app}"
    assert left_out == "left out, as they go to another account or region: ShopWest"
    assert last == "2 failures, 1 warning"
    role, bootstrap, concurrency, *others = lines
    assert role == (
        f"failure service-linked-role: there is no role {ROLE}; the first target makes it, and others may fail until "
        "it is in effect; fix: aws iam create-service-linked-role --aws-service-name "
        "dynamodb.application-autoscaling.amazonaws.com"
    )
    assert bootstrap == (
        f"failure bootstrap: aws://{ACCOUNT}/{REGION} is not bootstrapped: there is no parameter "
        f"/cdk-bootstrap/hnb659fds/version; fix: cdk bootstrap aws://{ACCOUNT}/{REGION}"
    )
    assert concurrency.startswith("ok      concurrency: the account has ")
    assert others == [
        "ok      types: us-east-1 has all 2 resource types of the app",
        "ok      owners: nothing else scales 1 table of the app, and no table has two scalers",
        "ok      cost: 4.75 USD in a month without a single request (Orders 4.75); prices of us-east-1, 2026-11",
        "ok      leftovers: no target, alarm, plan or queue is of a table that is gone",
        "ok      drift: nothing is deployed",
        "ok      quotas: ceilings and floors of the app are within DynamoDB's quotas of the account",
        f"warning permissions: {DEPLOYS} may not application-autoscaling:RegisterScalableTarget, dynamodb:CreateTable: "
        "no policy allows it for every resource; fix: cdk bootstrap --cloudformation-execution-policies with a policy "
        "that does, unless one allows it for the app's",
        "ok      config: AWS Config does not record each change of tables and alarms",
        "ok      alarms: there is no alarm",
    ]
    iam, ssm = cloud.client("iam"), cloud.client("ssm")
    iam.create_role(RoleName=DEPLOYS, AssumeRolePolicyDocument="{}")
    all_of_it = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
    iam.put_role_policy(RoleName=DEPLOYS, PolicyName="all", PolicyDocument=json.dumps(all_of_it))
    iam.create_role(RoleName=ROLE, AssumeRolePolicyDocument="{}")
    ssm.put_parameter(Name="/cdk-bootstrap/hnb659fds/version", Value="6", Type="String")
    iam.close()
    ssm.close()
    cloud.step(1)
    done = doctor("doctor", str(app))
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "0 failures, 0 warnings")


def test_target_that_somebody_registered_is_not_the_apps(doctor: Command, cloud: LocalCloud, app: Path) -> None:
    cloudformation, autoscaling = cloud.client("cloudformation"), cloud.client("application-autoscaling")
    deploy = {"StackName": "Shop", "Capabilities": ["CAPABILITY_NAMED_IAM"]}
    cloudformation.create_stack(**deploy, TemplateBody=json.dumps({"Resources": _resources()}))
    reads = {"ResourceId": "table/orders", "ScalableDimension": "dynamodb:table:ReadCapacityUnits"}
    try:
        assert _lines(doctor, "owners", str(app)) == [
            "ok nothing else scales 1 table of the app, and no table has two scalers"
        ]
        assert _lines(doctor, "drift", str(app)) == ["ok 2 targets of 1 table are as declared"]
        autoscaling.register_scalable_target(ServiceNamespace="dynamodb", **reads, MinCapacity=5, MaxCapacity=50)
        ((state, text, fix),) = _results(doctor, "owners", str(app))
        assert (state, text) == (
            "warning",
            "target table/orders read of table Orders is registered and not the app's: no stack has it: it is "
            "somebody's by hand, or Terraform's; the app does not declare it",
        )
        assert fix == (
            "take it out of what made it, or aws application-autoscaling deregister-scalable-target "
            f"{OF_ORDERS.replace('Write', 'Read')}"
        )
        autoscaling.deregister_scalable_target(ServiceNamespace="dynamodb", **reads)
        other = target("orders", 5, 50)
        other["Properties"] |= reads
        cloudformation.create_stack(StackName="Other", TemplateBody=json.dumps({"Resources": {"Reads": other}}))
        assert _lines(doctor, "owners", str(app)) == [
            "warning target table/orders read of table Orders is registered and not the app's: stack Other has it; the "
            "app does not declare it"
        ]
    finally:
        for stack in ("Other", "Shop"):
            cloudformation.delete_stack(StackName=stack)
        cloudformation.close()
        autoscaling.close()


def test_drift_of_bounds_is_found_and_its_command_ends_it(doctor: Command, cloud: LocalCloud, app: Path) -> None:
    cloudformation, autoscaling = cloud.client("cloudformation"), cloud.client("application-autoscaling")
    cloudformation.create_stack(StackName="Shop", TemplateBody=json.dumps({"Resources": _resources()}))
    of: dict[str, Any] = {
        "ServiceNamespace": "dynamodb",
        "ResourceId": "table/orders",
        "ScalableDimension": WRITE,
    }
    try:
        autoscaling.register_scalable_target(**of, MinCapacity=3, MaxCapacity=70)
        fix = f"aws application-autoscaling register-scalable-target {OF_ORDERS} --min-capacity 7 --max-capacity 70"
        assert _results(doctor, "drift", str(app)) == [
            ("failure", "target table/orders write has a floor of 3, declared for now: 7", fix)
        ]
        autoscaling.register_scalable_target(**of, MinCapacity=7, MaxCapacity=70)
        assert _lines(doctor, "drift", str(app)) == ["ok 2 targets of 1 table are as declared"]
        autoscaling.register_scalable_target(**of, SuspendedState={"ScheduledScalingSuspended": True})
        metric = {"PredefinedMetricType": "DynamoDBWriteCapacityUtilization"}
        autoscaling.put_scaling_policy(
            **of,
            PolicyName="by-hand",
            PolicyType="TargetTrackingScaling",
            TargetTrackingScalingPolicyConfiguration={"TargetValue": 61.0, "PredefinedMetricSpecification": metric},
        )
        autoscaling.put_scheduled_action(
            **of,
            ScheduledActionName="nightly",
            Schedule="cron(0 3 * * ? *)",
            ScalableTargetAction={"MinCapacity": 8},
        )
        cloud.step(1)
        assert _lines(doctor, "drift", str(app)) == [
            "warning target table/orders write is paused: its scaling is suspended",
            "warning target table/orders write has the scaling policy 'by-hand', which is not declared",
            "warning target table/orders write has the scheduled action 'nightly', which is not declared",
        ]
        autoscaling.deregister_scalable_target(**of)
        assert _results(doctor, "drift", str(app)) == [
            ("failure", "target table/orders write is not registered, declared: 7 to 70", fix)
        ]
    finally:
        cloudformation.delete_stack(StackName="Shop")
        cloudformation.close()
        autoscaling.close()


def test_what_a_deleted_table_leaves_is_found(doctor: Command, cloud: LocalCloud) -> None:
    services = ("dynamodb", "application-autoscaling", "cloudwatch", "ssm", "sqs")
    clients = {name: cloud.client(name) for name in services}
    key = {"KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}]}
    attributes = {"AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}]}
    units = {"ProvisionedThroughput": {"ReadCapacityUnits": 5, "WriteCapacityUnits": 9}}
    clients["dynamodb"].create_table(TableName="old", **key, **attributes, **units)
    of: dict[str, Any] = {"ServiceNamespace": "dynamodb", "ResourceId": "table/old", "ScalableDimension": WRITE}
    clients["application-autoscaling"].register_scalable_target(**of, MinCapacity=7, MaxCapacity=70)
    clients["cloudwatch"].put_metric_alarm(
        AlarmName="Highwater old write",
        Namespace="AWS/DynamoDB",
        MetricName="ConsumedWriteCapacityUnits",
        Dimensions=[{"Name": "TableName", "Value": "old"}],
        Statistic="Sum",
        Period=60,
        EvaluationPeriods=1,
        Threshold=500,
        ComparisonOperator="GreaterThanThreshold",
    )
    capacity = Capacity.autoscaled(min_capacity=5, max_capacity=50)
    plan = ScaledPlan(table="old", mode=Mode.FLOOR, plan=Plan(read=capacity, write=capacity))
    clients["ssm"].put_parameter(Name="/highwater/plans/Shop/old", Value=plan.to_json(), Type="String")
    queue = clients["sqs"].create_queue(QueueName="old-writes", tags={"highwater:buffers": "old"})["QueueUrl"]
    clients["sqs"].send_message(QueueUrl=queue, MessageBody="{}")
    try:
        assert _lines(doctor, "leftovers") == [
            "warning queue old-writes is read by no function any more; 1 message is in it, which the command deletes "
            "too"
        ]
        clients["dynamodb"].delete_table(TableName="old")
        assert _lines(doctor, "leftovers") == [
            "warning target table/old write is registered, and the table is gone",
            "warning alarm 'Highwater old write' watches a table that is gone, 0.10 USD a month",
            "warning parameter /highwater/plans/Shop/old is the plan of table old, which is gone; the scaler looks for "
            "it in every run",
            "warning queue old-writes buffers for table old, which is gone; 1 message is in it, which the command "
            "deletes too",
        ]
    finally:
        clients["application-autoscaling"].deregister_scalable_target(**of)
        clients["cloudwatch"].delete_alarms(AlarmNames=["Highwater old write"])
        clients["ssm"].delete_parameter(Name="/highwater/plans/Shop/old")
        clients["sqs"].delete_queue(QueueUrl=queue)
        for client in clients.values():
            client.close()


def test_reservation_that_the_account_has_no_room_for_is_a_failure(doctor: Command, tmp_path: Path) -> None:
    function = {"Type": "AWS::Lambda::Function", "Properties": {"ReservedConcurrentExecutions": 5_000}}
    app = assembly(tmp_path, {"Scaler": function}, account=ACCOUNT, region=REGION)
    ((state, text, _),) = _results(doctor, "concurrency", str(app))
    assert state == "failure"
    assert text.startswith("the app reserves 5,000 concurrent runs, and the account has ")


def test_type_that_the_region_lacks_is_a_failure(doctor: Command, tmp_path: Path) -> None:
    resources = _resources() | {"Boosts": {"Type": "AWS::Quantum::Url"}}
    app = assembly(tmp_path, resources, account=ACCOUNT, region=REGION)
    assert _lines(doctor, "types", str(app)) == [
        f"failure CloudFormation has no AWS::Quantum::Url in {REGION}, and the app has Boosts, so a deploy is refused "
        "before it makes anything"
    ]


def test_ceiling_above_dynamodbs_quota_is_a_failure(doctor: Command, tmp_path: Path) -> None:
    resources = {"Orders": table("orders", 5, 9), "Writes": target("orders", 7, 50_000)}
    app = assembly(tmp_path, resources, account=ACCOUNT, region=REGION)
    assert _lines(doctor, "quotas", str(app)) == [
        "failure the writes of Orders may rise to 50,000, and the account's quota for a table or index is 40,000: "
        "above it, auto scaling is refused"
    ]


def test_recorder_of_aws_config_is_a_warning(doctor: Command, cloud: LocalCloud) -> None:
    config = cloud.client("config")
    recorder = {
        "name": "default",
        "roleARN": f"arn:aws:iam::{ACCOUNT}:role/config",
        "recordingGroup": {"allSupported": True},
        "recordingMode": {"recordingFrequency": "CONTINUOUS"},
    }
    config.put_configuration_recorder(ConfigurationRecorder=recorder)
    try:
        config.start_configuration_recorder(ConfigurationRecorderName="default")
        assert _lines(doctor, "config") == [
            "warning AWS Config records each change of AWS::CloudWatch::Alarm and AWS::DynamoDB::Table, 0.003 USD "
            "each; scaling changes them all day"
        ]
    finally:
        config.stop_configuration_recorder(ConfigurationRecorderName="default")
        config.close()


def test_alarms_whose_actions_are_off_are_found(doctor: Command, cloud: LocalCloud, tmp_path: Path) -> None:
    cloudformation, cloudwatch = cloud.client("cloudformation"), cloud.client("cloudwatch")
    names = ("Highwater orders write", "Shop errors")
    metric = {
        "Namespace": "AWS/DynamoDB",
        "MetricName": "ConsumedWriteCapacityUnits",
        "Statistic": "Sum",
        "Period": 60,
        "EvaluationPeriods": 1,
        "Threshold": 500,
        "ComparisonOperator": "GreaterThanThreshold",
    }
    resources = {
        f"Alarm{number}": {"Type": "AWS::CloudWatch::Alarm", "Properties": {"AlarmName": name, **metric}}
        for number, name in enumerate(names)
    }
    app = assembly(tmp_path, resources, account=ACCOUNT, region=REGION)
    cloudformation.create_stack(StackName="Shop", TemplateBody=json.dumps({"Resources": resources}))
    try:
        assert _lines(doctor, "alarms", str(app)) == [
            "ok the actions of all 2 alarms of the app and its scalers are on"
        ]
        cloudwatch.disable_alarm_actions(AlarmNames=list(names))
        enable = f"aws cloudwatch enable-alarm-actions --region {REGION} --alarm-names"
        assert _results(doctor, "alarms", str(app)) == [
            (
                "failure",
                "the scaler is not woken by alarms whose actions are off: 'Highwater orders write'",
                f"{enable} 'Highwater orders write'",
            ),
            (
                "warning",
                "nobody is told by alarms whose actions are off: 'Shop errors'",
                f"{enable} 'Shop errors'",
            ),
        ]
    finally:
        cloudformation.delete_stack(StackName="Shop")
        cloudformation.close()
        cloudwatch.close()


def test_check_that_may_not_be_read_is_a_warning(cloud: LocalCloud, tmp_path: Path, app: Path) -> None:
    """The cloud judges calls of DynamoDB alone of those that the doctor makes."""
    done = Command(tmp_path, cloud.environment("nobody"))("doctor", str(app), "--json")
    denied = {
        (each["check"], each["text"], each["fix"])
        for each in json.loads(done.stdout)["results"]
        if "may not be read" in each["text"]
    }
    assert denied == {
        (
            check,
            f"may not be read: dynamodb:{action} is denied",
            f"allow dynamodb:{action}; docs/doctor.md has the whole policy",
        )
        for check, action in (
            ("owners", "ListTables"),
            ("cost", "ListTables"),
            ("leftovers", "ListTables"),
            ("quotas", "DescribeLimits"),
        )
    }


def test_policy_of_the_page_has_every_call(cloud: LocalCloud, app: Path) -> None:
    asked: set[str] = set()

    def note(**event: Any) -> None:
        _, service, operation = event["event_name"].split(".")
        asked.add(f"{_PREFIXES.get(service, service)}:{operation}")

    session = botocore.session.Session()
    session.register("before-call", note)
    place = CheckedPlace(CloudSession(cloud, boto3.Session(botocore_session=session)))
    place.open_app(app)
    cloud.step(2)
    assert {result.check for result in run_checks(place)} == set(CHECKS)
    place.close()
    statements = json.loads(_policy())["Statement"]
    # IAM knows no path of a role that does not exist
    (roles,) = [each["Resource"] for each in statements if each["Action"] == "iam:GetRole"]
    assert f"arn:aws:iam::*:role/{ROLE}" in roles
    actions = [each["Action"] for each in statements]
    allowed = {each for action in actions for each in ([action] if isinstance(action, str) else action)}
    # needs no permission
    assert asked - allowed == {"sts:GetCallerIdentity"}


def test_misuse_is_one_line(doctor: Command, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    assert refused(doctor("doctor", "empty")) == (
        "highwater doctor: empty: is not a cloud assembly: manifest.json cannot be read: No such file or directory; "
        "give the folder that cdk synth wrote, such as cdk.out"
    )
    assert refused(doctor("doctor", AWS_REGION="", AWS_DEFAULT_REGION="")) == (
        "highwater doctor: no region is set; give --region, or set AWS_REGION"
    )
    assert "Invalid value for '--only'" in refused(doctor("doctor", "--only", "everything"))
