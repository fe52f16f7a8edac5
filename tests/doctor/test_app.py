"""What the doctor reads of the real CDK's assemblies: stages, places, bootstraps, reservations and workers."""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
import pytest

from cdk_highwater import ThrottleAwareScaler
from highwater_lab.doctor import App
from tests.constructs.jobs import buffered_writes, paced_scan
from tests.constructs.template_view import scalable_table

IRELAND = cdk.Environment(account="111122223333", region="eu-west-1")
OHIO = cdk.Environment(account="111122223333", region="us-east-2")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    app = cdk.App(outdir=str(tmp_path_factory.mktemp("app")))
    stage = cdk.Stage(app, "Prod")
    jobs = cdk.Stack(stage, "Jobs", env=IRELAND)
    paced_scan(jobs, workers=17)
    buffered_writes(jobs, max_concurrency=3)
    shop = cdk.Stack(app, "Shop", env=IRELAND, synthesizer=cdk.DefaultStackSynthesizer(qualifier="shop"))
    events = scalable_table(shop, "Events", table_name="events")
    ThrottleAwareScaler(shop, "Scaler", reserved_concurrency=11).add_table(events)
    scalable_table(cdk.Stack(app, "West", env=OHIO), "Events")
    return Path(app.synth().directory)


@pytest.fixture(scope="module")
def app(folder: Path) -> App:
    return App.load(folder, "111122223333", "eu-west-1")


def test_stacks_of_stages_are_read_and_those_of_other_regions_left_out(app: App) -> None:
    assert sorted(table.name for table in app.listed.tables) == ["Prod/Jobs/Orders", "Shop/Events"]
    assert app.elsewhere == ("West",)


def test_each_qualifier_has_its_bootstrap_and_its_role(app: App) -> None:
    assert {(each.parameter, each.buckets) for each in app.bootstraps} == {
        (f"/cdk-bootstrap/{name}/version", (f"cdk-{name}-assets-111122223333-eu-west-1",))
        for name in ("hnb659fds", "shop")
    }
    assert {each.version for each in app.bootstraps} == {6}
    assert set(app.roles) == {
        f"arn:${{AWS::Partition}}:iam::111122223333:role/cdk-{name}-cfn-exec-role-111122223333-eu-west-1"
        for name in ("hnb659fds", "shop")
    }


def test_reservations_and_workers_are_counted(app: App) -> None:
    assert [(each.stacks, each.runs) for each in app.reservations] == [(("Shop",), 11)]
    # 17 of the scan, 3 of the queue
    assert app.workers == 20


def test_types_of_resources_are_known(app: App) -> None:
    assert {"AWS::DynamoDB::Table", "AWS::StepFunctions::StateMachine", "AWS::SQS::Queue"} < app.kinds
    registered = app.registered
    assert registered.keys() == {kind for kind in app.kinds if not kind.startswith(("Custom::", "AWS::CDK::"))}
    assert [len(registered[kind]) for kind in ("AWS::Lambda::Url", "AWS::SQS::Queue")] == [1, 4]
