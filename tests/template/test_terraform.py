"""Reading `terraform show -json`: the same tables as the template of CloudFormation that would make them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from highwater_lab.simulation import TableSetup
from highwater_lab.template import TemplateError, find_table, load_prior, load_templates, read_app, tables_called
from tests.template.plans import INDEX, UNKNOWN, action, configured, plan, policy, resource, saved, state, table, target

Document = dict[str, Any]
TARGET, POLICY = "AWS::ApplicationAutoScaling::ScalableTarget", "AWS::ApplicationAutoScaling::ScalingPolicy"
BOUNDS = {
    f"highwater:{name}": str(units) for units, name in enumerate(("read-min", "write-min", "read-max", "write-max"), 8)
}
WRITE = {"ResourceId": "table/orders", "ScalableDimension": "dynamodb:table:WriteCapacityUnits"}
TRACKING = {
    "TargetValue": 65,
    "ScaleInCooldown": 61,
    "ScaleOutCooldown": 62,
    "PredefinedMetricSpecification": {"PredefinedMetricType": "DynamoDBWriteCapacityUtilization"},
}


def _plain(setup: TableSetup) -> TableSetup:
    return replace(setup, name="", notes=())


def _cfn(kind: str = "AWS::DynamoDB::Table", **properties: Any) -> Document:
    given = {"TableName": "orders", "ProvisionedThroughput": {"ReadCapacityUnits": 5, "WriteCapacityUnits": 6}}
    return {"Type": kind, "Properties": given | properties}


def _scaled(**properties: Any) -> Document:
    return {"Type": TARGET, "Properties": WRITE | {"MinCapacity": 7, "MaxCapacity": 70} | properties}


def _tracked(**configuration: Any) -> Document:
    return {
        "Type": POLICY,
        "Properties": WRITE | {"TargetTrackingScalingPolicyConfiguration": TRACKING | configuration},
    }


def _cfn_action(**members: Any) -> Document:
    return {
        "ScheduledActionName": "load",
        "Schedule": "cron(0 5 * * ? *)",
        "Timezone": "America/New_York",
        "ScalableTargetAction": {"MinCapacity": 40},
    } | members


CFN_INDEX = {
    "IndexName": "by_state",
    "ProvisionedThroughput": {"ReadCapacityUnits": 21, "WriteCapacityUnits": 22},
    "WarmThroughput": {"ReadUnitsPerSecond": 14_000, "WriteUnitsPerSecond": 4_100},
}
FEATURES = {
    "provisioned": ([table()], [_cfn()]),
    "on demand, whose state has zeros": (
        [table(billing_mode="PAY_PER_REQUEST", read_capacity=0, write_capacity=0)],
        [{"Type": "AWS::DynamoDB::Table", "Properties": {"TableName": "orders", "BillingMode": "PAY_PER_REQUEST"}}],
    ),
    "table class": (
        [table(table_class="STANDARD_INFREQUENT_ACCESS")],
        [_cfn(TableClass="STANDARD_INFREQUENT_ACCESS")],
    ),
    "warm throughput": (
        [table(warm_throughput=[{"read_units_per_second": 13_000, "write_units_per_second": 5_000}])],
        [_cfn(WarmThroughput={"ReadUnitsPerSecond": 13_000, "WriteUnitsPerSecond": 5_000})],
    ),
    "tags": (
        [table(tags={"highwater:managed": "direct", **BOUNDS})],
        [_cfn(Tags=[{"Key": key, "Value": value} for key, value in {"highwater:managed": "direct", **BOUNDS}.items()])],
    ),
    "warm throughput that only apply makes": ([table(warm_throughput=UNKNOWN)], [_cfn()]),
    "on-demand maximums": (
        [
            table(
                billing_mode="PAY_PER_REQUEST",
                on_demand_throughput=[{"max_read_request_units": 900, "max_write_request_units": -1}],
                global_secondary_index=[INDEX | {"on_demand_throughput": [{"max_read_request_units": 70}]}],
            )
        ],
        [
            _cfn(
                BillingMode="PAY_PER_REQUEST",
                OnDemandThroughput={"MaxReadRequestUnits": 900, "MaxWriteRequestUnits": -1},
                ProvisionedThroughput={},
                GlobalSecondaryIndexes=[
                    CFN_INDEX | {"OnDemandThroughput": {"MaxReadRequestUnits": 70}, "ProvisionedThroughput": {}}
                ],
            )
        ],
    ),
    "index": ([table(global_secondary_index=[INDEX])], [_cfn(GlobalSecondaryIndexes=[CFN_INDEX])]),
    "index that is a resource": (
        [
            table(global_secondary_index=[]),
            resource(
                "aws_dynamodb_global_secondary_index.by_state",
                table_name="orders",
                index_name="by_state",
                provisioned_throughput=[{"read_capacity_units": 21, "write_capacity_units": 22}],
                warm_throughput={"read_units_per_second": 14_000, "write_units_per_second": 4_100},
            ),
        ],
        [_cfn(GlobalSecondaryIndexes=[CFN_INDEX])],
    ),
    "target": ([table(), target()], [_cfn(), _scaled()]),
    "target of an index": (
        [
            table(global_secondary_index=[INDEX]),
            target(resource_id="table/orders/index/by_state", scalable_dimension="dynamodb:index:ReadCapacityUnits"),
        ],
        [
            _cfn(GlobalSecondaryIndexes=[CFN_INDEX]),
            _scaled(ResourceId="table/orders/index/by_state", ScalableDimension="dynamodb:index:ReadCapacityUnits"),
        ],
    ),
    "target of another service": (
        [
            table(),
            target(service_namespace="ecs", resource_id="service/a/b", scalable_dimension="ecs:service:DesiredCount"),
        ],
        [_cfn()],
    ),
    "policy": ([table(), target(), policy()], [_cfn(), _scaled(), _tracked()]),
    "policy that never lowers": (
        [table(), target(), policy(tracking={"disable_scale_in": True, "target_value": 70.4})],
        [_cfn(), _scaled(), _tracked(DisableScaleIn=True, TargetValue=70.4)],
    ),
    "policy on another metric": (
        [table(), target(), policy(tracking={"customized_metric_specification": [{"metric_name": "x"}]})],
        [_cfn(), _scaled(), _tracked(CustomizedMetricSpecification={"MetricName": "x"})],
    ),
    "policy by steps": (
        [table(), target(), policy(target_tracking_scaling_policy_configuration=[], policy_type="StepScaling")],
        [_cfn(), _scaled(), {"Type": POLICY, "Properties": WRITE}],
    ),
    "scheduled action": ([table(), target(), action()], [_cfn(), _scaled(ScheduledActions=[_cfn_action()])]),
    "scheduled actions of all forms": (
        [
            table(),
            target(),
            action(schedule="at(2026-11-02T05:00:00)", scalable_target_action=[{"max_capacity": "90"}]),
            action(
                "aws_appautoscaling_scheduled_action.every",
                name="every",
                schedule="rate(2 hours)",
                timezone="UTC",
                start_time="2026-11-01T00:00:00Z",
                end_time="2026-12-01T00:00:00Z",
            ),
        ],
        [
            _cfn(),
            _scaled(
                ScheduledActions=[
                    _cfn_action(Schedule="at(2026-11-02T05:00:00)", ScalableTargetAction={"MaxCapacity": 90}),
                    _cfn_action(
                        ScheduledActionName="every",
                        Schedule="rate(2 hours)",
                        Timezone="UTC",
                        StartTime="2026-11-01T00:00:00Z",
                        EndTime="2026-12-01T00:00:00Z",
                    ),
                ]
            ),
        ],
    ),
    "only scaled": ([target(), policy()], [_scaled(), _tracked()]),
}


@pytest.mark.parametrize("feature", FEATURES)
def test_plan_is_read_as_the_template_that_makes_the_same(feature: str, tmp_path: Path) -> None:
    resources, same = FEATURES[feature]
    template = {"Resources": {f"Each{number}": each for number, each in enumerate(same)}}
    wanted = find_table(load_templates(saved(tmp_path, template, "t.json")))
    copied = json.loads(json.dumps(plan(*resources)))
    assert _plain(find_table(load_templates(saved(tmp_path, copied)))) == _plain(wanted)
    # a state has the same, but nothing that is unknown
    assert _plain(find_table(load_templates(saved(tmp_path, state(*resources))))) == _plain(wanted)


def test_replicas_are_those_of_a_global_table(tmp_path: Path) -> None:
    replicas = [{"region_name": "eu-west-1"}, {"region_name": "ap-south-1"}]
    here, there = ("aws_appautoscaling_target.here", "aws_appautoscaling_target.there")
    reads = {"scalable_dimension": "dynamodb:table:ReadCapacityUnits"}
    planned = plan(
        table(replica=replicas, table_class="STANDARD", global_secondary_index=[INDEX], region="us-east-1"),
        target(here, min_capacity=31, region="us-east-1", **reads),
        target(there, min_capacity=47, region="eu-west-1", **reads),
        target("aws_appautoscaling_target.write", region="us-east-1"),
    )
    listed = read_app(load_templates(saved(tmp_path, planned))).tables
    assert [each.name for each in listed] == ["aws_dynamodb_table.orders"], "a replica's target is no table of its own"
    setup = listed[0].setup
    assert setup is not None
    assert setup.region == "us-east-1"
    assert [(each.region, each.read_units) for each in setup.replicas] == [
        ("eu-west-1", 47 + 21),
        ("ap-south-1", 31 + 21),
    ]
    assert (setup.resources[0].read.min, setup.resources[0].write.max) == (31, 70)
    assert setup.notes == (
        "aws_dynamodb_table.orders has 3 replicas: us-east-1 is rehearsed, and all are paid for; eu-west-1, ap-south-1 "
        "with the same writes, and with reads at their floors, as their own reads are not known",
    )


def test_replica_of_a_region_that_is_not_known_is_told_in_words(tmp_path: Path) -> None:
    setup = find_table(load_templates(saved(tmp_path, plan(table(replica=[{"region_name": "eu-west-1"}])))))
    assert setup.region is None
    (note,) = (each for each in setup.notes if "replicas" in each)
    assert note == (
        "aws_dynamodb_table.orders has 2 replicas: that of its own region, which is not known, is rehearsed, and all "
        "are paid for; eu-west-1 with the same writes, and with reads at their floors, as their own reads are not known"
    )


def test_replicas_of_an_on_demand_table(tmp_path: Path) -> None:
    planned = plan(
        table(
            billing_mode="PAY_PER_REQUEST",
            replica=[{"region_name": "eu-west-1"}],
            on_demand_throughput=[{"max_read_request_units": 900, "max_write_request_units": 800}],
            global_secondary_index=[INDEX | {"on_demand_throughput": [{"max_write_request_units": 70}]}],
        ),
        region="us-east-1",
        root={"resources": [configured("aws_dynamodb_table", "orders")]},
    )
    setup = find_table(load_templates(saved(tmp_path, planned)))
    most = [(each.max_read_units, each.max_write_units) for each in setup.resources]
    assert (setup.is_on_demand, most) == (True, [(900, 800), (None, 70)])
    assert [(each.region, each.read_units) for each in setup.replicas] == [("eu-west-1", 0)]


@pytest.mark.parametrize(
    ("values", "members", "region"),
    [
        ({"region": "eu-west-1"}, {"region": "us-east-1"}, "eu-west-1"),
        ({"arn": "arn:aws:dynamodb:eu-west-2:111122223333:table/orders"}, {}, "eu-west-2"),
        ({"arn": UNKNOWN, "region": UNKNOWN}, {"region": "us-east-1"}, "us-east-1"),
        ({}, {}, None),
    ],
)
def test_region_is_the_resource_s_or_its_provider_s(
    values: Document, members: Document, region: str | None, tmp_path: Path
) -> None:
    planned = plan(table(**values), root={"resources": [configured("aws_dynamodb_table", "orders")]}, **members)
    assert find_table(load_templates(saved(tmp_path, planned))).region == region


def test_region_of_a_provider_can_be_a_variable(tmp_path: Path) -> None:
    planned = plan(table(), root={"resources": [configured("aws_dynamodb_table", "orders")]})
    planned["configuration"]["provider_config"]["aws"]["expressions"] = {"region": {"references": ["var.region"]}}
    planned["variables"] = {"region": {"value": "sa-east-1"}}
    assert find_table(load_templates(saved(tmp_path, planned))).region == "sa-east-1"


def test_one_name_in_two_regions_is_two_tables(tmp_path: Path) -> None:
    tables = [table(f'aws_dynamodb_table.orders["{region}"]', region=region) for region in ("eu-west-1", "us-east-1")]
    planned = plan(*tables, target(region="us-east-1"))
    file = saved(tmp_path, planned)
    ceilings = {
        each.name: each.setup and each.setup.resources[0].write.max for each in read_app(load_templates(file)).tables
    }
    assert ceilings == {'aws_dynamodb_table.orders["eu-west-1"]': 6, 'aws_dynamodb_table.orders["us-east-1"]': 70}


@pytest.mark.parametrize(
    "name",
    [
        'module.shop["eu"].aws_dynamodb_table.this[0]',
        "aws_dynamodb_table.this[0]",
        "aws_dynamodb_table.this",
        "this[0]",
        "this",
        'module.shop["eu"]',
        "eu-orders",
    ],
)
def test_table_is_chosen_by_any_end_of_its_address(name: str, tmp_path: Path) -> None:
    tables = [
        table('module.shop["eu"].aws_dynamodb_table.this[0]', name="eu-orders", read_capacity=9),
        table("aws_dynamodb_table.carts", name="carts"),
    ]
    templates = load_templates(saved(tmp_path, plan(*tables)))
    assert find_table(templates, name=name).name == 'module.shop["eu"].aws_dynamodb_table.this[0]'
    listed = tables_called(read_app(templates).tables, name)
    assert [each.physical for each in listed] == ["eu-orders"] or name == 'module.shop["eu"]'


# -- what is known only after apply


def _unknown(address: str = "aws_appautoscaling_target.write", **values: Any) -> Document:
    return target(address, resource_id=UNKNOWN, **values)


def _config(*resources: Document, **calls: Document) -> Document:
    return {"resources": list(resources), "module_calls": calls}


def _refers(*references: str) -> Document:
    return configured("aws_appautoscaling_target", "write", resource_id=list(references))


def test_target_is_found_by_what_it_refers_to(tmp_path: Path) -> None:
    planned = plan(
        table(id=UNKNOWN),
        table("aws_dynamodb_table.carts", name="carts"),
        _unknown(),
        policy(resource_id=UNKNOWN),
        action(resource_id=UNKNOWN),
        root=_config(
            _refers("aws_dynamodb_table.orders.id", "aws_dynamodb_table.orders"),
            configured("aws_appautoscaling_policy", "write", resource_id=["aws_appautoscaling_target.write"]),
            configured("aws_appautoscaling_scheduled_action", "load", resource_id=["aws_appautoscaling_target.write"]),
        ),
    )
    templates = load_templates(saved(tmp_path, planned))
    write = find_table(templates, name="orders").resources[0].write
    assert (write.min, write.max) == (7, 70)
    assert write.tracking is not None
    assert [each.min for each in write.actions] == [40]
    assert find_table(templates, name="carts").resources[0].write.max == 6


def test_table_whose_name_is_unknown_keeps_its_targets(tmp_path: Path) -> None:
    planned = plan(table(name=UNKNOWN, id=UNKNOWN), _unknown(), root=_config(_refers("aws_dynamodb_table.orders.name")))
    listed = read_app(load_templates(saved(tmp_path, planned))).tables
    assert [(each.name, each.physical) for each in listed] == [("aws_dynamodb_table.orders", None)]
    assert listed[0].setup is not None
    assert listed[0].setup.resources[0].write.max == 70


def test_references_are_followed_through_modules(tmp_path: Path) -> None:
    """As cloudposse/dynamodb does: the table's id goes into a module that scales it, and its indexes by their names."""
    inner = "module.shop.module.scaler[0]"
    by_state = f'{inner}.aws_appautoscaling_target.index["by_state"]'
    planned = plan(
        table(
            "module.shop.aws_dynamodb_table.default[0]",
            id=UNKNOWN,
            global_secondary_index=[INDEX, INDEX | {"name": "b"}],
        ),
        _unknown(f"{inner}.aws_appautoscaling_target.write[0]"),
        _unknown(by_state, scalable_dimension="dynamodb:index:WriteCapacityUnits", min_capacity=23, max_capacity=230),
        policy(f"{inner}.aws_appautoscaling_policy.write[0]", resource_id=UNKNOWN),
        policy(
            f'{inner}.aws_appautoscaling_policy.index["by_state"]',
            resource_id=UNKNOWN,
            scalable_dimension="dynamodb:index:WriteCapacityUnits",
            tracking={"target_value": 55},
        ),
        root=_config(
            shop={
                "module": _config(
                    configured("aws_dynamodb_table", "default"),
                    scaler={
                        "expressions": {"table_name": {"references": ["aws_dynamodb_table.default"]}},
                        "module": _config(
                            _refers("var.table_name"),
                            configured(
                                "aws_appautoscaling_target", "index", resource_id=["var.table_name", "each.key"]
                            ),
                            configured(
                                "aws_appautoscaling_policy", "write", resource_id=["aws_appautoscaling_target.write"]
                            ),
                            configured(
                                "aws_appautoscaling_policy",
                                "index",
                                resource_id=["aws_appautoscaling_target.index", "each.key"],
                            ),
                        ),
                    },
                )
            }
        ),
    )
    setup = find_table(load_templates(saved(tmp_path, planned)))
    shown = {
        each.label: (each.write.max, each.write.tracking and each.write.tracking.target_percent)
        for each in setup.resources
    }
    assert shown == {"table": (70, 65), "index 'by_state'": (230, 55), "index 'b'": (22, None)}
    assert setup.notes == ()


