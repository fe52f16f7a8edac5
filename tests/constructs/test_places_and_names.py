"""Tables of other stacks, regions and names: what follows them, and what is refused at synth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_dynamodb as dynamodb

from cdk_highwater import BoostCoordinator, GlobalSecondaryIndex, PreWarm, ThrottleAwareScaler, manage_capacity
from highwater.core import Dimension
from highwater.core.names import TargetName
from tests.constructs.template_view import (
    READ,
    WRITE,
    TemplateView,
    global_table,
    key,
    messages,
    new_app,
    new_stack,
    placed_stack,
    scalable_table,
)

_WARM = dynamodb.WarmThroughput(read_units_per_second=400, write_units_per_second=5_000)
_FAR = "arn:aws:dynamodb:us-east-1:111122223333:table/orders"
_FOREIGN = "arn:aws:dynamodb:eu-west-1:999922223333:table/orders"


def _scaler_alarms(stack: cdk.Stack) -> dict[str, Any]:
    alarms = TemplateView(stack).named("AWS::CloudWatch::Alarm")
    return {name: alarm["Properties"] for name, alarm in alarms.items() if "AlarmName" in alarm["Properties"]}


def test_alarms_move_with_their_table_from_one_scaler_to_another() -> None:
    """1: CloudFormation creates before it deletes, and an alarm's name is taken until then."""

    def alarms(owner: str) -> dict[str, Any]:
        stack = new_stack()
        scalers = {name: ThrottleAwareScaler(stack, name) for name in ("First", "Second")}
        scalers[owner].add_table(scalable_table(stack))
        return _scaler_alarms(stack)

    before, after = alarms("First"), alarms("Second")
    assert before.keys() == after.keys()
    assert len(before) == 2
    for name, alarm in before.items():
        assert alarm["AlarmName"] == after[name]["AlarmName"]
        assert alarm["AlarmActions"] != after[name]["AlarmActions"]


@pytest.mark.parametrize(("table", "index"), [(150, 150), (255, 255), (255, None), (161, 77), (160, 76)])
def test_alarms_have_names_that_cloudwatch_takes_and_the_scaler_finds(table: int, index: int | None) -> None:
    """15: both at synth and where the function asks for them."""
    name, index_name = "t" * table, None if index is None else "i" * index
    stack = new_stack()
    indexes = [] if index_name is None else [GlobalSecondaryIndex(index_name=index_name, partition_key=key("day"))]
    ThrottleAwareScaler(stack, "Scaler").add_table(scalable_table(stack, table_name=name, indexes=indexes))
    found = {alarm["AlarmName"] for alarm in _scaler_alarms(stack).values()}
    wanted = {TargetName(name, of, dimension).alarm for of in {None, index_name} for dimension in Dimension}
    assert found == wanted
    assert max(map(len, found)) <= 255
    assert len(found) == (2 if index is None else 4)


def test_alarm_of_a_long_index_does_not_depend_on_the_rest_of_the_app() -> None:
    """15: a table without a name of its own is a number in the text at synth, which other constructs move."""
    found = []
    for others in (0, 5):
        stack = new_stack()
        for number in range(others):
            dynamodb.Table(stack, f"Other{number}", partition_key=key())
        index = GlobalSecondaryIndex(index_name="i" * 240, partition_key=key("day"))
        ThrottleAwareScaler(stack, "Scaler").add_table(scalable_table(stack, indexes=[index]))
        found.append([alarm["AlarmName"] for alarm in _scaler_alarms(stack).values()])
    assert found[0] == found[1]
    assert found[0][2]["Fn::Join"][1][2] == TargetName("", "i" * 240, Dimension.READ).alarm.removeprefix("Highwater ")


def test_name_that_cloudformation_makes_too_long_for_alarms_is_refused() -> None:
    stack = new_stack("S" * 100)
    ThrottleAwareScaler(stack, "Scaler").add_table(scalable_table(stack, "Orders" * 10))
    (told,) = messages(stack, "error")
    assert told.split(": ", 1)[1] == (
        "the table: got a name of up to 184 characters, which CloudFormation makes of those of the stack and the "
        "table, allowed: up to 160 characters, so that the names of a scaler's alarms fit CloudWatch; give it a "
        "table_name, or a shorter id [highwater:scaledNameTooLong]"
    )


def _manage(stack: cdk.Stack, table: dynamodb.ITable) -> None:
    manage_capacity(table, scope=stack, read=READ, write=WRITE)


def _warm(stack: cdk.Stack, table: dynamodb.ITable) -> None:
    PreWarm(stack, "Warm", table=table, warm_throughput=_WARM)


def _scale_directly(stack: cdk.Stack, table: dynamodb.ITable) -> None:
    ThrottleAwareScaler(stack, "Scaler").add_direct_table(table, read=READ, write=WRITE)


