"""What a template declares that is not read and may scale or make tables, what contradicts itself; what is neither."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import custom_resources

from cdk_highwater import BoostCoordinator, Capacity, HighWaterTable, ThrottleAwareScaler
from highwater_lab.template import Remark, RemarkKind, find_table, load_prior, load_templates, read_app
from tests.template.plans import UNKNOWN, action, configured, plan, policy, resource, saved, state, table, target

TABLE = {
    "Type": "AWS::DynamoDB::Table",
    "Properties": {"ProvisionedThroughput": {"ReadCapacityUnits": 5, "WriteCapacityUnits": 6}},
}
OF_ORDERS = {"ServiceNamespace": "dynamodb", "ResourceId": {"Fn::Sub": "table/${Orders}"}}
TRACKED = {
    "TargetValue": 55,
    "PredefinedMetricSpecification": {"PredefinedMetricType": "DynamoDBWriteCapacityUtilization"},
}
SDK = "arn:aws:scheduler:::aws-sdk"
# the table of plans
ORDERS = "aws_dynamodb_table.orders"


def _made(kind: str, **properties: Any) -> dict[str, Any]:
    return {"Type": kind, "Properties": properties}


def _target(index: str = "", **more: Any) -> dict[str, Any]:
    """The target of the writes of `Orders`, or of an index of it."""
    where = {"Fn::Sub": f"table/${{Orders}}{f'/index/{index}' if index else ''}"}
    dimension = f"dynamodb:{'index' if index else 'table'}:WriteCapacityUnits"
    return _made(
        "AWS::ApplicationAutoScaling::ScalableTarget",
        ServiceNamespace="dynamodb",
        ResourceId=where,
        ScalableDimension=dimension,
        MinCapacity=7,
        MaxCapacity=70,
        **more,
    )


def _policy(tracking: dict[str, Any] | None, of: str = "Writes") -> dict[str, Any]:
    """A policy of a target; by steps without *tracking*."""
    how = {"TargetTrackingScalingPolicyConfiguration": tracking} if tracking else {"StepScalingPolicyConfiguration": {}}
    return _made("AWS::ApplicationAutoScaling::ScalingPolicy", ScalingTargetId={"Ref": of}, **how)


def _schedule(call: str, **given: str) -> dict[str, Any]:
    """A schedule of a universal target, whose input is JSON."""
    return _made("AWS::Scheduler::Schedule", Target={"Arn": f"{SDK}:{call}", "Input": {"Fn::Sub": json.dumps(given)}})


def _calling(action: str, service: str = "DynamoDB") -> dict[str, Any]:
    """A custom resource as the CDK's AwsCustomResource writes it."""
    call = f'{{"service":"{service}","action":"{action}","parameters":{{"TableName":"'
    return _made("Custom::AWS", Create={"Fn::Join": ["", [call, {"Ref": "Orders"}, '"}}']]})


def _remarks(folder: Path, resources: dict[str, Any], **top: Any) -> tuple[Remark, ...]:
    """The remarks on a template of the tables `Orders` and `Carts` with these resources."""
    file = folder / "t.json"
    file.write_text(json.dumps({"Resources": {"Orders": TABLE, "Carts": TABLE, **resources}, **top}))
    return read_app(load_templates(file)).remarks


def _said(remarks: tuple[Remark, ...]) -> list[tuple[str, str, list[str]]]:
    return [(str(each.kind), each.text, list(each.tables)) for each in remarks]


# -- the catalogue


