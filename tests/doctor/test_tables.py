"""The doctor's checks of tables, with stubbed answers of AWS, also those that the local cloud cannot give."""

from __future__ import annotations

from pathlib import Path

from highwater.core import Capacity, Plan
from highwater.core.scaler import Mode, ScaledPlan
from highwater_lab.doctor import State
from tests.doctor.stubs import ACCOUNT, REGION, StubbedSession, assembly, said, table, target

FIVE_TO_FIFTY = Capacity.autoscaled(min_capacity=5, max_capacity=50)
PLAN = ScaledPlan(table="orders", mode=Mode.FLOOR, plan=Plan(read=FIVE_TO_FIFTY, write=FIVE_TO_FIFTY)).to_json()


def _tables(session: StubbedSession, *names: str) -> None:
    metadata = {"HTTPHeaders": {"date": "Wed, 04 Nov 2026 12:00:00 GMT"}}
    session.answer("dynamodb", "list_tables", {"TableNames": list(names), "ResponseMetadata": metadata})


def _scaled(session: StubbedSession, *names: str) -> None:
    of = {"ServiceNamespace": "dynamodb", "ScalableDimension": "dynamodb:table:WriteCapacityUnits"}
    more = {"MinCapacity": 7, "MaxCapacity": 70, "RoleARN": "arn:aws:iam::111122223333:role/aas", "CreationTime": 0}
    targets = [{**of, **more, "ResourceId": f"table/{name}"} for name in names]
    asked = {"ServiceNamespace": "dynamodb"}
    session.answer("application-autoscaling", "describe_scalable_targets", {"ScalableTargets": targets}, **asked)
    session.answer("application-autoscaling", "describe_scaling_policies", {"ScalingPolicies": []}, **asked)
    session.answer("application-autoscaling", "describe_scheduled_actions", {"ScheduledActions": []}, **asked)


def _plans(
    session: StubbedSession, *names: str, value: str = "", tags: dict[str, dict[str, str]] | None = None
) -> None:
    """Plans in parameters, and tables with the tags of a scaler; of a tag the part behind `highwater:`."""
    parameters = [{"Name": name, "Value": value} for name in names]
    asked = {"Path": "/highwater/plans/", "Recursive": True}
    session.answer("ssm", "get_parameters_by_path", {"Parameters": parameters}, **asked)
    tagged = [
        {
            "ResourceARN": f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{name}",
            "Tags": [{"Key": f"highwater:{key}", "Value": text} for key, text in own.items()],
        }
        for name, own in (tags or {}).items()
    ]
    found = {"TagFilters": [{"Key": "highwater:managed"}], "ResourceTypeFilters": ["dynamodb:table"]}
    session.answer("resourcegroupstaggingapi", "get_resources", {"ResourceTagMappingList": tagged}, **found)


DEREGISTER = (
    f"aws application-autoscaling deregister-scalable-target --region {REGION} --service-namespace dynamodb "
    "--resource-id table/orders --scalable-dimension dynamodb:table:WriteCapacityUnits"
)


def test_target_of_another_stack_is_a_failure_that_names_the_stack(session: StubbedSession, tmp_path: Path) -> None:
    session.refuse("cloudformation", "describe_stacks", "ValidationError", "Stack with id Shop does not exist")
    _tables(session, "orders", "others")
    _scaled(session, "orders", "others")
    id = "table/orders|dynamodb:table:WriteCapacityUnits|dynamodb"
    resource = {
        "StackName": "Legacy",
        "LogicalResourceId": "Writes",
        "PhysicalResourceId": id,
        "ResourceType": "AWS::ApplicationAutoScaling::ScalableTarget",
        "Timestamp": 0,
        "ResourceStatus": "CREATE_COMPLETE",
    }
    session.answer("cloudformation", "describe_stack_resources", {"StackResources": [resource]}, PhysicalResourceId=id)
    _plans(session)
    app = assembly(tmp_path, {"Orders": table("orders", 5, 6), "Writes": target("orders", 7, 70)})
    assert said(session, "owners", app) == (
        State.FAILURE,
        "target table/orders write of table Orders is registered and not the app's: stack Legacy has it; the app "
        "declares it too, so its deploy fails",
        f"remove it from stack Legacy and deploy that, or {DEREGISTER}",
    )


