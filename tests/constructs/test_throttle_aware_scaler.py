"""The scaler's construct: its role to the letter, its asset, schedule and alarms, and what it refuses."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_sns as sns

from cdk_highwater import (
    Capacity,
    HighWaterMark,
    HighWaterTable,
    TaggedTables,
    ThrottleAwareScaler,
    Window,
    manage_capacity,
)
from cdk_highwater.support.asset import powertools_files, runtime_files, write_asset
from tests.constructs.template_view import (
    BOUNDS_STATEMENTS,
    READ,
    WRITE,
    TemplateView,
    arn,
    global_table,
    key,
    messages,
    new_app,
    new_stack,
    placed_stack,
    scalable_table,
    watched_metric,
)


@lru_cache
def _view() -> TemplateView:
    stack = new_stack()
    ThrottleAwareScaler(stack, "Scaler", topic=sns.Topic(stack, "Alarms")).add_table(scalable_table(stack))
    return TemplateView(stack)


def _function(view: TemplateView) -> dict[str, Any]:
    """The properties of the scaler's function."""
    functions: list[dict[str, Any]] = [each["Properties"] for each in view.of_type("AWS::Lambda::Function")]
    (function,) = [each for each in functions if each["Handler"] == "highwater.handlers.scaler.handler.handler"]
    return function


def _alarms(view: TemplateView, *, on_tables: bool) -> list[dict[str, Any]]:
    """The properties of the alarms on the consumption of tables, or of those on the scaler itself."""
    alarms = [each["Properties"] for each in view.of_type("AWS::CloudWatch::Alarm")]
    return [each for each in alarms if ("Consumed" in watched_metric(each)) is on_tables]


def _scaler_name(view: TemplateView) -> str:
    """The scaler's name: that of its stack, its place in it, and a hash."""
    return str(_function(view)["Environment"]["Variables"]["HIGHWATER_SCALER"])


def test_role_may_do_exactly_this() -> None:
    statements = deepcopy(_view().statements("ScalerFunction"))
    resources = [statement["Resource"] for statement in statements]
    assert statements[0].pop("Resource")["Fn::GetAtt"][0].startswith("ScalerFunctionLogs")
    assert statements[5].pop("Resource")["Fn::GetAtt"][0].startswith("ScalerFunctionDeadLetters")
    assert statements[6].pop("Resource")["Fn::GetAtt"][0].startswith("Jobs")
    assert statements[7].pop("Resource")["Fn::GetAtt"][0].startswith("ScalerFunctionB")
    assert resources.count("*") == 1
    assert statements == [
        {"Action": ["logs:CreateLogStream", "logs:PutLogEvents"], "Effect": "Allow"},
        {
            "Action": ["ssm:GetParameters", "ssm:GetParametersByPath"],
            "Effect": "Allow",
            "Resource": [arn("ssm", f"parameter/highwater/plans/{_scaler_name(_view())}{end}") for end in ("", "/*")],
        },
        {
            "Action": ["application-autoscaling:DescribeScalableTargets", "cloudwatch:GetMetricData"],
            "Effect": "Allow",
            "Resource": "*",
        },
        *BOUNDS_STATEMENTS[1:],
        {"Action": "sqs:SendMessage", "Effect": "Allow"},
        {"Action": ["dynamodb:DescribeTable", "dynamodb:UpdateTable"], "Effect": "Allow"},
        {"Action": "lambda:InvokeFunction", "Effect": "Allow"},
    ]


def test_schedule_runs_it_every_minute_and_goes_first_when_all_goes() -> None:
    view = _view()
    schedule = view.of_type("AWS::Scheduler::Schedule")[0]
    properties = schedule["Properties"]
    assert properties["ScheduleExpression"] == "rate(1 minute)"
    assert json.loads(properties["Target"]["Input"]) == {"highwater": "tick", "time": "<aws.scheduler.scheduled-time>"}
    assert any("Scaled" in name for name in schedule["DependsOn"])
    scaled = view.of_type("Custom::HighwaterScaled")[0]
    assert any("ReadTarget" in name for name in scaled["DependsOn"])
    assert any("Plan" in name for name in scaled["DependsOn"])
    assert scaled["Properties"]["Scaler"]["Fn::GetAtt"][0].startswith("ScalerFunction")
    assert "Region" not in scaled["Properties"]
    (invoking,) = [
        each["Properties"]
        for name, each in view.named("AWS::IAM::Policy").items()
        if name in scaled["DependsOn"] and name.startswith("ScalerFunctionHandOn")
    ]
    assert invoking["PolicyDocument"]["Statement"] == [
        {"Action": "lambda:InvokeFunction", "Effect": "Allow", "Resource": scaled["Properties"]["Scaler"]}
    ]
    assert any(role["Ref"].startswith("HighwaterDeploymentRole") for role in invoking["Roles"])