@pytest.mark.parametrize(
    ("made", "what", "tables"),
    [
        (
            _made("AWS::AutoScalingPlans::ScalingPlan", ScalingInstructions=[OF_ORDERS]),
            "is not read, and may scale Orders",
            ["Orders"],
        ),
        (
            _made(
                "AWS::AutoScalingPlans::ScalingPlan", ScalingInstructions=[OF_ORDERS, {"ResourceId": "table/others"}]
            ),
            "is not read, and may scale Orders",
            ["Orders"],
        ),
        (
            _made("AWS::AutoScalingPlans::ScalingPlan", ScalingInstructions=[{"ServiceNamespace": "dynamodb"}]),
            "is not read, and may scale tables",
            [],
        ),
        (
            _made("AwsCommunity::ApplicationAutoscaling::ScheduledAction", **OF_ORDERS),
            "is not read, and may scale Orders",
            ["Orders"],
        ),
        (_schedule("dynamodb:updateTable", TableName="${Carts}"), "is not read, and may scale Carts", ["Carts"]),
        (
            _schedule("applicationautoscaling:registerScalableTarget", ResourceId="table/${Orders}"),
            "is not read, and may scale Orders",
            ["Orders"],
        ),
        (
            _schedule("applicationautoscaling:putScheduledAction", ServiceNamespace="dynamodb"),
            "is not read, and may scale tables",
            [],
        ),
        (
            _made("Acme::DynamoDB::ScaledTable::MODULE", Name={"Ref": "Orders"}),
            "is a module, which is not read, and may make tables",
            [],
        ),
        (
            _made("AWS::CloudFormation::Stack", TemplateURL="https://example.com/t.yaml"),
            "is a stack whose template is not here, and may make tables",
            [],
        ),
        (
            _made("AWS::Serverless::Application", Location="https://example.com/t.yaml"),
            "is an application whose template is not here, and may make tables",
            [],
        ),
        (
            _made("Custom::DynamoDBReplica", TableName={"Ref": "Orders"}, Region="eu-west-1"),
            "makes a replica for replicationRegions, which is not paid for here; use the CDK's TableV2",
            ["Orders"],
        ),
        (_made("Acme::DynamoDB::Table", Name="more"), "is not read, and may make tables", []),
        (_calling("updateTable"), "makes calls of AWS's, which are not read, and may scale Orders", ["Orders"]),
        (
            _made("Custom::PutAwsSdkCall", Call="ApplicationAutoScaling.putScalingPolicy", Of={"Ref": "Carts"}),
            "makes calls of AWS's, which are not read, and may scale Carts",
            ["Carts"],
        ),
        (
            _made("Custom::Floor", Tables=[{"Fn::GetAtt": ["Orders", "Arn"]}, {"Ref": "Carts"}]),
            "is not read, and may scale Orders, Carts",
            ["Orders", "Carts"],
        ),
        (
            _made("AWS::CloudFormation::CustomResource", Table={"Ref": "Carts"}),
            "is not read, and may scale Carts",
            ["Carts"],
        ),
        (_made("Custom::Floor", Target={"Ref": "Writes"}), "is not read, and may scale Orders", ["Orders"]),
    ],
)
def test_resource_that_may_scale_or_make_tables_is_remarked(
    tmp_path: Path, made: dict[str, Any], what: str, tables: list[str]
) -> None:
    found = _remarks(tmp_path, {"Writes": _target(), "Odd": made})
    assert _said(found) == [("not read", f"Odd ({made['Type']}) {what}", tables)]


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(
            _made("AWS::AutoScalingPlans::ScalingPlan", ScalingInstructions=[{"ServiceNamespace": "ecs"}]),
            id="scaling plan of another service",
        ),
        pytest.param(
            _made("AwsCommunity::ApplicationAutoscaling::ScheduledAction", ServiceNamespace="ecs"),
            id="scheduled action of another service",
        ),
        pytest.param(
            _schedule("applicationautoscaling:registerScalableTarget", ServiceNamespace="ecs", ResourceId="service/a"),
            id="target of another service",
        ),
        pytest.param(_schedule("dynamodb:putItem", TableName="${Orders}"), id="schedule that puts an item"),
        pytest.param(_schedule("glue:updateTable", Name="orders"), id="table of Glue"),
        pytest.param(_calling("updateTable", "Glue"), id="the CDK's call of Glue"),
        pytest.param(_calling("putItem"), id="seed of a table"),
        pytest.param(_made("Custom::Certificate", Domain="example.com"), id="custom resource that names no table"),
        pytest.param(_made("Custom::S3AutoDeleteObjects", Of={"Ref": "Orders"}), id="custom resource of the CDK"),
        pytest.param(_made("Acme::Storage::Bucket", Of={"Ref": "Orders"}), id="registered type without tables"),
        pytest.param(_made("AWS::Lambda::Function", Of={"Ref": "Orders"}), id="function"),
        pytest.param(
            {**_made("Custom::Floor", Of={"Ref": "Orders"}), "Condition": "Never"}, id="condition that is false"
        ),
    ],
)
def test_what_neither_scales_nor_makes_tables_is_not_remarked(tmp_path: Path, made: dict[str, Any]) -> None:
    assert _remarks(tmp_path, {"Odd": made}, Conditions={"Never": {"Fn::Equals": ["a", "b"]}}) == ()


