"""Units with which CloudFormation creates a table and its indexes, before auto scaling raises them to their floors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cdk_highwater.global_secondary_index import GlobalSecondaryIndex
from highwater.core import Finding
from highwater.core.findings import above_quota, is_whole, units_not_positive
from highwater.core.names import resource_label
from highwater.core.plan.capacity import is_deploy_time

# The value must never change: after a change in the template, CloudFormation would reset the live capacity.
LOWEST_INITIAL_UNITS = 1


def initial_findings(
    read: object, write: object, indexes: Iterable[GlobalSecondaryIndex], *, quota_units: int
) -> Iterator[Finding]:
    """Find initial units that are not positive whole numbers, or above the quota; a deploy would fail on them.

    Args:
        read: The table's initial read units. A number that only CloudFormation knows is not checked.
        write: The table's initial write units, likewise.
        indexes: The indexes. `None` means the same units as the table.
        quota_units: The account's quota. One that is not a positive whole number is reported with the plan.
    """
    declared = {"table initial_read_units": read, "table initial_write_units": write}
    for index in indexes:
        label = resource_label(index.index_name)
        own = {"initial_read_units": index.initial_read_units, "initial_write_units": index.initial_write_units}
        declared |= {f"{label} {name}": units for name, units in own.items() if units is not None}
    has_quota = is_whole(quota_units) and quota_units > 0
    for subject, units in declared.items():
        if is_deploy_time(units):
            continue
        if not isinstance(units, int) or not is_whole(units) or units < 1:
            yield units_not_positive(subject, units)
        elif has_quota and units > quota_units:
            yield above_quota(subject, units, quota_units)


def synthesizable(units: int) -> int:
    """Return *units*, or the lowest value in place of one of another type: the CDK refuses some of these by itself."""
    return units if is_deploy_time(units) or is_whole(units) else LOWEST_INITIAL_UNITS
