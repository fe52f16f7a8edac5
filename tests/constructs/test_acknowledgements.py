"""Warnings that are intended are acknowledged, through either class of the CDK, before or after they are found."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import aws_cdk as cdk
import pytest
from constructs import IConstruct

from cdk_highwater import Capacity, GlobalSecondaryIndex, HighWaterMark
from cdk_highwater.support.nag import annotate
from highwater.core.findings import caution, remark
from tests.cdk_cli import ROOT
from tests.constructs.template_view import EVERY_TABLE_SAYS, key, messages, new_app, new_stack, scalable_table

Acknowledge = Callable[[IConstruct], None]
ID = "highwater:indexBelowTable"
INDEXES = [
    GlobalSecondaryIndex(
        index_name="rare", partition_key=key("r"), write=Capacity.autoscaled(min_capacity=4, max_capacity=50)
    )
]


def _by_validations(id: str) -> Acknowledge:
    return lambda scope: cdk.Validations.of(scope).acknowledge(cdk.Acknowledgment(id=id, reason="few are rare"))


def _by_annotations(scope: IConstruct) -> None:
    cdk.Annotations.of(scope).acknowledge_warning(ID, "few are rare")


WAYS = pytest.mark.parametrize(
    "acknowledge",
    [_by_validations(ID), _by_validations(f"Annotation::{ID}"), _by_annotations],
    ids=["by its id", "by the id that the CLI prints", "by Annotations"],
)


def _shop() -> tuple[cdk.App, cdk.Stack]:
    app = new_app()
    return app, cdk.Stack(app, "Shop")


@WAYS
@pytest.mark.parametrize("place", ["app", "stack", "table"])
def test_warning_is_silenced_afterwards_on_its_construct_and_above_it(acknowledge: Acknowledge, place: str) -> None:
    app, stack = _shop()
    table = scalable_table(stack, indexes=INDEXES, high_water_mark=HighWaterMark.none())
    acknowledge({"app": app, "stack": stack, "table": table}[place])
    assert messages(stack, "warning") == []


def test_warning_that_nobody_acknowledges_is_told_once() -> None:
    stack = new_stack()
    scalable_table(stack, indexes=INDEXES, high_water_mark=HighWaterMark.none())
    (told,) = messages(stack, "warning")
    assert told.endswith(f" [{ID}]")


_WARNING = caution("indexBelowTable", "the index", "it is low", "raise it")


@WAYS
@pytest.mark.parametrize("place", ["app", "stack", "construct"])
def test_warning_is_silenced_before_it_is_found(acknowledge: Acknowledge, place: str) -> None:
    """As for what is found at the end of synth. The CDK forgets what Annotations acknowledges for a whole app."""
    app, stack = _shop()
    topic = cdk.CfnResource(stack, "Topic", type="AWS::SNS::Topic")
    acknowledge({"app": app, "stack": stack, "construct": topic}[place])
    assert annotate(topic, [_WARNING])
    is_forgotten = acknowledge is _by_annotations and place == "app"
    assert messages(stack, "warning") == [_WARNING.text("Shop/Topic")] * is_forgotten
    assert [each.node.id for each in topic.node.children] == []


@WAYS
def test_acknowledgement_is_for_its_place_and_its_id_only(acknowledge: Acknowledge) -> None:
    _, stack = _shop()
    topics = [cdk.CfnResource(stack, f"Topic{number}", type="AWS::SNS::Topic") for number in (1, 2)]
    other = caution("pastWindow", "window 'load'", "it is over", "remove it")
    acknowledge(topics[0])
    annotate(topics[0], [other])
    annotate(topics[1], [_WARNING])
    assert messages(stack, "warning") == [other.text("Shop/Topic1"), _WARNING.text("Shop/Topic2")]


def test_information_is_silenced_by_annotations() -> None:
    _, stack = _shop()
    topic = cdk.CfnResource(stack, "Topic", type="AWS::SNS::Topic")
    told = remark("warmUpCharge", "high-water mark", "it costs $1", "leave it out")
    annotate(topic, [told])
    assert messages(stack, "info") == [told.text("Shop/Topic")]
    cdk.Annotations.of(topic).acknowledge_info("highwater:warmUpCharge")
    assert cdk.Stage.of(stack).synth(force=True).get_stack_artifact("Shop").messages == []  # type: ignore[union-attr]


_APP = f"""\
import sys
import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from cdk_highwater import Capacity, GlobalSecondaryIndex, HighWaterMark, HighWaterTable

app = cdk.App()
stack = cdk.Stack(app, "Shop")
key = dynamodb.Attribute(name="id", type=dynamodb.AttributeType.STRING)
low = Capacity.autoscaled(min_capacity=4, max_capacity=50)
table = HighWaterTable(
    stack,
    "Orders",
    partition_key=key,
    read=Capacity.autoscaled(min_capacity=4, max_capacity=2 if "wrong" in sys.argv else 50),
    write=Capacity.autoscaled(min_capacity=41, max_capacity=50),
    indexes=[GlobalSecondaryIndex(index_name="rare", partition_key=key, write=low)],
    high_water_mark=HighWaterMark.none(),
)
if "acknowledged" in sys.argv:
    cdk.Validations.of(table).acknowledge(cdk.Acknowledgment(id="Annotation::{ID}", reason="few are rare"))
app.synth()
"""


@pytest.mark.cloud
@pytest.mark.parametrize(
    ("how", "code", "told"),
    [
        ("as-it-is", 1, f"   Shop/Orders\n   Acknowledge with 'Annotation::{ID}'\n"),
        ("acknowledged", 0, ""),
        ("wrong", 1, "   Shop/Orders\n   Rule Annotation::highwater:maxBelowMin\n"),
    ],
)
def test_cdk_synth_prints_findings_and_is_content_when_they_are_acknowledged_as_it_says(
    tmp_path: Path, how: str, code: int, told: str
) -> None:
    """In strict mode warnings fail too."""
    (tmp_path / "app.py").write_text(_APP)
    (tmp_path / "cdk.json").write_text(json.dumps({"app": f"{sys.executable} app.py {how}"}))
    done = subprocess.run(
        [ROOT / "node_modules" / ".bin" / "cdk", "synth", "--quiet", "--strict", "--no-notices", "--ci"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    printed = done.stdout + done.stderr
    assert done.returncode == code, printed
    assert told in printed
    ids = [each.strip("[]") for each in EVERY_TABLE_SAYS]
    others = [line for line in printed.splitlines() if "highwater:" in line and not any(id in line for id in ids)]
    assert bool(others) == bool(told), printed
    assert "[ack:" not in printed
