"""Raising high-water marks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct, IConstruct

from cdk_highwater.annotations import annotate
from cdk_highwater.deployment_function import DeploymentFunction
from cdk_highwater.subject import Subject, TableLike, subject_of
from highwater.core import Finding, Mark, warm_up_charge
from highwater.core.findings import is_whole, remark, units_not_positive
from highwater.core.names import resource_label


class PreWarmStrategy(StrEnum):
    """How a mark is raised.

    WARM_THROUGHPUT asks DynamoDB for it; the deploy does not wait for the minutes that it takes. PROVISION_AND_LOWER,
    for partitions without that, provisions the mark once, waits until it stands and goes back, which uses one of the
    day's decreases; however the deploy ends, capacity goes back.
    """

    WARM_THROUGHPUT = "warm-throughput"
    PROVISION_AND_LOWER = "provision-and-lower"


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
        warm_throughput: The table's own mark: both `read_units_per_second` and `write_units_per_second`, each at least
            1. By default it is left alone.
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
        warm_throughput: dynamodb.WarmThroughput | None = None,
        indexes: Mapping[str, dynamodb.WarmThroughput] | None = None,
        strategy: PreWarmStrategy = PreWarmStrategy.WARM_THROUGHPUT,
    ) -> None:
        super().__init__(scope, id)
        subject = subject_of(table)
        wanted: dict[str | None, dynamodb.WarmThroughput] = {}
        if warm_throughput is not None:
            wanted[None] = warm_throughput
        for name, warm in (indexes or {}).items():
            wanted[name] = warm
        given = {index: _given(warm) for index, warm in wanted.items()}
        findings = [finding for index, units in given.items() for finding in _units_findings(index, units)]
        if annotate(self, findings):
            bases = subject.template_capacities()
            marks = tuple(
                Mark(index, int(units["read"]), int(units["write"]), *bases.get(index, (1, 1)))
                for index, units in given.items()
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
    """Make the custom resource that raises *marks*, *after* another, and annotate the charge.

    Makes nothing for marks that reaching the base floors gives anyway.
    """
    wanted = [mark for mark in marks if mark.is_above_base]
    if not wanted:
        return
    function = DeploymentFunction.of(subject.stack)
    function.allow_marks(subject, provisions=strategy is PreWarmStrategy.PROVISION_AND_LOWER)
    resource = cdk.CustomResource(
        scope,
        "Marks",
        resource_type="Custom::HighwaterMarks",
        service_token=function.service_token,
        properties={
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
    problem = f"{_in_words(marks)}; {what}{charge.arithmetic}"
    return [remark("warmUpCharge", "high-water mark", problem, f"what is live already costs nothing again; {remedy}")]


def _in_words(marks: list[Mark]) -> str:
    return ", ".join(f"{resource_label(mark.index)} {mark.read:,} RCU and {mark.write:,} WCU" for mark in marks)


def _given(warm: dynamodb.WarmThroughput) -> dict[str, Any]:
    """The units as they were given, which jsii hands back as floats where they are whole."""
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