def test_each_autoscaled_dimension_has_an_alarm_that_starts_the_function() -> None:
    alarms = {each["AlarmName"]["Fn::Join"][1][2]: each for each in _alarms(_view(), on_tables=True)}
    assert set(alarms) == {" read", " write"}
    write = alarms[" write"]
    assert write["AlarmName"]["Fn::Join"][1][0] == "Highwater "
    assert (write["MetricName"], write["Threshold"], write["Period"]) == (
        "ConsumedWriteCapacityUnits",
        41 * 60 * 97 // 100,
        60,
    )
    assert write["AlarmActions"][0]["Fn::GetAtt"][0].startswith("ScalerFunction")
    permission = _view().of_type("AWS::Lambda::Permission")[0]["Properties"]
    assert permission["Principal"] == "lambda.alarms.cloudwatch.amazonaws.com"
    assert permission["SourceArn"] == arn("cloudwatch", "alarm:Highwater *")


def test_alarms_on_itself_go_to_the_topic() -> None:
    own = _alarms(_view(), on_tables=False)
    assert {watched_metric(alarm) for alarm in own} == {
        "Errors",
        "Throttles",
        "Invocations",
        "ApproximateNumberOfMessagesVisible",
        "TablesFailed",
        "UnreadablePlans",
        "MetricsMissing",
        "AtCeiling",
        "HotKeys",
        "DecreaseBudgetExhausted",
        "Paused",
        "UnmanagedIndexes",
    }
    assert all(alarm["AlarmActions"] for alarm in own)
    heartbeat = next(alarm for alarm in own if watched_metric(alarm) == "Invocations")
    assert (heartbeat["TreatMissingData"], heartbeat["EvaluationPeriods"]) == ("breaching", 10)
    assert heartbeat["WarmUpConfiguration"] == {"WarmUpPeriodDurationInMinutes": 60}, "15: not at the first deploy"
    assert heartbeat["Metrics"][0]["Expression"] == "FILL(runs, 0)"
    assert [alarm for alarm in own if "WarmUpConfiguration" in alarm] == [heartbeat]


def test_function_queue_and_logs_are_bounded_and_encrypted() -> None:
    view = _view()
    function = _function(view)
    assert (function["Architectures"], function["Runtime"]) == (["arm64"], "python3.14")
    assert (function["MemorySize"], function["Timeout"]) == (512, 180)
    assert function["Environment"]["Variables"]["HIGHWATER_DRY_RUN"] == "false"
    queue = view.properties_of("AWS::SQS::Queue")
    assert (queue["SqsManagedSseEnabled"], queue["MessageRetentionPeriod"]) == (True, 14 * 86_400)
    groups = [group["Properties"] for group in view.of_type("AWS::Logs::LogGroup")]
    assert all(group["RetentionInDays"] == 90 for group in groups)
    names = [group["LogGroupName"] for group in groups if "LogGroupName" in group]
    assert len(names) == 1
    assert names[0].startswith("/highwater/scaler/Shop-Scaler-Function-"), "highwater explain finds decisions by it"


def test_plan_is_stored_for_the_function() -> None:
    parameter = _view().properties_of("AWS::SSM::Parameter")
    value = json.loads(parameter["Value"])
    assert (value["mode"], value["plan"]["write"]) == (
        "floor",
        {"min": 41, "max": 4_000, "target_utilization_percent": 70},
    )
    assert parameter["Tier"] == "Intelligent-Tiering"


