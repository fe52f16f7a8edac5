"""`PreWarm`: raises high-water marks, which DynamoDB calls warm throughput, during deploys."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct, IConstruct

from cdk_highwater.support.arguments import require, require_or_none
from cdk_highwater.support.nag import annotate, annotate_at_end
from cdk_highwater.table.deployment import MARKS_ANSWER_SECONDS, DeploymentFunction
from cdk_highwater.table.fitting import place_findings, unknown_indexes
from cdk_highwater.table.subject import Subject, TableLike, subject_of
from highwater.core import Finding, Mark, warm_up_charge
from highwater.core.findings import is_whole, remark, units_not_positive
from highwater.core.names import resource_label

MARKS = "Marks"
_WARM = (
    dynamodb.WarmThroughput,
    "a WarmThroughput",
    "give dynamodb.WarmThroughput(read_units_per_second=, write_units_per_second=)",
)


class PreWarm(Construct):
    """Raise the high-water marks of a table and its indexes during deploys.

    A mark only rises. If the table's mark is already as high or higher, nothing changes, so declaring a lower mark
    never breaks a deploy. This is why the construct uses a custom resource and not CloudFormation's property
    `WarmThroughput`, which fails if its value is lowered. Raising a mark is charged once. An information annotation
    states the approximate charge, calculated from the capacities in the template, or from 1 unit for an imported table.

    Args:
        scope: Parent construct.
        id: Unique within *scope*.
        table: The table, of any kind.
        warm_throughput: The mark of the table itself: both `read_units_per_second` and `write_units_per_second`, each
            at least 1. By default the table's mark is not raised.
        indexes: Marks of global secondary indexes by name. By default none.

    Raises:
        TypeError: If *table* is not a table, or another argument is of another type than documented.

    Example:
        ```python
        warm = dynamodb.WarmThroughput(read_units_per_second=2_000, write_units_per_second=3_000)
        PreWarm(stack, "Marks", table=visits, warm_throughput=warm)
        ```
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        table: TableLike,
        warm_throughput: dynamodb.WarmThroughput | None = None,
        indexes: Mapping[str, dynamodb.WarmThroughput] | None = None,
    ) -> None:
        require_or_none("warm_throughput", warm_throughput, *_WARM)
        fix = "give {index_name: dynamodb.WarmThroughput(...)}"
        require_or_none("indexes", indexes, Mapping, "marks by the names of indexes", fix)
        for name, warm in (indexes or {}).items():
            require("each key of indexes", name, str, "the name of an index", fix)
            require(f"indexes[{name!r}]", warm, *_WARM)
        super().__init__(scope, id)
        stack = cdk.Stack.of(self)
        subject = subject_of(table).seen_from(stack)
        wanted: dict[str | None, dynamodb.WarmThroughput] = {}
        if warm_throughput is not None:
            wanted[None] = warm_throughput
        for name, warm in (indexes or {}).items():
            wanted[name] = warm
        declared = {index: _declared_units(warm) for index, warm in wanted.items()}
        findings = [finding for index, units in declared.items() for finding in _units_findings(index, units)]
        findings += place_findings(subject, stack)
        if indexes:
            # an index may be added to the table after it is named here
            names = tuple(indexes)
            annotate_at_end(self, self, lambda: unknown_indexes(subject, subject.index_names(), names))
        if annotate(self, findings):
            bases = subject.template_capacities()
            marks = tuple(
                Mark(index, int(units["read"]), int(units["write"]), *bases.get(index, (1, 1)))
                for index, units in declared.items()
            )
            raise_marks(self, stack, subject, marks)
            annotate(self, mark_charges(marks, "without PreWarm, marks are not raised", subject))


def raise_marks(
    scope: Construct,
    stack: cdk.Stack,
    subject: Subject,
    marks: tuple[Mark, ...],
    *,
    after: IConstruct | None = None,
) -> None:
    """Create the custom resource that raises *marks*, with the id `MARKS`.

    Marks that are not above their base floors are ignored. Without other marks, no resource is created.

    Args:
        scope: Parent construct.
        stack: The stack of *scope*.
        subject: The table.
        marks: The marks of the table and its indexes.
        after: The construct that must be deployed before. By default the table.
    """
    wanted = [mark for mark in marks if mark.is_above_base]
    if not wanted:
        return
    function = DeploymentFunction.of(stack)
    permissions = function.allow_marks(subject)
    resource = cdk.CustomResource(
        scope,
        MARKS,
        resource_type="Custom::HighwaterMarks",
        service_token=function.service_token,
        service_timeout=cdk.Duration.seconds(MARKS_ANSWER_SECONDS),
        properties={
            "TableName": subject.name,
            "Marks": json.dumps([{"index": mark.index, "read": mark.read, "write": mark.write} for mark in wanted]),
        },
    )
    predecessor = after or subject.template
    resource.node.add_dependency(*permissions, *([] if predecessor is None else [predecessor]))


def mark_charges(marks: tuple[Mark, ...], remedy: str, subject: Subject) -> list[Finding]:
    """Return what raising *marks* is charged, as an information; *remedy* says how to avoid it. None for no mark."""
    wanted = [mark for mark in marks if mark.is_above_base]
    regions = subject.charged_regions()
    charges = [charge for each in regions if (charge := warm_up_charge(tuple(wanted), each)) is not None]
    if not wanted or not charges:
        return []
    own, *others = charges
    text = f"at {own.prices.region} prices at most about {own.arithmetic}"
    if others:
        usd = sum((charge.usd for charge in others), own.usd)
        text += "".join(f", at {charge.prices.region} prices ${charge.usd}" for charge in others)
        text += f", ${usd} together"
    problem = f"{_marks_text(wanted)}; charged once when it is raised, {text}"
    fix = f"a mark that the table already has is not charged again; {remedy}"
    return [remark("warmUpCharge", "high-water mark", problem, fix)]


def _marks_text(marks: list[Mark]) -> str:
    return ", ".join(f"{resource_label(mark.index)} {mark.read:,} RCU and {mark.write:,} WCU" for mark in marks)


def _declared_units(warm: dynamodb.WarmThroughput) -> dict[str, Any]:
    """The units as declared; jsii returns whole numbers as floats, so they are converted back."""
    units = {"read": warm.read_units_per_second, "write": warm.write_units_per_second}
    return {
        name: int(value) if isinstance(value, float) and value.is_integer() else value for name, value in units.items()
    }


def _units_findings(index: str | None, units: Mapping[str, Any]) -> list[Finding]:
    return [
        units_not_positive(f"high-water mark {name} of {resource_label(index)}", value)
        for name, value in units.items()
        if not is_whole(value) or value < 1
    ]