def test_seed_own_custom_resources_and_nested_stacks_of_the_cdk_are_not_remarked(tmp_path: Path) -> None:
    app = cdk.App(outdir=str(tmp_path / "cdk.out"))
    stack = cdk.Stack(app, "Shop", env=cdk.Environment(account="111122223333", region="eu-west-1"))
    key = dynamodb.Attribute(name="pk", type=dynamodb.AttributeType.STRING)
    units = Capacity.autoscaled(min_capacity=13, max_capacity=5_000)
    orders = HighWaterTable(stack, "Orders", partition_key=key, read=units, write=units)
    scaler = ThrottleAwareScaler(stack, "Scaler")
    scaler.add_table(orders)
    BoostCoordinator(stack, "Boosts", scaler=scaler)
    dynamodb.Table(cdk.NestedStack(stack, "Inner"), "Visits", partition_key=key, read_capacity=5, write_capacity=6)
    seed = custom_resources.AwsSdkCall(
        service="DynamoDB",
        action="putItem",
        parameters={"TableName": orders.table_name, "Item": {"pk": {"S": "first"}}},
        physical_resource_id=custom_resources.PhysicalResourceId.of("seed"),
    )
    custom_resources.AwsCustomResource(
        stack,
        "Seed",
        on_create=seed,
        policy=custom_resources.AwsCustomResourcePolicy.from_sdk_calls(
            resources=custom_resources.AwsCustomResourcePolicy.ANY_RESOURCE
        ),
    )
    app.synth()
    found = read_app(load_templates(tmp_path / "cdk.out"))
    assert {each.name for each in found.tables} == {"Shop/Orders", "Shop/Inner/Visits"}
    assert found.remarks == ()


# -- macros and loops


@pytest.mark.parametrize(
    ("transform", "named"),
    [
        ("MakeMany", ["MakeMany"]),
        (["AWS::LanguageExtensions", {"Name": "Acme::Sizes", "Parameters": {"Units": 7}}], ["Acme::Sizes"]),
        (["First", "Second"], ["First", "Second"]),
        ("AWS::Serverless-2016-10-31", []),
        (["AWS::LanguageExtensions", "AWS::Serverless-2016-10-31"], []),
    ],
)
def test_macro_of_an_account_is_remarked_and_those_of_aws_are_not(
    tmp_path: Path, transform: Any, named: list[str]
) -> None:
    what = "is a macro, which is not run here, and may make or change tables"
    assert _said(_remarks(tmp_path, {}, Transform=transform)) == [
        ("not read", f"Transform {name} {what}", []) for name in named
    ]


@pytest.mark.parametrize(
    ("resources", "said"),
    [
        (
            {"Fn::Transform": {"Name": "AWS::Include", "Parameters": {"Location": "s3://b/k"}}},
            ["Resources includes resources by Fn::Transform, which is not run here, and may make or change tables", []],
        ),
        (
            {"Orders": {**TABLE, "Properties": {**TABLE["Properties"], "Fn::Transform": {"Name": "Sizes"}}}},  # type: ignore[dict-item]
            ["Orders (AWS::DynamoDB::Table) is changed by Fn::Transform, which is not run here", ["Orders"]],
        ),
        # what it makes of an API concerns no table
        ({"Api": _made("AWS::ApiGateway::RestApi", Body={"Fn::Transform": {"Name": "AWS::Include"}})}, None),
    ],
    ids=["template", "table", "other"],
)
def test_transform_within_resources_is_remarked_where_it_concerns_tables(
    tmp_path: Path, resources: dict[str, Any], said: list[Any] | None
) -> None:
    assert _said(_remarks(tmp_path, resources)) == ([] if said is None else [("not read", *said)])


def test_loop_that_is_not_expanded_is_remarked_with_what_expands_it(tmp_path: Path) -> None:
    loop = {"Fn::ForEach::Shards": ["Name", {"Ref": "Names"}, {"${Name}Table": TABLE}]}
    top = {"Transform": "AWS::LanguageExtensions", "Parameters": {"Names": {"Type": "CommaDelimitedList"}}}
    remarks = _remarks(tmp_path, loop, **top)
    assert _said(remarks) == [
        (
            "not read",
            "Fn::ForEach::Shards is a loop that is not expanded, and may make tables: the values that it runs over are "
            "known only at deployment; give them with --parameter Names=A,B,C",
            [],
        )
    ]
    assert '"Names"' in remarks[0].content
    found = read_app(load_templates(tmp_path / "t.json"), {"Names": "X,Y"})
    assert [each.name for each in found.tables] == ["Orders", "Carts", "XTable", "YTable"]
    assert found.remarks == ()