def test_price_of_a_throttled_unit_goes_with_the_plan() -> None:
    stack = new_stack()
    ThrottleAwareScaler(stack, "Scaler", throttle_price_requests=430).add_table(scalable_table(stack))
    value = json.loads(TemplateView(stack).properties_of("AWS::SSM::Parameter")["Value"])
    assert value["throttle_price_requests"] == 430
    with pytest.raises(ValueError, match=r"\Athrottle_price_requests must be from 0 to 1,000,000, got -1\Z"):
        ThrottleAwareScaler(stack, "Cheap", throttle_price_requests=-1)


@pytest.mark.parametrize(
    ("mark", "is_scaled", "marks"),
    [
        pytest.param(None, True, [{"index": None, "read": 30, "write": 4_000}], id="the scaler goes up to there"),
        pytest.param(None, False, None, id="nothing is above the floors"),
        pytest.param(HighWaterMark.to_windows(), True, None, id="declared"),
        pytest.param(HighWaterMark.units(write=700), True, [{"index": None, "read": 3, "write": 700}], id="in units"),
    ],
)
def test_mark_of_a_scalers_table_is_its_ceiling_unless_another_is_declared(
    mark: HighWaterMark | None, *, is_scaled: bool, marks: list[dict[str, Any]] | None
) -> None:
    stack = new_stack()
    table = HighWaterTable(stack, "Orders", partition_key=key(), read=READ, write=WRITE, high_water_mark=mark)
    if is_scaled:
        ThrottleAwareScaler(stack, "Scaler").add_table(table)
    view = TemplateView(stack)
    found = [json.loads(each["Properties"]["Marks"]) for each in view.of_type("Custom::HighwaterMarks")]
    assert found == ([] if marks is None else [marks])
    charges = [text for text in messages(stack, "info") if "warmUpCharge" in text]
    assert len(charges) == len(found)
    if mark is None and is_scaled:
        assert "high-water mark: table 30 RCU and 4,000 WCU; charged once when it is raised, " in charges[0]


def test_window_of_a_scalers_table_raises_one_mark() -> None:
    stack = new_stack()
    window = Window.daily("load", start="05:00", end="06:00", timezone="UTC", write_min=2_300)
    table = HighWaterTable(stack, "Orders", partition_key=key(), read=READ, write=WRITE, windows=[window])
    ThrottleAwareScaler(stack, "Scaler").add_table(table)
    marks = TemplateView(stack).properties_of("Custom::HighwaterMarks")
    assert json.loads(marks["Marks"]) == [{"index": None, "read": 30, "write": 4_000}]
    assert len([text for text in messages(stack, "info") if "warmUpCharge" in text]) == 1


def test_long_plan_takes_an_advanced_parameter_and_a_longer_one_is_refused() -> None:
    def with_windows(count: int) -> cdk.Stack:
        days = [f"2031-{1 + number // 28:02}-{1 + number % 28:02}" for number in range(count)]
        windows = [
            Window.once(
                f"sale number {number}",
                start=f"{day}T08:00",
                end=f"{day}T09:00",
                timezone="Europe/Berlin",
                write_min=900,
            )
            for number, day in enumerate(days)
        ]
        stack = new_stack()
        ThrottleAwareScaler(stack, "Scaler").add_table(scalable_table(stack, windows=windows))
        return stack

    assert TemplateView(with_windows(30)).properties_of("AWS::SSM::Parameter")["Tier"] == "Intelligent-Tiering"
    assert messages(with_windows(70), "error") == [
        "Shop/Jobs/Capacity: the table: got a plan of 9,860 bytes, allowed: up to 7,992 bytes, the size limit of an "
        "SSM parameter; use fewer windows or shorter names [highwater:scalerPlanTooLong]"
    ]


def test_fixed_capacity_alone_is_refused() -> None:
    stack = new_stack()
    table = scalable_table(stack, read=Capacity.fixed(5), write=Capacity.fixed(6))
    ThrottleAwareScaler(stack, "Scaler").add_table(table)
    assert messages(stack, "error") == [
        "Shop/Jobs/Capacity: the table: all capacity is fixed, so the scaler has nothing to change; "
        "give Capacity.autoscaled(max_capacity=) [highwater:scalerNothingAutoscaled]"
    ]