def test_table_with_two_scalers_is_a_failure(session: StubbedSession) -> None:
    _plans(session, "/highwater/plans/Shop/orders", "/highwater/plans/Web/orders", value=PLAN)
    assert said(session, "owners") == (
        State.FAILURE,
        "table orders has 2 scalers, Shop, Web; each undoes the other's floors",
        "remove it from all but one, and deploy their stacks",
    )


def _described(session: StubbedSession, name: str, *indexes: str) -> None:
    found = {"TableName": name, "GlobalSecondaryIndexes": [{"IndexName": index} for index in indexes]}
    session.answer("dynamodb", "describe_table", {"Table": found}, TableName=name)


def test_table_that_was_made_while_the_doctor_read_is_not_gone(session: StubbedSession) -> None:
    """The command would deregister the target of a table in use."""
    _tables(session, "others")
    _scaled(session, "orders")
    _described(session, "orders")
    for service, operation, member in (
        ("cloudwatch", "describe_alarms", "MetricAlarms"),
        ("cloudwatch", "describe_alarms", "MetricAlarms"),
        ("ssm", "get_parameters_by_path", "Parameters"),
        ("resourcegroupstaggingapi", "get_resources", "ResourceTagMappingList"),
    ):
        session.expect(service, operation, {member: []})
    text = "no target, alarm, plan or queue is of a table that is gone"
    assert said(session, "leftovers") == (State.OK, text, "")


def test_index_that_was_made_while_the_doctor_read_is_not_gone(session: StubbedSession) -> None:
    _described(session, "orders")
    _tables(session, "orders")
    _described(session, "orders", "by-day")
    place = session.place()
    assert place.described("orders")["GlobalSecondaryIndexes"] == []
    assert place.tables_of([("orders", "by-day")]) == {"orders": {"by-day"}}
    assert session.all_asked()


BOUNDS = {"read-min": "5", "read-max": "50", "write-min": "6", "write-max": "60"}


def test_table_of_a_scaler_that_has_tags_too_is_a_failure(session: StubbedSession) -> None:
    _scaled(session)
    direct = {"orders": BOUNDS | {"managed": "direct"}}
    _plans(session, "/highwater/plans/Shop/orders", value=PLAN, tags=direct)
    assert said(session, "owners") == (
        State.FAILURE,
        "table orders has 2 scalers, Shop, that of tables with the tag highwater:managed; each undoes the other's "
        "floors",
        "remove it from all but one, and deploy their stacks",
    )


def test_target_of_a_table_with_the_tag_direct_is_a_failure(session: StubbedSession) -> None:
    _scaled(session, "orders")
    session.refuse("cloudformation", "describe_stack_resources", "ValidationError", "Stack does not exist")
    _plans(session, tags={"orders": BOUNDS | {"managed": "direct"}})
    assert said(session, "owners") == (
        State.FAILURE,
        "target table/orders write is registered, and the table has the tag highwater:managed = direct, so no scaler "
        "changes it: no stack has it: it is somebody's by hand, or Terraform's",
        f"take it out of what made it, or {DEREGISTER}; or set the tag to floor",
    )


def test_table_with_the_tag_floor_and_without_a_target_is_a_failure(session: StubbedSession) -> None:
    _scaled(session, "orders")
    _plans(session, tags={"orders": BOUNDS | {"managed": "floor"}})
    assert said(session, "owners") == (
        State.FAILURE,
        "target table/orders read is not registered, and the table has the tag highwater:managed = floor, so nothing "
        "scales it",
        "give it target tracking where the table is made, or set the tag to direct",
    )


def test_wrong_tags_are_a_warning(session: StubbedSession) -> None:
    _plans(session, tags={"orders": BOUNDS | {"managed": "both"}})
    assert said(session, "owners") == (
        State.WARNING,
        "no scaler manages table orders: tag highwater:managed must be floor or direct, got 'both'",
        "correct its tags; docs/scaler.md has them",
    )
