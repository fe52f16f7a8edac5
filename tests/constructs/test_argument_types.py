"""An argument of another type than documented is refused in one line: its name, what it got, and what to give."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import cache
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns

from cdk_highwater import (
    BoostCoordinator,
    BoostTask,
    CapacityAlarms,
    CapacityDashboard,
    CapacityManaged,
    GlobalSecondaryIndex,
    HighWaterTable,
    PreWarm,
    TableCapacity,
    TaggedTables,
    ThrottleAwareScaler,
    Window,
    manage_capacity,
)
from tests.constructs.template_view import READ, WRITE, TemplateView, key, messages, new_stack, refused, scalable_table

NIGHT = Window.daily("night", start="23:00", end="02:00", timezone="UTC", write_min=9)
HALF_AN_HOUR = cdk.Duration.minutes(30)

HOLDER = "give the construct of a scaler, or leave the argument out for scheduled actions"
TAGGED = "give TaggedTables(), or leave the argument out"
TOPIC = "give an sns.Topic; an existing one is sns.Topic.from_topic_arn(...)"
WARM = "give dynamodb.WarmThroughput(read_units_per_second=, write_units_per_second=)"
GRANTEE = (
    "grantee must be a role or a user, or have a role, got 'loader'; give its construct; that of an existing role is "
    "iam.Role.from_role_name(...)"
)
OUT = "give its construct, or leave the argument out"
MINUTES = "give cdk.Duration.minutes(...)"
NO_TABLE = "table must be a dynamodb.Table, TableV2, CfnTable or an imported table"
NO_PLAN = "table must be a HighWaterTable or the result of manage_capacity"
UNITS = "allowed: whole numbers, 0 or more, and one above 0"


def _plain(stack: cdk.Stack) -> dynamodb.Table:
    return dynamodb.Table(stack, "Plain", partition_key=key())


def _managed(stack: cdk.Stack, **more: Any) -> TableCapacity:
    return manage_capacity(_plain(stack), read=READ, write=WRITE, **more)


def _scaler(stack: cdk.Stack, **more: Any) -> ThrottleAwareScaler:
    return ThrottleAwareScaler(stack, "Scaler", **more)


def _coordinator(stack: cdk.Stack, **more: Any) -> BoostCoordinator:
    return BoostCoordinator(stack, "Boosts", **more)


def _twice(owner: ThrottleAwareScaler | BoostCoordinator, table: HighWaterTable) -> None:
    for _ in range(2):
        owner.add_table(table)


@cache
def _made() -> BoostCoordinator:
    """A coordinator with a scaler, which no refused call changes."""
    stack = new_stack()
    return _coordinator(stack, scaler=_scaler(stack))


@cache
def _jobs() -> HighWaterTable:
    return scalable_table(new_stack())


def _role(stack: cdk.Stack) -> iam.Role:
    return iam.Role(stack, "Loader", assumed_by=iam.AccountRootPrincipal())


def _warm(stack: cdk.Stack, **more: Any) -> PreWarm:
    return PreWarm(stack, "Warm", table=_plain(stack), **more)


def _task(stack: cdk.Stack, **more: Any) -> BoostTask:
    arguments: dict[str, Any] = {"coordinator": _made(), "table": "orders", "lease": HALF_AN_HOUR, "write": 5, **more}
    return BoostTask(stack, "Load", **arguments)


def _dashboard(stack: cdk.Stack, **more: Any) -> CapacityDashboard:
    return CapacityDashboard(stack, "Dashboard", **{"tables": [_jobs()], **more})


Call = Callable[[cdk.Stack], Any]

_OPTIONS = "read, write, windows, high_water_mark, table_quota_units, windows_held_by, indexes"

TYPES: dict[str, tuple[Call, str]] = {
    "misspelt-option": (
        lambda stack: _managed(stack, indexs=[]),
        f"unknown argument 'indexs', allowed: {_OPTIONS}, scope; did you mean indexes?",
    ),
    "misspelt-option-of-a-mixin": (
        lambda _: CapacityManaged(read=READ, wriite=WRITE),  # type: ignore[call-arg]
        f"unknown argument 'wriite', allowed: {_OPTIONS}; did you mean write?",
    ),
    "misspelt-argument-of-a-table": (
        lambda stack: scalable_table(stack, sort_kee=key("day")),
        f"unknown argument 'sort_kee', allowed: {_OPTIONS}, partition_key, sort_key, initial_read_units, "
        "initial_write_units, table_name, deletion_protection, point_in_time_recovery_specification, removal_policy, "
        "encryption, encryption_key, stream, kinesis_stream, kinesis_precision_timestamp, time_to_live_attribute, "
        "table_class, contributor_insights_specification, import_source, resource_policy; did you mean sort_key?",
    ),
    "argument-like-no-other": (
        lambda stack: _managed(stack, zzz=1),
        f"unknown argument 'zzz', allowed: {_OPTIONS}, scope",
    ),
    "holder-text": (
        lambda stack: scalable_table(stack, windows_held_by="scaler"),
        f"windows_held_by must be a ThrottleAwareScaler, got 'scaler'; {HOLDER}",
    ),
    "holder-of-boosts": (
        lambda stack: scalable_table(stack, windows=[NIGHT], windows_held_by=_made()),
        "windows_held_by must be a ThrottleAwareScaler, got cdk_highwater.boosts.coordinator.BoostCoordinator; "
        f"{HOLDER}",
    ),
    "holder-of-a-mixin": (
        lambda _: CapacityManaged(read=READ, write=WRITE, windows_held_by=True),  # type: ignore[arg-type]
        f"windows_held_by must be a ThrottleAwareScaler, got True; {HOLDER}",
    ),
    "holder-of-table-capacity": (
        lambda stack: TableCapacity(stack, "C", table=_plain(stack), plan=_jobs().plan, windows_held_by="x"),  # type: ignore[arg-type]
        f"windows_held_by must be a ThrottleAwareScaler, got 'x'; {HOLDER}",
    ),
    "plan": (
        lambda stack: TableCapacity(stack, "C", table=_plain(stack), plan=5),  # type: ignore[arg-type]
        "plan must be a Plan, got 5; give highwater.core.Plan(read=, write=)",
    ),
    "windows-once": (
        lambda stack: scalable_table(stack, windows=(window for window in [NIGHT])),
        "windows must be a list of Window, got builtins.generator; make a list of it with list(...)",
    ),
    "scope": (
        lambda stack: _managed(stack, scope="Shop"),
        "scope must be a construct, got 'Shop'; give a construct, such as the stack",
    ),
    "scope-class": (
        lambda stack: _managed(stack, scope=cdk.Stack),
        "scope must be a construct, got <class 'aws_cdk.Stack'>; give a construct, such as the stack",
    ),
    "tagged": (
        lambda stack: _scaler(stack, tagged=True),
        f"tagged must be a TaggedTables, got True; {TAGGED}",
    ),
    "tagged-class": (
        lambda stack: _scaler(stack, tagged=TaggedTables),
        f"tagged must be a TaggedTables, got <class 'cdk_highwater.table.ownership.TaggedTables'>; {TAGGED}",
    ),
    "dry-run": (
        lambda stack: _scaler(stack, dry_run="false"),
        "dry_run must be a bool, got 'false'; give True or False",
    ),
    "topic": (
        lambda stack: _scaler(stack, topic="arn:aws:sns:eu-west-1:111122223333:night"),
        f"topic must be an SNS topic, got 'arn:aws:sns:eu-west-1:111122223333:night'; {TOPIC}",
    ),
    "topic-of-alarms": (
        lambda stack: CapacityAlarms(stack, "Alarms", table=_jobs(), topic="night"),  # type: ignore[arg-type]
        f"topic must be an SNS topic, got 'night'; {TOPIC}",
    ),
    "topic-of-a-coordinator": (
        lambda stack: _coordinator(stack, topic="night"),
        f"topic must be an SNS topic, got 'night'; {TOPIC}",
    ),
    "warm-number": (
        lambda stack: _warm(stack, warm_throughput=5),
        f"warm_throughput must be a WarmThroughput, got 5; {WARM}",
    ),
    "warm-indexes": (
        lambda stack: _warm(stack, indexes=["by-day"]),
        "indexes must be marks by the names of indexes, got ['by-day']; give {index_name: "
        "dynamodb.WarmThroughput(...)}",
    ),
    "warm-index-number": (
        lambda stack: _warm(stack, indexes={"by-day": 5}),
        f"indexes['by-day'] must be a WarmThroughput, got 5; {WARM}",
    ),
    "warm-index-name": (
        lambda stack: _warm(stack, indexes={5: None}),
        "each key of indexes must be the name of an index, got 5; give {index_name: dynamodb.WarmThroughput(...)}",
    ),
    "mark-of-none": (
        lambda stack: scalable_table(stack, high_water_mark=0),
        "high_water_mark must be a HighWaterMark, got 0; give HighWaterMark.units(read=, write=)",
    ),
    "one-region": (
        lambda _: TaggedTables(regions="eu-west-1"),
        "regions must be a list of str, got one str; put it in brackets",
    ),
    "grantee": (lambda _: _made().grant_boost("loader", max_write=5), GRANTEE),  # type: ignore[arg-type]
    "grantee-of-pulses": (lambda _: _made().grant_pulse("loader", tables=["orders"]), GRANTEE),  # type: ignore[arg-type]
    "grantee-of-events": (
        lambda _: _made().grant_boost_events("acme.loader", max_write=5, grantee="loader"),  # type: ignore[arg-type]
        GRANTEE,
    ),
    "granted-table": (
        lambda stack: _made().grant_boost(_role(stack), max_write=5, tables="orders"),
        "tables must be a list of tables, got 'orders'; give the tables in brackets",
    ),
    "pulsed-table": (
        lambda stack: _made().grant_pulse(_role(stack), tables=_plain(stack)),  # type: ignore[arg-type]
        "tables must be a list of tables, got aws_cdk.aws_dynamodb.Table; give the tables in brackets",
    ),
    "source": (
        lambda _: _made().grant_boost_events(5, max_write=5),  # type: ignore[arg-type]
        "source must be a text, got 5; give the events' source, such as 'acme.loader'",
    ),
    "scaler-of-a-coordinator": (
        lambda stack: _coordinator(stack, scaler="scaler"),
        f"scaler must be a ThrottleAwareScaler, got 'scaler'; {OUT}",
    ),
    "coordinator-of-a-task": (
        lambda stack: _task(stack, coordinator="boosts"),
        "coordinator must be a BoostCoordinator, got 'boosts'; give its construct",
    ),
    "lease-number": (lambda stack: _task(stack, lease=30), f"lease must be a cdk.Duration, got 30; {MINUTES}"),
    "lease-timedelta": (
        lambda stack: _task(stack, lease=timedelta(minutes=5)),
        f"lease must be a cdk.Duration, got datetime.timedelta(seconds=300); {MINUTES}",
    ),
    "ready-within": (
        lambda stack: _task(stack, ready_within=5),
        f"ready_within must be a cdk.Duration, got 5; {MINUTES}",
    ),
    "is-required": (
        lambda stack: _task(stack, is_required="no"),
        "is_required must be a bool, got 'no'; give True or False",
    ),
    "tables-of-a-dashboard": (
        lambda stack: _dashboard(stack, tables=_jobs()),
        "tables must be a list of tables, got cdk_highwater.table.table.HighWaterTable; give the tables in brackets",
    ),
    "scaler-of-a-dashboard": (
        lambda stack: _dashboard(stack, scaler="scaler"),
        f"scaler must be a ThrottleAwareScaler, got 'scaler'; {OUT}",
    ),
    "coordinator-of-a-dashboard": (
        lambda stack: _dashboard(stack, coordinator="boosts"),
        f"coordinator must be a BoostCoordinator, got 'boosts'; {OUT}",
    ),
    "index-name": (
        lambda _: GlobalSecondaryIndex(index_name=["by-day"], partition_key=key("day")),  # type: ignore[arg-type]
        "index_name must be a text, got ['by-day']; give the name in quotes",
    ),
    "non-key-attributes": (
        lambda _: GlobalSecondaryIndex(index_name="by-day", partition_key=key("day"), non_key_attributes="name"),
        "non_key_attributes must be a list of str, got one str; put it in brackets",
    ),
    "one-window": (
        lambda stack: scalable_table(stack, windows=NIGHT),
        "windows must be a list of Window, got one Window; put it in brackets",
    ),
    "managed-text": (
        lambda _: manage_capacity("orders", read=READ, write=WRITE),  # type: ignore[arg-type]
        f"{NO_TABLE}, got str",
    ),
    "direct-text": (
        lambda stack: _scaler(stack).add_direct_table("jobs", read=READ, write=WRITE),  # type: ignore[arg-type]
        f"{NO_TABLE}, got str",
    ),
    "granted-number": (
        lambda stack: _made().grant_boost(_role(stack), max_write=1, tables=[7]),
        f"{NO_TABLE}, got int",
    ),
    "scaled-without-a-plan": (lambda stack: _scaler(stack).add_table(_plain(stack)), f"{NO_PLAN}, got Table"),
    "shown-without-a-plan": (lambda stack: _dashboard(stack, tables=[_plain(stack)]), f"{NO_PLAN}, got Table"),
    "service-as-a-grantee": (
        lambda _: _made().grant_boost(iam.ServicePrincipal("x.amazonaws.com"), max_write=1),
        "grantee must be a role or a user, or have a role, got ServicePrincipal",
    ),
    "budget-number": (
        lambda stack: _made().grant_budget(_role(stack), 7),  # type: ignore[arg-type]
        "budgets must be names of budgets, got 7; give the names in quotes",
    ),
    "partition-keys": (
        lambda _: GlobalSecondaryIndex(index_name="by-day", partition_keys=key("day")),  # type: ignore[arg-type]
        "partition_keys must be a list of Attribute, got one Attribute; put it in brackets",
    ),
}


@pytest.mark.parametrize(("call", "told"), TYPES.values(), ids=list(TYPES))
def test_argument_of_another_type_is_refused_in_one_line(call: Call, told: str) -> None:
    with refused(TypeError, told):
        call(new_stack())


VALUES: dict[str, tuple[Call, str]] = {
    "no-partition-key": (
        lambda _: GlobalSecondaryIndex(index_name="by-day"),
        "index 'by-day' has no partition key; give one attribute in partition_key=, or several in partition_keys=",
    ),
    "two-partition-keys": (
        lambda _: GlobalSecondaryIndex(index_name="by-day", partition_key=key("day"), partition_keys=[key("day")]),
        "index 'by-day': partition_key and partition_keys are both given; give one attribute in partition_key=, or "
        "several in partition_keys=",
    ),
    "five-sort-keys": (
        lambda _: GlobalSecondaryIndex(
            index_name="by-day", partition_key=key("day"), sort_keys=[key(name) for name in "abcde"]
        ),
        "index 'by-day': sort_keys: got 5, allowed: 1 to 4; give one attribute in sort_key=, or several in sort_keys=",
    ),
    "no-partition-keys": (
        lambda _: GlobalSecondaryIndex(index_name="by-day", partition_keys=[]),
        "index 'by-day': partition_keys: got 0, allowed: 1 to 4; give one attribute in partition_key=, or several in "
        "partition_keys=",
    ),
    "granted-text": (
        lambda stack: _made().grant_boost(_role(stack), max_write="5"),  # type: ignore[arg-type]
        f"max_write is '5' and max_read is 0; {UNITS}",
    ),
    "granted-fraction": (
        lambda stack: _made().grant_boost(_role(stack), max_write=1.5, max_read=2_000),  # type: ignore[arg-type]
        f"max_write is 1.5 and max_read is 2,000; {UNITS}",
    ),
    "granted-parameter": (
        lambda stack: _made().grant_boost(
            _role(stack),
            max_write=cdk.CfnParameter(stack, "Units", type="Number").value_as_number,  # type: ignore[arg-type]
        ),
        f"max_write is known only at deploy time and max_read is 0; {UNITS}",
    ),
    "granted-none": (lambda stack: _made().grant_boost(_role(stack)), f"max_write is 0 and max_read is 0; {UNITS}"),
    "granted-negative": (
        lambda stack: _made().grant_boost(_role(stack), max_write=-1, max_read=5),
        f"max_write is -1 and max_read is 5; {UNITS}",
    ),
    "source-of-aws": (
        lambda _: _made().grant_boost_events("aws.s3", max_write=1),
        "source is 'aws.s3'; allowed: 3 to 100 letters, digits, dots and dashes, such as acme.loader, that do not "
        "begin with aws.",
    ),
    "no-budgets": (
        lambda stack: _made().grant_budget(_role(stack)),
        "budgets: got none, allowed: names of budgets; give the names that its workers share",
    ),
    "long-budget": (
        lambda stack: _made().grant_budget(_role(stack), "n" * 122),
        f"budgets: got {'n' * 120!r}, allowed: names of 1 to 121 characters",
    ),
    "empty-budget": (
        lambda stack: _made().grant_budget(_role(stack), ""),
        "budgets: got '', allowed: names of 1 to 121 characters",
    ),
    "boosted-twice": (
        lambda stack: _twice(_coordinator(stack), scalable_table(stack)),
        "Shop/Jobs/Capacity: the table was added to the coordinator already; call add_table once per table",
    ),
    "scaled-twice": (
        lambda stack: _twice(_scaler(stack), scalable_table(stack)),
        "Shop/Jobs/Capacity: the scaler already manages this table; call add_table once per table, and not for a table "
        "with windows_held_by=",
    ),
    "managed-twice": (
        lambda stack: manage_capacity(scalable_table(stack), read=READ, write=WRITE),
        "Shop/Jobs: the capacity is already managed; pass all options in one call, or for a HighWaterTable in its "
        "constructor",
    ),
    "asked-none": (lambda stack: _task(stack, write=0), f"write is 0 and read is 0; {UNITS}"),
    "asked-flag": (lambda stack: _task(stack, write=True), f"write is True and read is 0; {UNITS}"),
    "lease-in-seconds": (
        lambda stack: _task(stack, lease=cdk.Duration.seconds(90)),
        "lease is 1.5 minutes; allowed: whole minutes from 1 to 1,440; a window can last longer",
    ),
    "lease-of-days": (
        lambda stack: _task(stack, lease=cdk.Duration.days(2)),
        "lease is 2,880 minutes; allowed: whole minutes from 1 to 1,440; a window can last longer",
    ),
    "no-tables": (lambda stack: _dashboard(stack, tables=iter([])), "tables must contain at least one table, got none"),
}


@pytest.mark.parametrize(("call", "told"), VALUES.values(), ids=list(VALUES))
def test_value_that_is_not_allowed_is_refused_in_one_line(call: Call, told: str) -> None:
    with refused(ValueError, told):
        call(new_stack())


def test_capacity_of_the_cdk_is_told_from_that_of_the_library() -> None:
    stack = new_stack()
    scalable_table(stack, read=dynamodb.Capacity.fixed(5))
    assert messages(stack, "error") == [
        "Shop/Jobs: table read: got aws_cdk.aws_dynamodb.Capacity, allowed: a cdk_highwater.Capacity; give "
        "Capacity.autoscaled(min_capacity=, max_capacity=) or Capacity.fixed(units=) [highwater:capacityMissing]"
    ]


def test_imported_topics_and_roles_are_as_good_as_those_of_the_app() -> None:
    stack = new_stack()
    topic = sns.Topic.from_topic_arn(stack, "Night", "arn:aws:sns:eu-west-1:111122223333:night")
    role = iam.Role.from_role_arn(stack, "Loader", "arn:aws:iam::111122223333:role/loader")
    coordinator = _coordinator(stack, topic=topic)
    coordinator.grant_boost(role, max_write=5, tables=(table for table in ["orders"]))
    CapacityAlarms(stack, "Alarms", table=scalable_table(stack), topic=topic)
    granted = [
        parameter["Properties"]["Value"]
        for parameter in TemplateView(stack).of_type("AWS::SSM::Parameter")
        if "tables" in str(parameter["Properties"]["Value"])
    ]
    assert granted == [
        '{"caller":"arn:aws:iam::111122223333:role/loader","max_write":5,"max_read":0,"tables":["orders"]}'
    ]