def test_asset_runs_with_boto3_and_what_is_packed(tmp_path: Path) -> None:
    """Whatever else the handler imported would be missing in Lambda."""
    archive, unpacked = tmp_path / "asset.zip", tmp_path / "unpacked"
    write_asset(archive, [runtime_files, powertools_files])
    shutil.unpack_archive(archive, unpacked)
    code = (
        # botocore and urllib3 take these where they are and do without where not, as in Lambda
        "import sys; sys.modules['certifi'] = sys.modules['backports'] = None; "
        "sys.path.insert(0, sys.argv[1]); import highwater.handlers.scaler.handler as s; "
        "import aws_lambda_powertools as p; "
        "assert s.__file__.startswith(sys.argv[1]) and p.__file__.startswith(sys.argv[1]); "
        "known = set(sys.stdlib_module_names) | {'highwater', 'aws_lambda_powertools', 'boto3', 'botocore', "
        "'jmespath', 's3transfer', 'urllib3', 'dateutil', 'six', 'typing_extensions', "
        # some distributions of Python bring it
        "'sitecustomize'}; "
        "outside = {m.split('.')[0] for m, v in sys.modules.items() if getattr(v, '__file__', None)} - known; "
        "outside = {m for m in outside if not m.startswith(('_', 'jsii', 'google', 'mpl'))}; "
        "assert not outside, outside; print(s.handler.__name__)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", code, str(unpacked)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "handler\n"), done.stderr
    assert archive.stat().st_size < 3_000_000


def test_direct_mode_stores_the_plan_and_makes_no_target() -> None:
    stack = new_stack()
    table = dynamodb.Table(stack, "Jobs", partition_key=key(), read_capacity=3, write_capacity=41)
    table.add_global_secondary_index(index_name="by-day", partition_key=key("day"), read_capacity=3, write_capacity=41)
    ThrottleAwareScaler(stack, "Scaler").add_direct_table(table, read=READ, write=WRITE, windows=[NIGHT])
    view = TemplateView(stack)
    value = json.loads(view.properties_of("AWS::SSM::Parameter")["Value"])
    assert value["mode"] == "direct"
    assert [index["name"] for index in value["plan"]["indexes"]] == ["by-day"]
    assert value["plan"]["windows"][0]["write_min"] == 900
    assert view.targets == {}
    assert view.of_type("Custom::HighwaterScaled") == []
    assert len(_alarms(view, on_tables=True)) == 4


def test_direct_mode_refuses_a_table_that_something_scales() -> None:
    stack = new_stack()
    table = scalable_table(stack)
    scaler = ThrottleAwareScaler(stack, "Scaler")
    message = r"Jobs: the table is already scaled; DIRECT mode is for tables that nothing else scales$"
    with pytest.raises(ValueError, match=message):
        scaler.add_direct_table(table, read=READ, write=WRITE)


def test_direct_mode_tells_all_that_is_wrong_with_the_plan() -> None:
    stack = new_stack()
    table = dynamodb.Table(stack, "Jobs", partition_key=key(), billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST)
    scaler = ThrottleAwareScaler(stack, "Scaler")
    scaler.add_direct_table(table, read=Capacity.autoscaled(min_capacity=9, max_capacity=8), write=WRITE)
    told = messages(stack, "error")
    assert [text.split("[")[1] for text in told] == ["highwater:provisionedOnDemand]", "highwater:maxBelowMin]"]
    assert TemplateView(stack).of_type("AWS::SSM::Parameter") == []


def test_function_of_a_scaler_of_tagged_tables_has_a_tag_by_which_others_find_it() -> None:
    """A dry run sets nothing, so nobody needs to know of it."""
    stack = new_stack()
    ThrottleAwareScaler(stack, "Plain")
    ThrottleAwareScaler(stack, "Dry", tagged=TaggedTables(), dry_run=True)
    scaler = ThrottleAwareScaler(stack, "Scaler", tagged=TaggedTables(regions=["eu-west-1"]))
    functions = TemplateView(stack).of_type("AWS::Lambda::Function")
    tags = [function["Properties"]["Tags"] for function in functions if "Tags" in function["Properties"]]
    assert tags == [[{"Key": "highwater:scales-tagged-tables", "Value": scaler.scaler_name}]]