def test_only_the_table_that_exists_of_two_is_meant(tmp_path: Path) -> None:
    """As terraform-aws-modules/dynamodb-table does: a table with scaling, another without, one of which count makes."""
    planned = plan(
        table("module.shop.aws_dynamodb_table.autoscaled[0]", name=UNKNOWN),
        _unknown("module.shop.aws_appautoscaling_target.write[0]"),
        root=_config(
            shop={
                "module": _config(
                    _refers(
                        "aws_dynamodb_table.autoscaled[0].name",
                        "aws_dynamodb_table.autoscaled[0]",
                        "aws_dynamodb_table.autoscaled",
                        "aws_dynamodb_table.autoscaled_gsi_ignore[0].name",
                        "aws_dynamodb_table.autoscaled_gsi_ignore[0]",
                        "aws_dynamodb_table.autoscaled_gsi_ignore",
                    )
                )
            }
        ),
    )
    assert find_table(load_templates(saved(tmp_path, planned))).resources[0].write.max == 70


def test_instances_of_for_each_find_each_other_by_their_keys(tmp_path: Path) -> None:
    planned = plan(
        *(table(f'aws_dynamodb_table.orders["{key}"]', name=f"{key}-orders", id=UNKNOWN) for key in ("a", "b")),
        *(
            _unknown(f'aws_appautoscaling_target.write["{key}"]', max_capacity=units)
            for key, units in (("a", 71), ("b", 72))
        ),
        root=_config(
            _refers("each.value") | {"for_each_expression": {"references": ["aws_dynamodb_table.orders"]}},
        ),
    )
    templates = load_templates(saved(tmp_path, planned))
    assert [find_table(templates, name=f"{key}-orders").resources[0].write.max for key in "ab"] == [71, 72]