def test_loop_of_another_form_says_what_it_needs(tmp_path: Path) -> None:
    (remark,) = _remarks(tmp_path, {"Fn::ForEach::Odd": ["Name", ["A"]]}, Transform="AWS::LanguageExtensions")
    assert remark.text == (
        "Fn::ForEach::Odd is a loop that is not expanded, and may make tables: needs an identifier, a collection and "
        "what to make of each"
    )


# -- policies, and what contradicts itself


@pytest.mark.parametrize(
    ("tracking", "what"),
    [
        (None, "scales by steps, which is not rehearsed: only target tracking is"),
        (
            {"TargetValue": 70, "CustomizedMetricSpecification": {"MetricName": "Requested", "Namespace": "Shop"}},
            "scales by a metric of its own, which is not rehearsed: only DynamoDB's own metrics are",
        ),
        (
            {
                "TargetValue": 70,
                "PredefinedMetricSpecification": {"PredefinedMetricType": "DynamoDBReadCapacityUtilization"},
            },
            "tracks DynamoDBReadCapacityUtilization for writes, so write traffic does not move their capacity: it is "
            "not rehearsed; set PredefinedMetricType to DynamoDBWriteCapacityUtilization",
        ),
    ],
)
def test_policy_that_is_not_rehearsed_is_remarked(tmp_path: Path, tracking: dict[str, Any] | None, what: str) -> None:
    where = "Track (AWS::ApplicationAutoScaling::ScalingPolicy)"
    remarks = _remarks(tmp_path, {"Writes": _target(), "Track": _policy(tracking)})
    assert _said(remarks) == [("not read", f"{where} {what}", ["Orders"])]


@pytest.mark.parametrize(
    ("resources", "text"),
    [
        (
            {"Writes": _target(), "First": _policy(TRACKED), "Second": _policy(TRACKED | {"TargetValue": 85})},
            "Second (AWS::ApplicationAutoScaling::ScalingPolicy) is a second policy of writes of the table on the same "
            "metric, beside First: AWS refuses it; keep one",
        ),
        (
            {"Writes": _target(), "More": _target()},
            "More (AWS::ApplicationAutoScaling::ScalableTarget) is a second scalable target for writes of the table, "
            "beside Writes: CloudFormation refuses the second; keep one",
        ),
        (
            {"Lost": _target("by_day")},
            "Lost (AWS::ApplicationAutoScaling::ScalableTarget) scales index by_day, which the table does not have; "
            "its indexes: none; remove it",
        ),
    ],
    ids=["policies", "targets", "index"],
)
def test_contradiction_is_remarked(tmp_path: Path, resources: dict[str, Any], text: str) -> None:
    kind = "two-targets" if "second scalable target" in text else "contradiction"
    remarks = _remarks(tmp_path, resources)
    assert _said(remarks) == [(kind, text, ["Orders"])]
    assert remarks[0].content == "", "nothing is compared"


def test_index_that_the_table_has_is_named_beside_the_one_that_it_lacks(tmp_path: Path) -> None:
    index = {
        "IndexName": "by_state",
        "ProvisionedThroughput": {"ReadCapacityUnits": 8, "WriteCapacityUnits": 9},
    }
    indexed = {**TABLE, "Properties": {**TABLE["Properties"], "GlobalSecondaryIndexes": [index]}}  # type: ignore[dict-item]
    remarks = _remarks(tmp_path, {"Orders": indexed, "Lost": _target("by_day"), "Right": _target("by_state")})
    assert [each.what for each in remarks] == [
        "scales index by_day, which the table does not have; its indexes: by_state; remove it"
    ]


def test_targets_and_policies_of_either_condition_are_no_contradiction(tmp_path: Path) -> None:
    resources = {
        "Writes": {**_target(), "Condition": "Is"},
        "Others": {**_target(), "Condition": "IsNot"},
        "First": {**_policy(TRACKED), "Condition": "Is"},
        "Second": {**_policy(TRACKED, "Others"), "Condition": "IsNot"},
    }
    conditions = {"Is": {"Fn::Equals": ["a", "a"]}, "IsNot": {"Fn::Not": [{"Condition": "Is"}]}}
    assert _remarks(tmp_path, resources, Conditions=conditions) == ()


# -- of one table