def test_tags_are_seen_only_where_that_is_asked_for_and_then_only_tagged_tables() -> None:
    stack = new_stack()
    ThrottleAwareScaler(stack, "Scaler", tagged=TaggedTables())
    statements = TemplateView(stack).statements("ScalerFunction")
    assert {"Action": "tag:GetResources", "Effect": "Allow", "Resource": "*"} in statements
    assert {
        "Action": ["dynamodb:DescribeTable", "dynamodb:UpdateTable"],
        "Condition": {"StringEquals": {"aws:ResourceTag/highwater:managed": ["floor", "direct"]}},
        "Effect": "Allow",
        "Resource": arn("dynamodb", "table/*"),
    } in statements


WATCHED = ("AWS::SSM::Parameter", "AWS::CloudWatch::Alarm", "Custom::HighwaterScaled")
NIGHT = Window.daily("night", start="23:00", end="02:00", timezone="Europe/Berlin", write_min=900)
DAY = Window.daily("day", start="09:00", end="17:30", timezone="America/New_York", write_min=800)


def test_global_table_is_scaled_in_each_region_and_its_windows_are_held_by_the_scaler() -> None:
    stack = placed_stack(region="us-east-1")
    scaler = ThrottleAwareScaler(stack, "Scaler")
    world = global_table(stack, replicas=[dynamodb.ReplicaTableProps(region="eu-west-1")])
    manage_capacity(world, read=READ, write=WRITE, windows=[NIGHT], windows_held_by=scaler)
    assert messages(stack, "error") == []
    view = TemplateView(stack)
    plans = {
        json.dumps(each["Properties"]["Name"]).split(_scaler_name(view))[1].split('"')[0]: each["Properties"]["Value"]
        for each in view.of_type("AWS::SSM::Parameter")
    }
    assert set(plans) == {"/", "/eu-west-1/"}
    assert plans["/"] == plans["/eu-west-1/"]
    assert json.loads(plans["/"])["plan"]["windows"][0]["write_min"] == 900
    scaled = {each["Properties"].get("Region"): each["Properties"] for each in view.of_type("Custom::HighwaterScaled")}
    assert set(scaled) == {None, "eu-west-1"}
    # nothing holds a window when the scaler has gone
    assert json.loads(scaled["eu-west-1"]["Plan"])["windows"] == []
    assert json.loads(scaled["eu-west-1"]["Held"])["windows"][0]["write_min"] == 900
    statements = view.statements("ScalerFunction")
    there = [s for s in statements if "eu-west-1" in json.dumps(s)]
    assert [s["Action"] for s in there] == [
        "application-autoscaling:RegisterScalableTarget",
        ["cloudwatch:DeleteAlarms", "cloudwatch:DescribeAlarms", "cloudwatch:PutMetricAlarm"],
        ["dynamodb:DescribeTable", "dynamodb:UpdateTable"],
    ]
    assert "eu-west-1:111122223333:table/" in json.dumps(there[2]["Resource"])


def test_table_of_another_region_is_scaled_where_it_is_and_has_its_alarms_there() -> None:
    app = new_app()
    here, there = placed_stack(app, "Here", "us-east-1"), placed_stack(app, "There", "eu-central-1")
    ThrottleAwareScaler(here, "Scaler").add_table(scalable_table(there, table_name="jobs"))
    view, other = TemplateView(here), TemplateView(there)
    name = view.properties_of("AWS::SSM::Parameter")["Name"]
    assert name == f"/highwater/plans/{_scaler_name(view)}/eu-central-1/jobs"
    scaled = view.properties_of("Custom::HighwaterScaled")
    assert (scaled["Region"], scaled["TableName"]) == ("eu-central-1", "jobs")
    alarms = [alarm["Properties"] for alarm in other.of_type("AWS::CloudWatch::Alarm")]
    assert [alarm["AlarmName"] for alarm in alarms] == ["Highwater jobs read", "Highwater jobs write"]
    assert all("AlarmActions" not in alarm for alarm in alarms), "an alarm starts no function of another region"
    assert _alarms(view, on_tables=True) == []


