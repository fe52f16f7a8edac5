"""The deploy function: its role to the letter, its asset to the file."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from copy import deepcopy
from functools import cache, partial
from pathlib import Path

import pytest
from aws_cdk import aws_dynamodb as dynamodb

from cdk_highwater import HighWaterMark, PreWarm, ThrottleAwareScaler, Window, manage_capacity
from cdk_highwater.support.asset import runtime_files, write_asset
from tests.constructs.template_view import BOUNDS_STATEMENTS, READ, WRITE, TemplateView, key, new_stack, scalable_table

NIGHT = Window.daily("night", start="23:00", end="02:00", timezone="UTC", write_min=900)


@cache
def _view(*names: str, mark: HighWaterMark | None = None) -> TemplateView:
    """A stack of tables with a window."""
    stack = new_stack()
    for name in names:
        table = dynamodb.Table(stack, name, partition_key=key())
        manage_capacity(table, read=READ, write=WRITE, windows=[NIGHT], high_water_mark=mark)
    return TemplateView(stack)


def test_role_may_do_exactly_this() -> None:
    policies = {
        name.removeprefix("HighwaterDeployment")[:-8]: policy["Properties"]["PolicyDocument"]["Statement"]
        for name, policy in deepcopy(_view("Jobs").named("AWS::IAM::Policy")).items()
    }
    assert set(policies) == {"RoleDefaultPolicy", "Bounds", "Marks", "TableJobs"}
    (logs,) = policies["RoleDefaultPolicy"]
    assert logs.pop("Resource")["Fn::GetAtt"][0].startswith("HighwaterDeploymentLogs")
    assert logs == {"Action": ["logs:CreateLogStream", "logs:PutLogEvents"], "Effect": "Allow"}
    assert policies["Bounds"] == [
        *BOUNDS_STATEMENTS,
        {
            "Action": ["cloudformation:DescribeStacks", "cloudformation:ListStackResources"],
            "Effect": "Allow",
            "Resource": {"Ref": "AWS::StackId"},
        },
        policies["Marks"][0],
    ]
    (itself,) = policies["Marks"]
    assert itself.pop("Resource")["Fn::GetAtt"][0].startswith("HighwaterDeploymentFunction")
    assert itself == {"Action": "lambda:InvokeFunction", "Effect": "Allow"}
    (table,) = policies["TableJobs"]
    assert table.pop("Resource")["Fn::GetAtt"][0].startswith("Jobs")
    assert table == {
        "Action": [
            "dynamodb:DescribeTable",
            "dynamodb:UpdateTable",
            "dynamodb:ListTagsOfResource",
            "dynamodb:TagResource",
            "dynamodb:UntagResource",
        ],
        "Effect": "Allow",
    }


@pytest.mark.parametrize(
    ("tables", "mark", "resource"),
    [
        pytest.param(["Jobs"], None, "OrdersCapacityAftermath", id="a-table-goes"),
        pytest.param(["Jobs", "Orders"], HighWaterMark.none(), "OrdersCapacityMarks", id="its-marks-go"),
        pytest.param([], None, "OrdersCapacityAftermath", id="all-goes"),
    ],
)
def test_permissions_of_a_custom_resource_outlive_it(
    tables: list[str], mark: HighWaterMark | None, resource: str
) -> None:
    """4: CloudFormation updates policies first and deletes custom resources last, and after them their policies."""
    before = _view("Jobs", "Orders")
    policies = before.named("AWS::IAM::Policy")
    (custom,) = [
        each
        for kind in ("Custom::HighwaterAftermath", "Custom::HighwaterMarks")
        for name, each in before.named(kind).items()
        if name.startswith(resource)
    ]
    needed = [name for name in custom["DependsOn"] if name in policies]
    assert len(needed) == 3, "what all tables need, what this one needs, and the log"
    later = _view(*tables, mark=mark).named("AWS::IAM::Policy")
    for name in needed:
        assert name not in later or later[name] == policies[name], "updated before the resource is deleted"


@pytest.mark.parametrize("is_warmed_first", [True, False])
def test_marks_of_a_table_that_a_scaler_has_may_be_noted_whatever_comes_first(*, is_warmed_first: bool) -> None:
    stack = new_stack()
    table = dynamodb.TableV2(
        stack,
        "Orders",
        partition_key=key(),
        billing=dynamodb.Billing.provisioned(
            read_capacity=dynamodb.Capacity.fixed(7),
            write_capacity=dynamodb.Capacity.autoscaled(max_capacity=90),
        ),
    )
    capacity = manage_capacity(table, read=READ, write=WRITE)

    def warm() -> None:
        warm_throughput = dynamodb.WarmThroughput(read_units_per_second=13_000, write_units_per_second=5_000)
        PreWarm(stack, "Warm", table=table, warm_throughput=warm_throughput)

    def scale() -> None:
        ThrottleAwareScaler(stack, "Scaler").add_table(capacity)

    for step in (warm, scale) if is_warmed_first else (scale, warm):
        step()
    tables = [
        each["Action"] for each in TemplateView(stack).statements() if "dynamodb:UpdateTable" in str(each["Action"])
    ]
    noting = ["dynamodb:ListTagsOfResource", "dynamodb:TagResource", "dynamodb:UntagResource"]
    assert any(set(noting) <= set(actions) for actions in tables)


def test_function_is_bounded_and_keeps_its_logs_for_a_while() -> None:
    view = _view("Jobs")
    function = view.properties_of("AWS::Lambda::Function")
    assert function["Architectures"] == ["arm64"]
    assert function["Runtime"] == "python3.14"
    assert (function["MemorySize"], function["Timeout"]) == (256, 900)
    assert function["RecursiveLoop"] == "Allow", "Lambda would stop it after four hours of restoring capacity"
    assert view.properties_of("AWS::Logs::LogGroup")["RetentionInDays"] == 90


def test_floors_wait_for_every_target_and_targets_for_what_comes_before_them() -> None:
    """A rollback reaches `Aftermath` whenever it resets a target, and a deletion comes to it after the targets."""
    view = _view("Jobs")
    (floors,) = view.of_type("Custom::HighwaterFloors")
    ((aftermath_id, aftermath),) = view.named("Custom::HighwaterAftermath").items()
    targets = view.named("AWS::ApplicationAutoScaling::ScalableTarget")
    assert len(targets) == 2
    assert set(targets) <= set(floors["DependsOn"])
    assert all(aftermath_id in target["DependsOn"] for target in targets.values())
    assert floors["Properties"] == aftermath["Properties"], "it changes whenever they do"
    waited_for = " ".join(aftermath["DependsOn"])
    for permissions in ("DefaultPolicy", "Bounds", "TableJobs"):
        assert permissions in waited_for


def test_custom_resources_have_half_an_hour_to_answer_and_those_of_marks_longer() -> None:
    """By default a function that cannot run holds a stack for an hour, and its rollback for another."""
    stack = new_stack()
    window = Window.daily("load", start="05:00", end="06:00", timezone="UTC", write_min=900)
    ThrottleAwareScaler(stack, "Scaler").add_table(scalable_table(stack, windows=[window]))
    view = TemplateView(stack)
    answers = {
        resource["Type"]: int(resource["Properties"]["ServiceTimeout"])
        for resource in view.template["Resources"].values()
        if resource["Type"].startswith("Custom::")
    }
    assert answers == {
        "Custom::HighwaterAftermath": 1_800,
        "Custom::HighwaterFloors": 1_800,
        "Custom::HighwaterScaled": 1_800,
        "Custom::HighwaterUnits": 1_800,
        "Custom::HighwaterMarks": 3_300,
    }


def test_asset_holds_core_adapters_and_handlers_only() -> None:
    files = sorted(name for name, _ in runtime_files())
    folders = {"/".join(file.split("/")[:2]) for file in files}
    own = {folder for folder in folders if not folder.startswith("tzdata/")}
    assert own == {"highwater/__init__.py", "highwater/exports.py"} | {
        f"highwater/{name}" for name in ("aws", "calls", "core", "handlers")
    }
    assert "tzdata/zoneinfo/Europe/Berlin" in files, "Lambda's own zone database may be older than that of synth"
    zones = dict(runtime_files())["tzdata/zones"].read_text().split()
    assert "Europe/Berlin" in zones, "15: a zone that synth knows and Lambda does not would stop the scaler"
    other = [file for file in files if file.startswith("highwater/") and not file.endswith(".py")]
    assert other == ["highwater/core/prices.json"], "what a boost costs is part of its answer"
    assert "highwater/handlers/deploy/handler.py" in files


def test_asset_is_the_same_whatever_machine_it_is_packed_on(tmp_path: Path) -> None:
    """The CDK deploys a function again when its asset differs by one byte."""
    archives = []
    for number, (mode, at) in enumerate([(0o600, 1_700_000_000), (0o755, 1_800_000_000)]):
        source = tmp_path / f"{number}.py"
        source.write_text("the same")
        source.chmod(mode)
        os.utime(source, (at, at))
        packs = [partial(iter, [("folder/b.py", source)]), partial(iter, [("a.py", source)])]
        archives.append(tmp_path / f"{number}.zip")
        write_asset(archives[-1], packs[:: 1 - 2 * number])
    assert archives[0].read_bytes() == archives[1].read_bytes()
    with zipfile.ZipFile(archives[0]) as archive:
        assert archive.namelist() == ["a.py", "folder/b.py"]


def test_asset_runs_with_boto3_alone(tmp_path: Path) -> None:
    """Whatever else the handler imported would be missing in Lambda."""
    write_asset(tmp_path / "asset.zip", [runtime_files])
    shutil.unpack_archive(tmp_path / "asset.zip", tmp_path)
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import highwater.handlers.deploy.handler as d; "
        "assert d.__file__.startswith(sys.argv[1]); "
        "outside = {m.split('.')[0] for m in sys.modules} & {'aws_cdk', 'jsii', 'click', 'rich', 'highwater_lab'}; "
        "assert not outside, outside; print(d.handler.__name__)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", code, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "handler\n"), done.stderr
