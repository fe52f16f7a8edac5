"""Billing modes: how often a table may be switched, how DescribeTable shows its mode, and maxima on demand.

All of it is as recorded of AWS: radkawar/stackd 9dc356f, dynamodb/billing_mode_limits and dynamodb/on_demand_limits.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from highwater_local.autoscaling.records import ServiceError, invalid
from highwater_local.dynamodb.meters import TableMeters
from highwater_local.dynamodb.resources import indexes_of, is_on_demand, resource_of
from highwater_local.ministack import Answer, Document, rejected

_DAY_SECONDS: Final = 24 * 3600
_MOST_SWITCHES: Final = 4
_MAXIMUM: Final = "OnDemandThroughput"
_MEMBERS: Final = ("MaxReadRequestUnits", "MaxWriteRequestUnits")
_INVALID: Final = "One or more parameter values were invalid: "
_WITHOUT_UNITS: Final = f"{_INVALID}ProvisionedThroughput must be specified when BillingMode is PROVISIONED"
# For a request that names the mode: awslabs/amazon-kinesis-client#1357, 2024-07-02, and for an ImportTable a test of
# getmoto/moto that passes on AWS (tests/test_dynamodb/test_dynamodb_import_table.py). For one without a mode:
# mhart/dynalite. All read 2026-11.
_CREATED_WITHOUT_UNITS: Final = (
    f"{_INVALID}ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED"
)


def switch_refusal(table: Document, meters: TableMeters, request: Document, second: int) -> ServiceError | None:
    """Return why a switch to on-demand is rejected, `None` if the request is none, or is allowed.

    Four are allowed in any 24 hours. A table that was created on demand has used one of them.
    """
    if request.get("BillingMode") != "PAY_PER_REQUEST" or is_on_demand(table):
        return None
    recent = [at for at in meters.switches if second - at < _DAY_SECONDS]
    if len(recent) < _MOST_SWITCHES:
        return None
    return ServiceError(
        "LimitExceededException",
        f"Subscriber limit exceeded: Update to PayPerRequest mode are limited to {_MOST_SWITCHES} in 1 day(s). Last "
        f"update at {_long(recent[-1])}. Next update can be made at {_long(recent[-_MOST_SWITCHES] + _DAY_SECONDS)}",
    )


def _long(second: int) -> str:
    return f"{datetime.fromtimestamp(second, UTC):%a %b %d %H:%M:%S UTC %Y}"


def summary_of(table: Document, meters: TableMeters, second: int) -> Document | None:
    """Return DescribeTable's `BillingModeSummary`, `None` for a table that has always been provisioned.

    A switch that is in progress shows the new mode, and the time of the last one that is complete.
    """
    if not meters.was_on_demand:
        return None
    summary: Document = {"BillingMode": "PAY_PER_REQUEST" if is_on_demand(table) else "PROVISIONED"}
    settled = [at for at in meters.switches if at <= second]
    return summary | ({"LastUpdateToPayPerRequestDateTime": settled[-1]} if settled else {})


def missing_capacity_refusal(request: Document) -> ServiceError | None:
    """Return the rejection of a request for provisioned capacity without units, `None` for any other."""
    if request.get("BillingMode") != "PROVISIONED" or "ProvisionedThroughput" in request:
        return None
    return invalid(_WITHOUT_UNITS)


def creation_worded(answer: Answer) -> Answer:
    """Return the answer to a CreateTable with DynamoDB's own text if units are missing.

    MiniStack has the text of UpdateTable there.
    """
    if answer[0] == 400 and json.loads(answer[2]).get("message") == _WITHOUT_UNITS:
        return rejected(_CREATED_WITHOUT_UNITS)
    return answer


def maximum_refusal(created: Document, index: str | None = None) -> ServiceError | None:
    """Return the rejection of a new table or *index* with a maximum below 1, `None` if it may be created.

    -1 removes a maximum that there is, and so is rejected at creation. The text was recorded of an index.
    """
    for member, units in (created.get(_MAXIMUM) or {}).items():
        if int(units) < 1:
            place = "table" if index is None else f"index: {index}"
            return invalid(
                f"One or more parameter values were invalid: Requested {member} for {_MAXIMUM} for {place} is outside "
                "of valid range"
            )
    return None


def set_maxima(resource: Document, given: Document | None) -> None:
    """Give a new table or index the maxima that were declared for it, which may be text as in a template."""
    resource.pop(_MAXIMUM, None)
    if given:
        resource[_MAXIMUM] = _units(given)


def update_maxima(table: Document, before: Document, request: Document) -> None:
    """Apply the maxima of an UpdateTable to a table, which was *before* as it says.

    A maximum that is left out stays; -1 removes one, and is shown until the next change.
    """
    for index, given in _changed_maxima(request):
        resource, old = resource_of(table, index), resource_of(before, index)
        if resource is not None:
            kept = {member: units for member, units in ((old or {}).get(_MAXIMUM) or {}).items() if units > 0}
            resource[_MAXIMUM] = kept | _units(given)


def clear_maxima(table: Document) -> None:
    """Remove all maxima of a table, as the switch to provisioned capacity does; they do not come back with the mode."""
    for index in (None, *indexes_of(table)):
        (resource_of(table, index) or {}).pop(_MAXIMUM, None)


def _changed_maxima(request: Document) -> Iterator[tuple[str | None, Document]]:
    if request.get(_MAXIMUM):
        yield None, request[_MAXIMUM]
    for update in request.get("GlobalSecondaryIndexUpdates") or []:
        change = update.get("Update") or {}
        if change.get(_MAXIMUM):
            yield change["IndexName"], change[_MAXIMUM]


def _units(given: Document) -> dict[str, int]:
    return {member: int(given[member]) for member in _MEMBERS if given.get(member) is not None}