def test_tags_may_choose_tables_of_several_regions() -> None:
    stack = new_stack()
    ThrottleAwareScaler(stack, "Scaler", tagged=TaggedTables(regions=["eu-west-3", "ap-south-1"]))
    view = TemplateView(stack)
    assert _function(view)["Environment"]["Variables"]["HIGHWATER_REGIONS"] == "eu-west-3 ap-south-1"
    tagged = next(s for s in view.statements("ScalerFunction") if "aws:ResourceTag" in json.dumps(s))
    assert [":".join(map(str, each["Fn::Join"][1][2:3])) for each in tagged["Resource"][1:]] == [
        ":dynamodb:eu-west-3:",
        ":dynamodb:ap-south-1:",
    ]


def test_windows_that_the_scaler_holds_have_no_actions_and_may_be_of_any_zones() -> None:
    stack = new_stack()
    scalable_table(stack, windows=[NIGHT, DAY], windows_held_by=ThrottleAwareScaler(stack, "Scaler"))
    assert messages(stack, "error") == []
    view = TemplateView(stack)
    assert all(target.actions == {} for target in view.targets.values())
    floors = view.properties_of("Custom::HighwaterFloors")
    assert len(json.loads(floors["Plan"])["windows"]) == 2, "a deploy in an open window asserts its floor as ever"


def test_table_whose_windows_a_scaler_holds_is_looked_after_by_it_once() -> None:
    stack = new_stack()
    scaler = ThrottleAwareScaler(stack, "Scaler")
    table = scalable_table(stack, windows=[NIGHT], windows_held_by=scaler)
    assert len(TemplateView(stack).of_type("AWS::SSM::Parameter")) == 1
    with pytest.raises(ValueError, match=r"^Shop/Jobs/Capacity: the scaler already manages this table; call "):
        scaler.add_table(table)


def test_dropping_one_table_leaves_the_resources_of_the_others_where_they_are() -> None:
    def ids(names: list[str]) -> dict[str, set[str]]:
        """Logical ids of each table's plan and alarms, by the name of the table."""
        stack = new_stack()
        scaler = ThrottleAwareScaler(stack, "Scaler")
        for name in names:
            scaler.add_table(scalable_table(stack, name))
        resources = TemplateView(stack).template["Resources"]
        found: dict[str, set[str]] = {name: set() for name in names}
        for id, resource in resources.items():
            for name in names:
                if resource["Type"] in WATCHED and name in json.dumps(resource["Properties"]):
                    found[name].add(f"{resource['Type']} {id}")
        return found

    all_three = ids(["First", "Second", "Third"])
    assert {len(of_table) for of_table in all_three.values()} == {4}
    del all_three["First"]
    assert ids(["Second", "Third"]) == all_three


def test_scaler_holds_no_windows_of_fixed_capacity() -> None:
    stack = new_stack()
    scaler = ThrottleAwareScaler(stack, "Scaler")
    scalable_table(stack, write=Capacity.fixed(6), windows=[NIGHT], windows_held_by=scaler)
    assert messages(stack, "error") == [
        "Shop/Jobs: table write: windows_held_by= lets a scaler open and close the windows, but a scaler changes only "
        "autoscaled capacity, and this capacity is fixed; give Capacity.autoscaled(max_capacity=), or remove "
        "windows_held_by= to use scheduled actions [highwater:fixedWindowsNotHeld]"
    ]


def test_function_waits_for_every_policy_where_the_cdk_spreads_its_permissions_over_several() -> None:
    """Else the first runs of a scaler of many tables are denied what a policy allows that is not attached yet."""
    stack = placed_stack()
    scaler = ThrottleAwareScaler(stack, "Scaler")
    for number in range(40):
        table = dynamodb.Table.from_table_name(stack, f"Jobs{number}", f"jobs-{number}".rjust(60, "j"))
        scaler.add_direct_table(table, read=READ, write=WRITE)
    view = TemplateView(stack)
    policies = [name for kind in ("Policy", "ManagedPolicy") for name in view.named(f"AWS::IAM::{kind}")]
    own = [name for name in policies if name.startswith("ScalerFunctionRole")]
    assert any("OverflowPolicy" in name for name in own)
    (function,) = [each for name, each in view.named("AWS::Lambda::Function").items() if name.startswith("Scaler")]
    assert sorted(function["DependsOn"]) == sorted(own)