def test_references_are_followed_through_outputs_and_calls_of_modules(tmp_path: Path) -> None:
    planned = plan(
        *(
            table(f'module.tables["{key}"].aws_dynamodb_table.this', name=f"{key}-orders", id=UNKNOWN)
            for key in ("a", "b")
        ),
        _unknown('module.scaling["b"].aws_appautoscaling_target.write'),
        root=_config(
            tables={
                "module": _config(configured("aws_dynamodb_table", "this"))
                | {"outputs": {"id": {"expression": {"references": ["aws_dynamodb_table.this.id"]}}}}
            },
            scaling={
                "expressions": {"table": {"references": ["each.value.id", "each.value"]}},
                "for_each_expression": {"references": ["module.tables.id", "module.tables"]},
                "module": _config(_refers("var.table")),
            },
        ),
    )
    templates = load_templates(saved(tmp_path, planned))
    assert [find_table(templates, name=f"{key}-orders").resources[0].write.max for key in "ab"] == [6, 70]


def test_local_value_stands_for_the_only_table_of_its_module(tmp_path: Path) -> None:
    planned = plan(table(id=UNKNOWN), _unknown(), root=_config(_refers("local.table_id")))
    setup = find_table(load_templates(saved(tmp_path, planned)))
    assert setup.resources[0].write.max == 70
    assert setup.notes == (
        "aws_appautoscaling_target.write: its resource_id is known only after apply, by a local value; it is taken to "
        "be that of aws_dynamodb_table.orders, the only table there",
    )


