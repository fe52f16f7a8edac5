"""The declarations that the deploys of the sequences choose from, as the real constructs make templates of them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb

from cdk_highwater import (
    Capacity,
    GlobalSecondaryIndex,
    HighWaterMark,
    HighWaterTable,
    IndexCapacity,
    OnDemandTable,
    ThrottleAwareScaler,
    Window,
    manage_capacity,
)
from cdk_highwater.table.manage import capacity_of
from highwater.core import Plan
from highwater.handlers.deploy.handler import UNITS_TYPE

Document = dict[str, Any]

# The first of two times of synth. By the second one, the one-off window is over.
BEGIN: Final = datetime(2027, 3, 1, tzinfo=UTC)
LATER: Final = datetime(2027, 3, 2, 12, tzinfo=UTC)
ORDERS, LEGACY = "Orders", "Legacy"
# A mark that is no floor, so that capacity which was left at it shows.
MARK_UNITS: Final = 390

_NIGHTLY = Window.daily("nightly", start="05:00", end="07:00", timezone="UTC", write_min=140)
# two in zones of half an hour, in March: 08:30 to 11:00 and 04:00 to 09:00 UTC
_MORNINGS = Window.weekly(
    "mornings", days="MON-FRI", start="14:00", end="16:30", timezone="Asia/Kolkata", read_min=90, write_min=33
)
_ONCE = Window.once("once", start="2027-03-01T20:00", end="2027-03-02T08:00", timezone="UTC", write_min=210)
# 16:30 to 03:30 UTC over midnight of the month, and 07:30 to 15:30 UTC on the second day of the sequences
_PAYDAY = Window.monthly("payday", day="last", start="22:00", end="09:00", timezone="Asia/Kolkata", write_min=260)
_REPORTS = Window.monthly(
    "reports", weekday="TUE", nth=1, start="13:00", end="21:00", timezone="Asia/Kolkata", read_min=110, write_min=310
)
# over the nightly window, which no scheduled actions can express
_CLOSING = Window.monthly("closing", day=2, start="04:00", end="12:00", timezone="UTC", write_min=170)
_READ, _WRITE = (
    Capacity.autoscaled(min_capacity=7, max_capacity=900),
    Capacity.autoscaled(min_capacity=12, max_capacity=400),
)
_FIXED = Capacity.fixed(units=46)
_HIGHER = Capacity.autoscaled(min_capacity=31, max_capacity=500)
_INDEX: Any = {
    "index_name": "by_status",
    "read": Capacity.autoscaled(min_capacity=5, max_capacity=70),
    "write": Capacity.autoscaled(min_capacity=11, max_capacity=300),
    "windows": (Window.daily("by-night", start="15:00", end="20:00", timezone="Australia/Lord_Howe", write_min=77),),
}


@dataclass(frozen=True, kw_only=True)
class Declared:
    """One declaration of a table.

    Attributes:
        read: Its read capacity.
        write: Its write capacity.
        windows: Its windows.
        is_indexed: Whether it has an index, with capacity of its own.
        is_scaled: Whether a scaler looks after it.
        is_held: Whether that opens and closes the windows.
        mark: Its high-water mark, `None` for the highest floor.
        key: Its partition key; another key replaces the table.
        units: The units of the table and its index in the template; by default `Orders` has one, and `Legacy` others.
        is_managed: Whether its capacity is managed. If not, it is on demand.
    """

    read: Capacity = _READ
    write: Capacity = _WRITE
    windows: tuple[Window, ...] = (_NIGHTLY,)
    is_indexed: bool = False
    is_scaled: bool = False
    is_held: bool = False
    mark: HighWaterMark | None = None
    key: str = "pk"
    units: int | None = None
    is_managed: bool = True


DECLARATIONS: Final = {
    "calm": Declared(windows=()),
    "nightly": Declared(),
    "higher": Declared(write=_HIGHER, windows=(_NIGHTLY, _MORNINGS)),
    "once": Declared(windows=(_NIGHTLY, _ONCE)),
    "monthly": Declared(windows=(_NIGHTLY, _PAYDAY, _REPORTS)),
    "held-monthly": Declared(windows=(_NIGHTLY, _CLOSING), is_scaled=True, is_held=True),
    "marked": Declared(mark=HighWaterMark.units(write=MARK_UNITS)),
    "indexed": Declared(is_indexed=True),
    "replaced": Declared(key="id"),
    "scaled": Declared(is_scaled=True),
    "scaled-indexed": Declared(is_indexed=True, is_scaled=True),
    "held": Declared(is_scaled=True, is_held=True),
    "held-higher": Declared(write=_HIGHER, windows=(_MORNINGS, _ONCE), is_scaled=True, is_held=True),
    # with units in the template that are above some floors and below others
    "units": Declared(units=20),
    "fixed": Declared(read=_FIXED),
    "fixed-units": Declared(read=_FIXED, windows=(), units=35),
    "indexed-units": Declared(is_indexed=True, units=3),
    "scaled-fixed": Declared(read=_FIXED, is_scaled=True),
    "on-demand": Declared(is_managed=False),
}


@dataclass(frozen=True)
class Synthesized:
    """A stack with both tables after one declaration.

    Attributes:
        resources: The template's resources by logical id.
        plan: The plan of each table; `None` on demand.
    """

    resources: dict[str, Document]
    plan: Plan | None

    def of(self, table: str) -> dict[str, Document]:
        """The resources that belong to one table."""
        return {key: document for key, document in self.resources.items() if table in key}

    def shared(self) -> dict[str, Document]:
        """The resources that belong to neither table."""
        return {key: each for key, each in self.resources.items() if ORDERS not in key and LEGACY not in key}

    def table_alone(self, table: str) -> dict[str, Document]:
        """A table that nothing manages."""
        return {key: each for key, each in self.of(table).items() if each["Type"] == "AWS::DynamoDB::Table"}


def synthesize(declared: Declared, as_of: datetime) -> Synthesized:
    """Synthesize both tables after one declaration."""
    app = cdk.App(context={"highwater:asOf": as_of.isoformat()})
    stack = cdk.Stack(app, "Shop", env=cdk.Environment(account="000000000000", region="us-east-1"))
    scaler = ThrottleAwareScaler(stack, "Scaler") if declared.is_scaled else None
    plan = None
    if declared.is_managed:
        plan = _managed(stack, declared, scaler)
    else:
        _put_on_demand(stack)
    return Synthesized(app.synth().get_stack_by_name("Shop").template["Resources"], plan)


def _managed(stack: cdk.Stack, declared: Declared, scaler: ThrottleAwareScaler | None) -> Plan:
    capacity: Any = {
        "read": declared.read,
        "write": declared.write,
        "windows": declared.windows,
        "high_water_mark": declared.mark,
        "windows_held_by": scaler if declared.is_held else None,
    }
    key = dynamodb.Attribute(name=declared.key, type=dynamodb.AttributeType.STRING)
    status = dynamodb.Attribute(name="status", type=dynamodb.AttributeType.STRING)
    orders = HighWaterTable(
        stack,
        ORDERS,
        partition_key=key,
        deletion_protection=False,
        removal_policy=cdk.RemovalPolicy.DESTROY,
        indexes=[GlobalSecondaryIndex(partition_key=status, **_INDEX)] if declared.is_indexed else [],
        initial_read_units=declared.units or 1,
        initial_write_units=declared.units or 1,
        **capacity,
    )
    read, write = declared.units or 9, declared.units or 8
    legacy = dynamodb.Table(stack, LEGACY, partition_key=key, read_capacity=read, write_capacity=write)
    if declared.is_indexed:
        read, write = declared.units or 6, declared.units or 13
        legacy.add_global_secondary_index(
            index_name=_INDEX["index_name"], partition_key=status, read_capacity=read, write_capacity=write
        )
    managed = manage_capacity(legacy, indexes=[IndexCapacity(**_INDEX)] if declared.is_indexed else [], **capacity)
    if scaler is not None and not declared.is_held:
        scaler.add_table(orders)
        scaler.add_table(managed)
    return capacity_of(orders).plan


def _put_on_demand(stack: cdk.Stack) -> None:
    key = dynamodb.Attribute(name="pk", type=dynamodb.AttributeType.STRING)
    policy = cdk.RemovalPolicy.DESTROY
    OnDemandTable(stack, ORDERS, partition_key=key, deletion_protection=False, removal_policy=policy)
    dynamodb.Table(stack, LEGACY, partition_key=key, billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST)


def compose(orders: Synthesized | None, legacy: Synthesized | None, bare: Synthesized) -> dict[str, Document]:
    """One template of both tables, each after its own declaration.

    Args:
        orders: The stack to take the table `Orders` from, `None` for no such table.
        legacy: The stack to take `Legacy` from, `None` for a table whose capacity nothing manages.
        bare: A stack to take that table from.
    """
    present = [stack for stack in (orders, legacy) if stack is not None]
    template: dict[str, Document] = {}
    for stack in present:
        for key, document in stack.shared().items():
            template[key] = _merged(template[key], document) if key in template else {**document}
    for document in template.values():
        if document["Type"] == UNITS_TYPE:
            document["Properties"] = document["Properties"] | {"Tables": _units_of(orders, legacy)}
    template |= orders.of(ORDERS) if orders is not None else {}
    template |= legacy.of(LEGACY) if legacy is not None else bare.table_alone(LEGACY)
    return {key: _pruned(document, template) for key, document in template.items()}


def _units_of(orders: Synthesized | None, legacy: Synthesized | None) -> Document:
    """What the resource before the tables says of both of them: each after its own declaration."""
    found: Document = {}
    for table, stack in ((ORDERS, orders), (LEGACY, legacy)):
        for document in () if stack is None else stack.resources.values():
            if document["Type"] == UNITS_TYPE:
                found |= {key: units for key, units in document["Properties"]["Tables"].items() if table in key}
    return found


def without_scaler(template: dict[str, Document]) -> dict[str, Document]:
    """What is left of a template when its scaler goes, as if that were in a stack of its own."""
    left = {key: document for key, document in template.items() if "Scaler" not in key}
    return {key: _pruned(document, left) for key, document in left.items()}


def _merged(one: Document, other: Document) -> Document:
    """A resource that both stacks have. A policy has the statements of both."""
    if one["Type"] != "AWS::IAM::Policy":
        return one | {"DependsOn": sorted({*one.get("DependsOn", []), *other.get("DependsOn", [])})}
    documents = [each["Properties"]["PolicyDocument"]["Statement"] for each in (one, other)]
    statements = {json.dumps(statement): statement for statement in (*documents[0], *documents[1])}
    policy = {"Statement": list(statements.values()), "Version": "2012-10-17"}
    return one | {"Properties": one["Properties"] | {"PolicyDocument": policy}}


def _pruned(document: Document, template: Iterable[str]) -> Document:
    """A resource without what it says of resources that the template does not have."""
    known = set(template)
    pruned = document | {"DependsOn": [each for each in document.get("DependsOn", []) if each in known]}
    if document["Type"] != "AWS::IAM::Policy":
        return pruned
    policy = document["Properties"]["PolicyDocument"]
    statements = []
    for statement in policy["Statement"]:
        listed = statement["Resource"] if isinstance(statement["Resource"], list) else [statement["Resource"]]
        kept = [
            each for each in listed if not isinstance(each, dict) or each.get("Fn::GetAtt", [""])[0] in {"", *known}
        ]
        if kept:
            statements.append(statement | {"Resource": kept})
    return pruned | {"Properties": document["Properties"] | {"PolicyDocument": policy | {"Statement": statements}}}
