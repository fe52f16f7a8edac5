"""What a template declares for a table and this cloud does not model: said in the stack's events and in the log.

So is what a request changes of a global table in one region, and this cloud leaves as it is in the others. The lists
here are of what is modelled. A property that is in none of them is said, so a new one is not silent either.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any, Final

from highwater_local import ministack
from highwater_local.ministack import Document

_READS: Final = frozenset({"ReadOnDemandThroughputSettings", "ReadProvisionedThroughputSettings"})
_SETTINGS: Final = _READS | {"WriteOnDemandThroughputSettings", "WriteProvisionedThroughputSettings"}
_OF_BOTH: Final = frozenset(
    {
        "AttributeDefinitions",
        "BillingMode",
        "GlobalSecondaryIndexes",
        "KeySchema",
        "LocalSecondaryIndexes",
        "SSESpecification",
        "StreamSpecification",
        "TableName",
        "TimeToLiveSpecification",
        "WarmThroughput",
    }
)
_OF_ONE_REGION: Final = frozenset({"PointInTimeRecoverySpecification", "TableClass", "Tags"})
_OF_TABLE: Final = (
    _OF_BOTH | _OF_ONE_REGION | {"DeletionProtectionEnabled", "OnDemandThroughput", "ProvisionedThroughput"}
)
_OF_GLOBAL_TABLE: Final = _OF_BOTH | _SETTINGS | {"Replicas"}
_OF_REPLICA: Final = _OF_ONE_REGION | _READS | {"GlobalSecondaryIndexes", "Region"}
_OF_INDEX: Final = frozenset({"IndexName", "KeySchema", "OnDemandThroughput", "Projection", "ProvisionedThroughput"})
_OF_EITHER_INDEX: Final = _OF_INDEX | _SETTINGS | {"WarmThroughput"}


# Settings of the whole global table that a request sets in the region called alone. What DynamoDB itself keeps by
# replica, such as the table class and deletion protection, is not among them.
_STAYING_OF_INDEX: Final = ("OnDemandThroughput", "WarmThroughput")
_STAYING: Final = (*_STAYING_OF_INDEX, "SSESpecification", "StreamSpecification", "TimeToLiveSpecification")


def say_staying(request: Document, regions: list[str]) -> None:
    """Say in the log what of an UpdateTable or UpdateTimeToLive does not reach a global table's other *regions*."""
    found: list[str] = [name for name in _STAYING if name in request]
    updated = [update.get("Update") or {} for update in request.get("GlobalSecondaryIndexUpdates") or []]
    of_indexes = [name for name in _STAYING_OF_INDEX if any(name in update for update in updated)]
    found += [f"GlobalSecondaryIndexUpdates.{name}" for name in of_indexes]
    if found and regions:
        logging.getLogger(__name__).warning(
            "The local cloud sets %s of the global table %s in %s only, and not in %s",
            ", ".join(found),
            request["TableName"],
            ministack.get_region(),
            ", ".join(sorted(regions)),
        )


def say_unmodelled(kind: str, properties: Document, stack: str, name: str) -> None:
    """Say what of a table's *properties* this cloud does not model: one event of the stack, and one line in the log."""
    found = sorted(set(unmodelled(kind, properties)))
    if not found:
        return
    text = f"The local cloud does not model {', '.join(found)}: {name} is without"
    logging.getLogger(__name__).warning("%s", text)
    record = ministack.find_stack(stack)
    if record is not None:
        ministack.add_stack_event(record["StackId"], stack, name, kind, "CREATE_IN_PROGRESS", text, name)


def unmodelled(kind: str, properties: Document) -> Iterator[str]:
    """Yield the properties that a template declares for a table of that *kind* and this cloud does not model.

    A property of a part is named after it, such as `Replicas.ResourcePolicy`. What is declared as off is left out.
    """
    yield from _others(properties, _OF_TABLE if kind == ministack.TABLE else _OF_GLOBAL_TABLE)
    yield from _of_indexes("GlobalSecondaryIndexes", properties)
    for replica in properties.get("Replicas") or []:
        yield from (f"Replicas.{name}" for name in _others(replica, _OF_REPLICA))
        yield from _of_indexes("Replicas.GlobalSecondaryIndexes", replica)


def _of_indexes(place: str, properties: Document) -> Iterator[str]:
    for index in properties.get("GlobalSecondaryIndexes") or []:
        yield from (f"{place}.{name}" for name in _others(index, _OF_EITHER_INDEX))


def _others(declared: Document, modelled: frozenset[str]) -> Iterator[str]:
    return (name for name, value in declared.items() if name not in modelled and not _is_off(value))


def _is_off(value: Any) -> bool:
    if isinstance(value, dict):
        return str(value.get("Enabled")).lower() == "false"
    return str(value).lower() in ("false", "none", "eventual", "", "[]")


def without_service_tags(properties: Document) -> Document:
    """Return a table's properties without CloudFormation's own tags, which tables were not seen to have on AWS."""
    tags = properties.get("Tags")
    if not isinstance(tags, list):
        return properties
    return properties | {"Tags": [tag for tag in tags if not str(tag.get("Key", "")).startswith("aws:")]}


def settle_replica(name: str, old: Document, new: Document, *, has_own_tags: bool) -> None:
    """Give a table in the present region what its template declares for that region: recovery, class and tags."""
    table = ministack.tables().get(name)
    if table is None:
        return
    recovery = new.get("PointInTimeRecoverySpecification")
    if recovery and recovery != old.get("PointInTimeRecoverySpecification"):
        enabled = str(recovery.get("PointInTimeRecoveryEnabled")).lower() == "true"
        days = recovery.get("RecoveryPeriodInDays")
        wanted = {"PointInTimeRecoveryEnabled": enabled} | ({"RecoveryPeriodInDays": int(days)} if days else {})
        ministack.update_backups({"TableName": name, "PointInTimeRecoverySpecification": wanted})
    if new.get("TableClass") != old.get("TableClass"):
        table["TableClassSummary"] = {"TableClass": new.get("TableClass") or "STANDARD"}
    if has_own_tags:
        before, after = ({tag["Key"]: tag["Value"] for tag in each.get("Tags") or []} for each in (old, new))
        if gone := [tag for tag in before if tag not in after]:
            ministack.untag_table({"ResourceArn": table["TableArn"], "TagKeys": gone})
        tags = [{"Key": tag, "Value": value} for tag, value in after.items()]
        ministack.tag_table({"ResourceArn": table["TableArn"], "Tags": tags})