def test_target_of_an_unknown_table_is_asked_for(tmp_path: Path) -> None:
    tables = [table(id=UNKNOWN), table("aws_dynamodb_table.carts", name="carts")]
    file = saved(
        tmp_path,
        plan(
            *tables,
            _unknown(),
            policy(resource_id=UNKNOWN),
            root=_config(
                _refers("local.table_id"),
                configured("aws_appautoscaling_policy", "write", resource_id=["aws_appautoscaling_target.write"]),
            ),
        ),
    )
    templates = load_templates(file)
    with pytest.raises(TemplateError) as refused:
        find_table(templates, name="orders")
    assert str(refused.value) == (
        f"{file}: aws_dynamodb_table.orders has no scalable target for its writes, but aws_appautoscaling_target.write "
        f"of {file} scales a table whose name is known only after apply (${{aws_appautoscaling_target.write}}); say "
        "which table that is with --target aws_appautoscaling_target.write=aws_dynamodb_table.orders, or with the name "
        "of another"
    )
    write = (
        find_table(templates, name="orders", targets={"aws_appautoscaling_target.write": "orders"}).resources[0].write
    )
    assert write.max == 70
    assert write.tracking is not None


def test_target_of_an_unknown_index_is_asked_for(tmp_path: Path) -> None:
    indexes = [INDEX, INDEX | {"name": "by_day"}]
    unknown = _unknown("aws_appautoscaling_target.write[0]", scalable_dimension="dynamodb:index:WriteCapacityUnits")
    file = saved(
        tmp_path,
        plan(
            table(id=UNKNOWN, global_secondary_index=indexes),
            unknown,
            root=_config(_refers("aws_dynamodb_table.orders.id", "count.index")),
        ),
    )
    templates = load_templates(file)
    with pytest.raises(TemplateError) as refused:
        find_table(templates)
    assert str(refused.value) == (
        f"{file}: aws_dynamodb_table.orders has no scalable target for its writes of index by_state, but "
        f"aws_appautoscaling_target.write[0] of {file} scales an index that is known only after apply "
        "(${aws_appautoscaling_target.write[0]}); say which index that is with --target "
        "aws_appautoscaling_target.write[0]=aws_dynamodb_table.orders/index/by_state, or with another"
    )
    bound = find_table(templates, targets={"aws_appautoscaling_target.write[0]": "orders/index/by_day"})
    assert {each.label: each.write.max for each in bound.resources} == {
        "table": 6,
        "index 'by_state'": 22,
        "index 'by_day'": 70,
    }