@pytest.mark.parametrize("use", [_manage, _warm, _scale_directly])
def test_stack_that_uses_a_table_by_its_name_is_deployed_after_the_tables(use: Callable[..., None]) -> None:
    """23: its template has no reference that would say so, and the table's own template stays as it is."""
    app = new_app()
    operations, shop = placed_stack(app, "Operations"), placed_stack(app, "Shop")
    use(operations, dynamodb.Table(shop, "Jobs", partition_key=key(), table_name="jobs"))
    assert [stack.stack_name for stack in operations.dependencies] == ["Shop"]
    template, view = TemplateView(shop).template, TemplateView(operations)
    assert {resource["Type"] for resource in template["Resources"].values()} == {"AWS::DynamoDB::Table"}
    assert "Outputs" not in template, "a literal name needs no export"
    handlers = [each["Properties"]["Handler"] for each in view.of_type("AWS::Lambda::Function")]
    assert handlers.count("highwater.handlers.deploy.handler.handler") == (use is not _scale_directly)
    named = {target.properties["ResourceId"] for target in view.targets.values()}
    assert named == ({"table/jobs"} if use is _manage else set())


OTHER_REGION = (
    "the table is in region us-east-1 and the stack in eu-west-1, where a table of the same name would be scaled; "
    "manage the table in a stack of its own region [highwater:otherRegion]"
)
OTHER_ACCOUNT = (
    "the table is in account 999922223333 and the stack in 111122223333, where a table of the same name would be "
    "scaled; manage the table in a stack of its own account [highwater:otherAccount]"
)


@pytest.mark.parametrize(
    ("use", "arn", "told"),
    [
        pytest.param(_manage, _FAR, f"Shop/Orders: the table: {OTHER_REGION}", id="managed-in-another-region"),
        pytest.param(_manage, _FOREIGN, f"Shop/Orders: the table: {OTHER_ACCOUNT}", id="managed-in-another-account"),
        # its namesake in the stack's region would be warmed, which is charged
        pytest.param(_warm, _FAR, f"Shop/Warm: the table: {OTHER_REGION}", id="warmed-in-another-region"),
        # the role of the scaler has no permission in another account
        pytest.param(_scale_directly, _FOREIGN, f"Shop/Scaler: the table: {OTHER_ACCOUNT}", id="direct-elsewhere"),
    ],
)
def test_table_of_another_place_is_refused(use: Callable[..., None], arn: str, told: str) -> None:
    """14: a namesake in the stack's own region would be scaled."""
    stack = placed_stack()
    use(stack, dynamodb.Table.from_table_arn(stack, "Orders", arn))
    assert messages(stack, "error") == [told]
    assert TemplateView(stack).targets == {}


def _scale(stack: cdk.Stack, table: object) -> None:
    ThrottleAwareScaler(stack, "Scaler").add_table(table)


def _coordinate(stack: cdk.Stack, table: object) -> None:
    BoostCoordinator(stack, "Boosts").add_table(table)


@pytest.mark.parametrize("use", [_scale, _coordinate])
def test_function_of_another_account_is_refused(use: Callable[..., None]) -> None:
    """Its role has no permission for the table, and its alarms would watch a namesake."""
    app = new_app()
    shop = placed_stack(app, "Shop")
    operations = cdk.Stack(app, "Operations", env=cdk.Environment(account="999922223333", region="eu-west-1"))
    table = dynamodb.Table(shop, "Orders", partition_key=key(), table_name="orders", read_capacity=7, write_capacity=9)
    use(operations, manage_capacity(table, read=READ, write=WRITE))
    (told,) = messages(shop, "error")
    assert told.endswith(
        "the table: the table is in account 111122223333 and the stack in 999922223333, where a table of the same name "
        "would be scaled; manage the table in a stack of its own account [highwater:otherAccount]"
    )


def test_table_without_targets_is_scaled_in_any_region_of_the_account() -> None:
    """14: the scaler's plan names the region."""
    stack = placed_stack()
    _scale_directly(stack, dynamodb.Table.from_table_arn(stack, "Orders", _FAR))
    assert messages(stack, "error") == []
    assert TemplateView(stack).properties_of("AWS::SSM::Parameter")["Name"].endswith("/us-east-1/orders")


def test_table_of_a_region_in_a_stack_without_one_is_warned_about() -> None:
    """14: synth cannot know."""
    stack = new_stack()
    manage_capacity(dynamodb.Table.from_table_arn(stack, "Orders", _FAR), read=READ, write=WRITE)
    told = messages(stack, "warning")
    assert (
        "Shop/Orders: the table: the table's ARN names region us-east-1, and the stack's region is known only at "
        "deploy time; in another region, a table of the same name would be scaled; give the stack an env "
        "[highwater:regionUnknown]"
    ) in told


def test_replica_that_is_added_after_the_plan_is_refused() -> None:
    """10: the CDK puts the stack's own region last, and the settings of reads go by the place in the list."""
    app = new_app()
    stack = placed_stack(app)
    table = global_table(stack, replicas=[dynamodb.ReplicaTableProps(region="us-east-1")])
    manage_capacity(table, read=READ, write=WRITE)
    assert messages(stack, "error") == []
    table.add_replica(region="ap-south-1")
    app.synth(force=True)
    (told,) = messages(stack, "error")
    assert told == (
        "Shop/World: replicas: the table has 3 replicas, and had 2 when its capacity was declared, so the capacity is "
        "that of other replicas; add all replicas before manage_capacity [highwater:replicaNotScaled]"
    )


def test_scaler_in_a_nested_stack_of_a_stack_with_a_long_name_has_a_name() -> None:
    """15."""
    nested = [cdk.NestedStack(new_stack("S" * 120), id) for id in ("A", "B")]
    names = {ThrottleAwareScaler(stack, "Scaler").scaler_name for stack in nested}
    assert len(names) == 2
    assert max(map(len, names)) <= 80