def test_notes_of_a_table_are_the_remarks_on_it_and_on_no_table(tmp_path: Path) -> None:
    made = {
        "Floor": _made("Custom::Floor", Of={"Ref": "Orders"}),
        "Other": _made("Custom::Floor", Of={"Ref": "Carts"}),
        "Any": _made("AWS::CloudFormation::Stack", TemplateURL="https://example.com/t.yaml"),
    }
    _remarks(tmp_path, made)
    notes = {name: find_table(load_templates(tmp_path / "t.json"), name=name).notes for name in ("Orders", "Carts")}
    anywhere = "Any (AWS::CloudFormation::Stack) is a stack whose template is not here, and may make tables"
    assert notes == {
        "Orders": ("Floor (Custom::Floor) is not read, and may scale Orders", anywhere),
        "Carts": ("Other (Custom::Floor) is not read, and may scale Carts", anywhere),
    }


def test_remark_has_the_stage_and_the_stack_of_its_template(tmp_path: Path) -> None:
    app = cdk.App(outdir=str(tmp_path / "cdk.out"))
    for name in ("Beta", "Prod"):
        stack = cdk.Stack(cdk.Stage(app, name), "Shop")
        cdk.CfnResource(stack, "More", type="Acme::DynamoDB::Table")
    app.synth()
    remarks = read_app(load_templates(tmp_path / "cdk.out")).remarks
    assert [each.key for each in remarks] == [
        (name, f"{name}-Shop", "More (Acme::DynamoDB::Table)") for name in ("Beta", "Prod")
    ]


# -- Terraform


@pytest.mark.parametrize(
    ("made", "what", "tables"),
    [
        (
            resource(
                "aws_autoscalingplans_scaling_plan.odd",
                scaling_instruction=[{"service_namespace": "dynamodb", "resource_id": "table/orders"}],
            ),
            f"is not read, and may scale {ORDERS}",
            [ORDERS],
        ),
        (
            resource(
                "aws_scheduler_schedule.odd",
                target=[{"arn": f"{SDK}:dynamodb:updateTable", "input": '{"TableName":"orders"}'}],
            ),
            f"is not read, and may scale {ORDERS}",
            [ORDERS],
        ),
        (
            resource(
                "awscc_applicationautoscaling_scalable_target.odd",
                service_namespace="dynamodb",
                resource_id="table/orders",
            ),
            f"is not read, and may scale {ORDERS}",
            [ORDERS],
        ),
        (
            resource("awscc_applicationautoscaling_scaling_policy.odd", service_namespace="dynamodb"),
            "is not read, and may scale tables",
            [],
        ),
        (
            resource("aws_cloudformation_stack.odd", template_url="https://example.com/t.yaml"),
            "is a stack whose template is not here, and may make tables",
            [],
        ),
        (
            resource("aws_cloudformation_stack_set.odd"),
            "is a stack whose template is not here, and may make tables",
            [],
        ),
        (
            resource("aws_cloudformation_stack_set_instance.odd"),
            "is a stack whose template is not here, and may make tables",
            [],
        ),
        (
            resource("aws_serverlessapplicationrepository_cloudformation_stack.odd"),
            "is an application whose template is not here, and may make tables",
            [],
        ),
        (resource("awscc_dynamodb_table.odd", table_name="orders-2"), "is not read, and may make tables", []),
        (resource("awscc_dynamodb_global_table.odd"), "is not read, and may make tables", []),
        (
            resource("aws_dynamodb_global_table.odd", name="orders"),
            "is a global table of version 2017, which is not read: its replicas are not paid for here",
            [ORDERS],
        ),
        (
            resource("aws_dynamodb_table_replica.odd", global_table_arn="arn:aws:dynamodb:x:1:table/orders"),
            "is not read: its region is not known, and the replica is not paid for here",
            [],
        ),
        (
            resource("aws_dynamodb_global_secondary_index.odd", table_name="others", index_name="x"),
            "is not read: its table is not in the plan, or known only after apply",
            [],
        ),
        (
            action("aws_appautoscaling_scheduled_action.odd", resource_id="table/others"),
            "is not read: its target is not in the plan",
            [],
        ),
        (
            policy("aws_appautoscaling_policy.odd", resource_id=UNKNOWN),
            "is not read: which target it is of is known only after apply",
            [],
        ),
        (
            policy("aws_appautoscaling_policy.odd", target_tracking_scaling_policy_configuration=[]),
            "scales by steps, which is not rehearsed: only target tracking is",
            [ORDERS],
        ),
        (
            policy(
                "aws_appautoscaling_policy.odd",
                tracking={
                    "predefined_metric_specification": [],
                    "customized_metric_specification": [{"metric_name": "Requested", "namespace": "Shop"}],
                },
            ),
            "scales by a metric of its own, which is not rehearsed: only DynamoDB's own metrics are",
            [ORDERS],
        ),
    ],
    ids=lambda value: value["type"] if isinstance(value, dict) else None,
)
def test_resource_of_a_plan_is_remarked(tmp_path: Path, made: dict[str, Any], what: str, tables: list[str]) -> None:
    remarks = read_app(load_templates(saved(tmp_path, plan(table(), target(), made)))).remarks
    assert _said(remarks) == [("not read", f"{made['address']} {what}", tables)]