def test_what_belongs_to_no_table_of_the_plan_is_told(tmp_path: Path) -> None:
    planned = plan(
        table(),
        resource("aws_dynamodb_global_secondary_index.lost", table_name="others", index_name="x"),
        resource("aws_dynamodb_table_replica.eu", global_table_arn=UNKNOWN),
        policy("aws_appautoscaling_policy.lost", resource_id=UNKNOWN),
        action("aws_appautoscaling_scheduled_action.lost", resource_id="table/others"),
        resource("aws_s3_bucket.logs", bucket="logs"),
    )
    assert find_table(load_templates(saved(tmp_path, planned))).notes == (
        "aws_dynamodb_global_secondary_index.lost is not read: its table is not in the plan, or known only after apply",
        "aws_dynamodb_table_replica.eu is not read: its table is not in the plan, or known only after apply",
        "aws_appautoscaling_scheduled_action.lost is not read: its target is not in the plan",
        "aws_appautoscaling_policy.lost is not read: which target it is of is known only after apply",
    )


# -- before and after in one plan


def test_prior_state_is_what_the_plan_was_made_from(tmp_path: Path) -> None:
    file = saved(tmp_path, plan(table(write_capacity=60), prior=(table(write_capacity=11),)))
    before, after = read_app(load_prior(file)).tables, read_app(load_templates(file)).tables
    assert [each.setup and each.setup.resources[0].write.units for each in (*before, *after)] == [11, 60]
    assert read_app(load_prior(saved(tmp_path, plan(table())))).tables == (), "before the first apply"


def test_state_has_no_prior_state(tmp_path: Path) -> None:
    file = saved(tmp_path, state(table()))
    with pytest.raises(TemplateError) as refused:
        load_prior(file)
    assert str(refused.value) == (f"{file}: is no plan, so it has no prior state; give terraform show -json of a plan")
