"""Raising high-water marks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import aws_cdk as cdk
from constructs import Construct, IConstruct

from cdk_highwater.annotations import annotate
from cdk_highwater.deployment_function import DeploymentFunction
from cdk_highwater.subject import Subject, TableLike, subject_of
from highwater.core import Finding, Mark, Severity, warm_up_charge
from highwater.core.findings import is_whole, units_not_positive


class PreWarmStrategy(StrEnum):
    """How a mark is raised.

    WARM_THROUGHPUT asks DynamoDB for it; the deploy does not wait for the minutes that it takes. PROVISION_AND_LOWER,
    for partitions without that, provisions the mark once, waits until it stands and goes back, which uses one of the
    day's decreases; however the deploy ends, capacity goes back.
    """

    WARM_THROUGHPUT = "warm-throughput"
    PROVISION_AND_LOWER = "provision-and-lower"


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmUnits:
    """A mark in units per second, each at least 1.

    Attributes:
        read: Read units.
        write: Write units.
    """

    read: int
    write: int


class PreWarm(Construct):
    """Raise a table's high-water mark during deploys, and its indexes'.

    A mark only rises: one that is live already, or higher, is left as it is, so declaring a lower mark changes
    nothing and never breaks a deploy. For that reason this is a custom resource and not CloudFormation's
    `WarmThroughput` property, which fails when it goes down. Raising is charged once; an information annotation
    says about how much, reckoned from the capacities in the template, for an imported table from one unit.

    Args:
        scope: Parent construct.
        id: Unique within *scope*.
        table: The table, of any kind.
        units: The table's own mark. By default it is left alone.
        indexes: Marks of global secondary indexes by name. By default none.
        strategy: How to raise. By default WARM_THROUGHPUT.

    Raises:
        TypeError: If *table* is no table.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        table: TableLike,
        units: WarmUnits | None = None,
        indexes: Mapping[str, WarmUnits] | None = None,
        strategy: PreWarmStrategy = PreWarmStrategy.WARM_THROUGHPUT,
    ) -> None:
        super().__init__(scope, id)
        subject = subject_of(table)
        wanted: dict[str | None, WarmUnits] = {} if units is None else {None: units}
        for name, index_units in (indexes or {}).items():
            wanted[name] = index_units
        findings = [finding for index, mark in wanted.items() for finding in _units_findings(index, mark)]
        if annotate(self, findings):
            bases = subject.template_capacities()
            marks = tuple(
                Mark(index, mark.read, mark.write, *bases.get(index, (1, 1))) for index, mark in wanted.items()
            )
            raise_marks(self, subject, marks, strategy, remedy="without PreWarm, marks are left to DynamoDB")


def raise_marks(
    scope: Construct,
    subject: Subject,
    marks: tuple[Mark, ...],
    strategy: PreWarmStrategy,
    *,
    remedy: str,
    after: IConstruct | None = None,
) -> None:
    """Make the custom resource that raises *marks*, *after* another, and tell the charge.

    Makes nothing for marks that come by themselves.
    """
    wanted = [mark for mark in marks if mark.is_above_base]
    if not wanted:
        return
    function = DeploymentFunction.of(subject.stack)
    function.allow_marks(subject, provisions=strategy is PreWarmStrategy.PROVISION_AND_LOWER)
    resource = cdk.CfnResource(
        scope,
        "Marks",
        type="Custom::HighwaterMarks",
        properties={
            "ServiceToken": function.service_token,
            "TableName": subject.name,
            "Strategy": str(strategy),
            "Marks": json.dumps([{"index": mark.index, "read": mark.read, "write": mark.write} for mark in wanted]),
        },
    )
    before = after or subject.template
    resource.node.add_dependency(*function.permissions, *([] if before is None else [before]))
    annotate(scope, _charge_findings(wanted, strategy, remedy))


def _charge_findings(marks: list[Mark], strategy: PreWarmStrategy, remedy: str) -> list[Finding]:
    charge = warm_up_charge(tuple(marks))
    if charge is None:
        return []
    what = "charged once when it is raised, at us-east-1 prices at most about "
    if strategy is PreWarmStrategy.PROVISION_AND_LOWER:
        what = "provisioned for an hour at least when it is raised, at us-east-1 prices about "
    return [
        Finding(
            id="highwater:warmUpCharge",
            severity=Severity.INFO,
            subject="high-water mark",
            got=_told(marks),
            allowed=what + charge.arithmetic,
            fix=f"what is live already costs nothing again; {remedy}",
        )
    ]


def _told(marks: list[Mark]) -> str:
    parts = []
    for mark in marks:
        subject = "table" if mark.index is None else f"index {mark.index!r}"
        parts.append(f"{subject} {mark.read:,} RCU and {mark.write:,} WCU")
    return ", ".join(parts)


def _units_findings(index: str | None, units: WarmUnits) -> list[Finding]:
    subject = "table" if index is None else f"index {index!r}"
    given: dict[str, Any] = {"read": units.read, "write": units.write}
    return [
        units_not_positive(f"high-water mark {name} of {subject}", value)
        for name, value in given.items()
        if not is_whole(value) or value < 1
    ]