@pytest.mark.parametrize(
    "made",
    [
        resource("aws_autoscalingplans_scaling_plan.odd", scaling_instruction=[{"service_namespace": "ecs"}]),
        resource("awscc_applicationautoscaling_scalable_target.odd", service_namespace="ecs"),
        resource("aws_scheduler_schedule.odd", target=[{"arn": "arn:aws:lambda:x:1:function:f", "input": "orders"}]),
        resource("aws_s3_bucket.odd", bucket="orders"),
    ],
    ids=lambda value: value["type"],
)
def test_resource_of_a_plan_that_scales_no_table_is_not_remarked(tmp_path: Path, made: dict[str, Any]) -> None:
    assert read_app(load_templates(saved(tmp_path, plan(table(), made)))).remarks == ()


def test_resource_of_a_plan_names_the_table_that_its_configuration_refers_to(tmp_path: Path) -> None:
    kind = "awscc_applicationautoscaling_scalable_target"
    root = {
        "resources": [
            configured("aws_dynamodb_table", "orders"),
            configured("aws_dynamodb_table", "carts"),
            configured(kind, "odd", resource_id=["aws_dynamodb_table.carts.name", "aws_dynamodb_table.carts"]),
        ]
    }
    carts = table("aws_dynamodb_table.carts", name="carts")
    odd = resource(f"{kind}.odd", service_namespace="dynamodb", resource_id=UNKNOWN)
    (remark,) = read_app(load_templates(saved(tmp_path, plan(table(), carts, odd, root=root)))).remarks
    assert remark.tables == ("aws_dynamodb_table.carts",)


@pytest.mark.parametrize(
    ("resources", "text"),
    [
        (
            (target(), policy(), policy("aws_appautoscaling_policy.more")),
            "aws_appautoscaling_policy.more is a second policy of writes of the table on the same metric, beside "
            "aws_appautoscaling_policy.write: AWS refuses it; keep one",
        ),
        (
            (target(), target("aws_appautoscaling_target.more")),
            "aws_appautoscaling_target.more is a second scalable target for writes of the table, beside "
            "aws_appautoscaling_target.write: both are one target in AWS, with the bounds that are applied last, and "
            "gone with either; keep one",
        ),
        (
            (target(resource_id="table/orders/index/by_day", scalable_dimension="dynamodb:index:WriteCapacityUnits"),),
            "aws_appautoscaling_target.write scales index by_day, which the table does not have; its indexes: none; "
            "remove it",
        ),
    ],
    ids=["policies", "targets", "index"],
)
def test_contradiction_of_a_plan_is_remarked(tmp_path: Path, resources: tuple[dict[str, Any], ...], text: str) -> None:
    kind = "two-targets" if "second scalable target" in text else "contradiction"
    remarks = read_app(load_templates(saved(tmp_path, plan(table(), *resources)))).remarks
    assert _said(remarks) == [(kind, text, [ORDERS])]


def test_same_is_remarked_of_a_plan_its_prior_state_and_a_state(tmp_path: Path) -> None:
    made = (table(), resource("awscc_dynamodb_table.odd", table_name="carts"))
    file = saved(tmp_path, plan(*made, prior=made))
    of_state = saved(tmp_path, state(*made), "state.json")
    found = [
        read_app(templates).remarks for templates in (load_templates(file), load_prior(file), load_templates(of_state))
    ]
    assert [[(each.kind, each.text) for each in remarks] for remarks in found] == [
        [(RemarkKind.NOT_READ, "awscc_dynamodb_table.odd is not read, and may make tables")]
    ] * 3
    assert len({each.key for remarks in found for each in remarks}) == 1
