"""`PreWarm`: what comes out in the template."""

from __future__ import annotations

from aws_cdk import aws_dynamodb as dynamodb

from cdk_highwater import PreWarm
from tests.constructs.template_view import TemplateView, global_table, key, listed, messages, new_stack, placed_stack


def warm(read: int, write: int) -> dynamodb.WarmThroughput:
    return dynamodb.WarmThroughput(read_units_per_second=read, write_units_per_second=write)


def test_marks_of_table_and_indexes_travel_to_the_function() -> None:
    stack = new_stack()
    table = dynamodb.Table(stack, "Jobs", partition_key=key(), read_capacity=8, write_capacity=9)
    PreWarm(
        stack,
        "Warm",
        table=table,
        warm_throughput=warm(800, 900),
        indexes={"by-owner": warm(70, 60)},
    )
    # an index may be added later than it is named
    table.add_global_secondary_index(index_name="by-owner", partition_key=key("owner"))
    view = TemplateView(stack)
    assert view.marks == {None: (800, 900), "by-owner": (70, 60)}
    assert messages(stack, "info") == [
        "Shop/Warm: high-water mark: table 800 RCU and 900 WCU, index 'by-owner' 70 RCU and 60 WCU; charged once when "
        "it is raised, at us-east-1 prices at most about 950 WCU x $0.00065 + 861 RCU x $0.00013 = $0.73; a mark that "
        "the table already has is not charged again; without PreWarm, marks are not raised [highwater:warmUpCharge]"
    ]


def test_marks_are_charged_at_the_prices_of_the_tables_region() -> None:
    """A warm-up in eu-central-1 costs 22 percent more than in us-east-1."""
    stack = placed_stack(region="eu-central-1")
    table = dynamodb.Table(stack, "Jobs", partition_key=key(), read_capacity=8, write_capacity=9)
    PreWarm(stack, "Warm", table=table, warm_throughput=warm(800, 900))
    assert messages(stack, "info") == [
        "Shop/Warm: high-water mark: table 800 RCU and 900 WCU; charged once when it is raised, at eu-central-1 prices "
        "at most about 891 WCU x $0.000793 + 792 RCU x $0.0001586 = $0.83; a mark that the table already has is not "
        "charged again; without PreWarm, marks are not raised [highwater:warmUpCharge]"
    ]


def test_marks_in_a_region_without_known_prices_are_charged_at_those_of_us_east_1_and_it_is_said() -> None:
    stack = placed_stack(region="cn-north-1")
    table = dynamodb.Table(stack, "Jobs", partition_key=key(), read_capacity=8, write_capacity=9)
    PreWarm(stack, "Warm", table=table, warm_throughput=warm(800, 9))
    (told,) = messages(stack, "info")
    assert "at us-east-1 prices at most about 792 RCU x $0.00013 = $0.10; " in told


def test_marks_of_a_global_table_in_a_region_that_only_a_deploy_knows_are_charged_at_prices_of_us_east_1() -> None:
    stack = new_stack()
    PreWarm(stack, "Warm", table=global_table(stack), warm_throughput=warm(800, 1))
    (told,) = messages(stack, "info")
    assert "raised, at us-east-1 prices at most about 799 RCU x $0.00013 = $0.10; a mark" in told


def test_marks_of_a_global_table_are_charged_in_each_region() -> None:
    stack = placed_stack()
    replicas = [dynamodb.ReplicaTableProps(region=region) for region in ("eu-central-1", "us-west-2")]
    PreWarm(stack, "Warm", table=global_table(stack, replicas=replicas), warm_throughput=warm(800, 900))
    assert messages(stack, "info") == [
        "Shop/Warm: high-water mark: table 800 RCU and 900 WCU; charged once when it is raised, at eu-west-1 prices at "
        "most about 899 WCU x $0.000735 + 799 RCU x $0.000147 = $0.78, at eu-central-1 prices $0.84, at us-west-2 "
        "prices $0.69, $2.31 together; a mark that the table already has is not charged again; without PreWarm, marks "
        "are not raised [highwater:warmUpCharge]"
    ]


def test_function_may_note_marks_that_wait_for_an_index_and_go_on_later() -> None:
    stack = new_stack()
    table = dynamodb.Table(stack, "Jobs", partition_key=key())
    PreWarm(stack, "Warm", table=table, warm_throughput=warm(800, 900))
    actions = {action for statement in TemplateView(stack).statements() for action in listed(statement["Action"])}
    assert {"dynamodb:TagResource", "dynamodb:UntagResource", "lambda:InvokeFunction"} <= actions
    assert "application-autoscaling:DescribeScalableTargets" not in actions


def test_mark_that_comes_by_itself_makes_nothing() -> None:
    stack = new_stack()
    table = dynamodb.Table(stack, "Jobs", partition_key=key(), read_capacity=8, write_capacity=9)
    PreWarm(stack, "Warm", table=table, warm_throughput=warm(8, 9))
    assert TemplateView(stack).of_type("AWS::Lambda::Function") == []


def test_units_that_are_none_are_refused() -> None:
    stack = new_stack()
    table = dynamodb.Table.from_table_name(stack, "Far", "far-orders")
    PreWarm(stack, "Warm", table=table, warm_throughput=warm(0, 900))
    assert messages(stack, "error") == [
        "Shop/Warm: high-water mark read of table: got 0, allowed: whole units per second, 1 or more; give 1 for the "
        "lowest capacity [highwater:unitsNotPositive]"
    ]


def test_mark_for_an_index_that_the_table_does_not_have_is_refused() -> None:
    """The deploy would fail on it, after the table was changed."""
    stack = new_stack()
    table = dynamodb.Table(stack, "Jobs", partition_key=key(), read_capacity=8, write_capacity=9)
    table.add_global_secondary_index(index_name="by-owner", partition_key=key("owner"))
    PreWarm(stack, "Warm", table=table, indexes={"by-owmer": warm(70, 60)})
    imported = dynamodb.Table.from_table_name(stack, "Imported", "jobs")
    PreWarm(stack, "WarmImported", table=imported, indexes={"not-known-here": warm(70, 60)})
    assert messages(stack, "error") == [
        "Shop/Warm: index 'by-owmer': the table has no index of this name; its indexes are 'by-owner'; correct the "
        "name, or add the index to the table first [highwater:unknownIndex]"
    ]
