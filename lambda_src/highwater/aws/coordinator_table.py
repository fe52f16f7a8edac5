"""The coordinator's DynamoDB table: the leases of each table with their log, and the pulses of fleets."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from operator import index as whole
from typing import TYPE_CHECKING, Any, Final, TypeVar

import boto3

from highwater.calls.attempts import AWAITED, client_config
from highwater.calls.records import Item, Records, pause_after_lost_write, sort_key_of
from highwater.core.boosts import Lease
from highwater.core.boosts.lease import boost_documents, leases_of_document, target_of_text, target_text
from highwater.core.codec import instant_of_text
from highwater.core.documents import read_document
from highwater.core.names import TTL_ATTRIBUTE, leases_parameter
from highwater.core.plan.plan import TargetKey
from highwater.core.pulses import (
    HINT_ATTRIBUTE,
    KEPT_SECONDS,
    PULSE_SHARDS,
    SLOTS_PER_MINUTE,
    Hint,
    Slots,
    hints_of_shards,
    hints_text,
    pulse_partition,
    pulse_sort_key,
    slots_of_items,
)
from highwater.core.scaler.demand import DemandAlone

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_ssm import SSMClient

T = TypeVar("T")
_LEASES: Final = "leases"
# apart from the leases: each write of an item costs units for all of it
_TURN: Final = "turn"
_LOG: Final = "log#"
# The partition whose sort keys are the labels of the tables with boosts. It is no label, and no caller may write it.
_LISTED: Final = "#boosts"
# Retention of the log
KEPT: Final = timedelta(days=90)
# An ended lease remains in the item for this long, so that a job that renews it too late gets an answer that says so
_ENDED_KEPT: Final = timedelta(hours=1)
# An item has at most 400 KB (Amazon DynamoDB Developer Guide, "Service quotas"); renewals and releases make it longer.
_MOST_BYTES: Final = 300_000
# For callers with at most so many boosts there is more room, so that nobody is shut out by callers with many.
_FEW_OF_A_CALLER: Final = 10
_MOST_BYTES_FOR_FEW: Final = 350_000
# Of one caller: a third of that, and as many boosts as jobs that may begin in an hour.
_MOST_BYTES_OF_A_CALLER: Final = 100_000
_MOST_OF_A_CALLER: Final = 300
# A tick a minute records the demand of a boosted target. An older record is of a time without ticks.
_DEMAND_KEPT: Final = timedelta(minutes=2)


class LeasesUnavailableError(Exception):
    """The lease table does not answer, rejects the call (the message is AWS's), or has an item that makes no sense."""


class LeasesFullError(Exception):
    """The table has too many boosts, live or ended within the hour: their item would be too large."""


def client(region: str | None = None) -> DynamoDBClient:
    """Create a client with timeouts of seconds, because a job waits for the answer."""
    return boto3.client("dynamodb", config=client_config(AWAITED, (2, 3)), region_name=region)


def find_lease_table(ssm: SSMClient, scaler: str) -> str | None:
    """Return the name of the table with the boosts of a scaler's tables, `None` without a coordinator."""
    try:
        return ssm.get_parameter(Name=leases_parameter(scaler))["Parameter"]["Value"]
    except ssm.exceptions.ParameterNotFound:
        return None


@dataclass(frozen=True, slots=True)
class TableLeases:
    """The boosts of one table, as they were read.

    Attributes:
        leases: The leases, live or not.
        boosted: The units of each target's floor that are for boosts, as recorded by the turn that set the floor.
        demands: Of these targets, the units that demand and plan account for beside them, as recorded likewise.
        version: The version of the leases, another one after each write; 0 if there were none yet.
        alone: The demand of targets with a live boost, as recorded likewise.
        noted_at: The time of that turn; `None` before the first record.
    """

    leases: tuple[Lease, ...] = ()
    boosted: Mapping[TargetKey, int] = field(default_factory=dict)
    version: int = 0
    demands: Mapping[TargetKey, int] = field(default_factory=dict)
    alone: Mapping[TargetKey, DemandAlone] = field(default_factory=dict)
    noted_at: datetime | None = None

    def demand_alone(self, key: TargetKey, now: datetime) -> DemandAlone | None:
        """Return the demand of a target that a turn recorded in the last two minutes; `None` without such a record."""
        if self.noted_at is None or now - self.noted_at > _DEMAND_KEPT:
            return None
        return self.alone.get(key)

    def recent(self, now: datetime) -> TableLeases:
        """Return them without the leases that ended too long ago to be kept."""
        return replace(self, leases=tuple(lease for lease in self.leases if lease.ends > now - _ENDED_KEPT))

    def of(self, owner: str, id: str) -> list[Lease]:
        """Return the leases of one boost, one for each of its targets. Another caller's boost of that id is another."""
        return [lease for lease in self.leases if (lease.owner, lease.id) == (owner, id)]


def _worth_keeping(leases: Iterable[Lease], now: datetime) -> Iterator[Lease]:
    """Yield the leases that are kept: of a boost that has ended, one without its reason, which is in the log."""
    ended: set[tuple[str, str]] = set()
    for lease in leases:
        if lease.ends > now:
            yield lease
        elif lease.ends > now - _ENDED_KEPT and (lease.owner, lease.id) not in ended:
            ended.add((lease.owner, lease.id))
            yield replace(lease, reason="")


def check_share(leases: Iterable[Lease], owner: str, now: datetime) -> None:
    """Raise `LeasesFullError` if a table's item has no room for *leases*, of which *owner* has added some.

    No caller can leave the others without room: each has a share, and the last part of the item is for callers with
    few boosts.
    """
    kept = boost_documents(_worth_keeping(leases, now))
    own = [document for document in kept if document["owner"] == owner]
    size = len(_text(own).encode())
    if len(own) > _MOST_OF_A_CALLER or size > _MOST_BYTES_OF_A_CALLER:
        message = (
            f"{owner} has {len(own) - 1:,} boosts that are live, booked or ended within the hour; allowed: "
            f"{_MOST_OF_A_CALLER} or {_MOST_BYTES_OF_A_CALLER:,} bytes; ask later"
        )
        raise LeasesFullError(message)
    most = _MOST_BYTES_FOR_FEW if len(own) <= _FEW_OF_A_CALLER else _MOST_BYTES
    if len(_text(kept).encode()) > most:
        message = f"{len(kept):,} boosts are live, booked or ended within the hour; no more can be kept; ask later"
        raise LeasesFullError(message)


def _seconds(at: datetime) -> str:
    return f"{at.timestamp():.3f}"


def _text(documents: Sequence[Mapping[str, Any]]) -> str:
    return json.dumps(documents, separators=(",", ":"), ensure_ascii=False)


class LeaseTable:
    """The coordinator's table. Its methods raise `LeasesUnavailableError` if it does not answer.

    Args:
        name: The name of the DynamoDB table.
        dynamodb: The client to use. By default a new one.
    """

    def __init__(self, name: str, dynamodb: DynamoDBClient | None = None) -> None:
        self._records = Records(name, dynamodb or client(), fails=lambda error: LeasesUnavailableError(str(error)))

    def read(self, label: str) -> TableLeases:
        """Read the boosts of a table; raises `LeasesUnavailableError` also for an item that somebody else wrote."""
        return self._leases_of(label, self._records.read((label, _LEASES)))

    def _leases_of(self, label: str, item: Item) -> TableLeases:
        try:
            boosted, demands, alone = (
                read_document(item[name]["S"]) if name in item else {} for name in ("boosted", "demands", "alone")
            )
            listed = read_document(item["leases"]["S"]) if "leases" in item else []
            return TableLeases(
                tuple(lease for document in listed for lease in leases_of_document(document)),
                {target_of_text(text): whole(units) for text, units in boosted.items()},
                int(item["version"]["N"]) if "version" in item else 0,
                {target_of_text(text): whole(units) for text, units in demands.items()},
                {target_of_text(text): DemandAlone(*map(whole, found)) for text, found in alone.items()},
                instant_of_text(item["boosted_at"]["S"]) if "boosted_at" in item else None,
            )
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            message = (
                f"item {label!r}, {_LEASES!r} of table {self._records.table} is not as it was written: {error!r}; "
                "delete it"
            )
            raise LeasesUnavailableError(message) from error

    def change(
        self,
        label: str,
        changed: Callable[[TableLeases], tuple[T, Iterable[Lease] | None]],
        now: datetime,
        again: Callable[[int], None] = pause_after_lost_write,
    ) -> T:
        """Read the boosts of a table, change them, and write them without those that ended more than an hour ago.

        The table is listed first, so that each tick serves it until `unlist_table`. `check_share` says before whether
        there is room for a new boost; renewals and releases always have room.

        Args:
            label: The table.
            changed: Returns its result, and all leases as they are to be, `None` to write nothing. Called again if
                another request has written them meanwhile.
            now: The aware instant by which leases have ended.
            again: As for `Records.change`.

        Raises:
            LeasesUnavailableError: The table does not answer; they may be written or not.
        """

        def write(item: Item) -> tuple[T, Item | None]:
            result, leases = changed(self._leases_of(label, item))
            if leases is None:
                return result, None
            self.list_table(label)
            return result, _attributes(leases, now)

        return self._records.change((label, _LEASES), write, again)

    def list_table(self, label: str) -> None:
        """Have each tick serve a table until `unlist_table`."""
        self._records.put((_LISTED, label), {})

    def listed_tables(self) -> tuple[str, ...]:
        """Return the labels of the tables that each tick serves."""
        # one page of 1 MB has ten thousand tables
        page = next(self._records.pages(_LISTED, ConsistentRead=True))
        return tuple(sort_key_of(item) for item in page["Items"])

    def unlist_table(self, label: str, known: TableLeases, now: datetime) -> None:
        """Have ticks serve a table no more: all boosts in *known*, as they were read, are over at *now*.

        It stays listed if its boosts were written meanwhile.
        """
        version = {"N": str(known.version)} if known.version else None
        self._records.delete((_LISTED, label))
        # a request that listed the table before the deletion can now not write its leases: it lists it again
        if not self._records.replace((label, _LEASES), version, _attributes(known.leases, now)):
            self.list_table(label)

    def note_boosted(
        self,
        label: str,
        boosted: Mapping[TargetKey, int],
        demands: Mapping[TargetKey, int],
        alone: Mapping[TargetKey, DemandAlone],
        at: datetime,
    ) -> None:
        """Record `TableLeases.boosted`, `demands` and `alone`, which the turn at the aware instant *at* found.

        Nothing is recorded if a later turn than *at* has done so.
        """
        recorded: dict[str, Mapping[TargetKey, object]] = {
            "boosted": boosted,
            "demands": {key: units for key, units in demands.items() if key in boosted},
            "alone": {key: (each.units, each.minutes) for key, each in alone.items()},
        }
        values = {
            name: {"S": json.dumps({target_text(key): each[key] for key in sorted(each, key=target_text)})}
            for name, each in recorded.items()
        }
        # of two turns, the later one has set the floors
        self._records.update(
            (label, _LEASES),
            "SET boosted = :boosted, demands = :demands, alone = :alone, boosted_at = :at",
            "attribute_not_exists(boosted_at) OR boosted_at <= :at",
            {**values, "at": {"S": at.astimezone(UTC).isoformat()}},
        )

    def claim_turn(self, label: str, now: datetime, interval: timedelta) -> bool:
        """Return whether a turn for the table is due: the last one was claimed *interval* ago or earlier.

        If it is, the turn is claimed for the caller.
        """
        claimed = self._records.update(
            (label, _TURN),
            "SET turned_at = :now",
            "attribute_not_exists(turned_at) OR turned_at <= :before OR turned_at > :now",
            {"now": {"N": _seconds(now)}, "before": {"N": _seconds(now - interval)}},
        )
        return claimed is not None

    def is_turned_since(self, label: str, at: datetime) -> bool:
        """Return whether a turn for the table was claimed after the aware instant *at*."""
        item = self._records.read((label, _TURN))
        return "turned_at" in item and float(item["turned_at"]["N"]) > at.timestamp()

    def log(self, label: str, id: str, what: str, entry: Mapping[str, Any], at: datetime) -> None:
        """Add an entry to the log: *what* was done with the boost *id*."""
        instant = at.astimezone(UTC).isoformat()
        self._records.put(
            (label, f"{_LOG}{instant}#{id}#{what}"),
            {
                "entry": {"S": json.dumps({"at": instant, "id": id, "what": what, **entry}, separators=(",", ":"))},
                TTL_ATTRIBUTE: {"N": str(int((at + KEPT).timestamp()))},
            },
        )

    def log_refusal(self, label: str, owner: str, entry: Mapping[str, Any], at: datetime) -> None:
        """Log that a request was refused: one entry a minute and caller, so that requests in a loop fill no log."""
        self.log(label, owner, "refused", entry, at.replace(second=0, microsecond=0))

    def read_log(self, label: str, most: int = 50) -> list[dict[str, Any]]:
        """Read the last entries about a table, the newest first, up to *most*."""
        page = next(self._records.pages(label, begins_with=_LOG, ScanIndexForward=False, Limit=most))
        return [read_document(item["entry"]["S"]) for item in page["Items"]]


def _attributes(leases: Iterable[Lease], now: datetime) -> Item:
    return {"leases": {"S": _text(boost_documents(_worth_keeping(leases, now)))}}


# Read units that one look at crowded items may consume, 4 MB; with 21 minutes in eight shards it could be 16,800.
_MOST_UNITS_OF_CROWDED: Final = 1_000
# The shards' shares of a fleet's demand are those of so many minutes.
_SHARE_MINUTES: Final = 3


class PulsesUnavailableError(Exception):
    """The coordinator's table does not answer, or rejects the call. The message is from AWS."""


class PulseTable:
    """The items with pulses in the coordinator's table.

    Args:
        name: The name of the DynamoDB table.
        dynamodb: The client to use. By default a new one.

    Attributes:
        crowded: The labels whose items, as last read, have more than fits into a page of 1 MB.
    """

    def __init__(self, name: str, dynamodb: DynamoDBClient | None = None) -> None:
        self._records = Records(name, dynamodb or client(), fails=lambda error: PulsesUnavailableError(str(error)))
        # units that were reported lately in each shard of a table, by label, as last read
        self._units: dict[str, dict[int, int]] = {}
        self.crowded: set[str] = set()

    def read(self, label: str, first_minute: int, newest_slot: int) -> Mapping[TargetKey, Slots]:
        """Read the pulses of a table's fleet from *first_minute* to *newest_slot*, both counted since 1970.

        The answer has only the targets with pulses. `crowded` then has the label if there is more in the items than a
        fleet writes. Raises `PulsesUnavailableError`.
        """
        items: list[tuple[int, dict[str, str]]] = []
        left = float(_MOST_UNITS_OF_CROWDED)
        self._units[label] = {}
        self.crowded.discard(label)
        minutes = range(first_minute, newest_slot // SLOTS_PER_MINUTE + 1)
        for shard in range(PULSE_SHARDS):
            found = self._items(pulse_partition(label, shard), minutes)
            if found is None:
                self.crowded.add(label)
                found, left = self._items_one_by_one(pulse_partition(label, shard), minutes, left)
            items += found
            lately = slots_of_items(found, newest_slot // SLOTS_PER_MINUTE - _SHARE_MINUTES, newest_slot)
            units = sum(sum(slots.asked_units()) for slots in lately.values())
            if units:
                self._units[label][shard] = units
        return slots_of_items(items, first_minute, newest_slot)

    def _items(self, partition: str, minutes: range) -> list[tuple[int, dict[str, str]]] | None:
        """Minutes, and the numbers in their items; `None` if they do not fit into a page of 1 MB."""
        between = pulse_sort_key(minutes[0]), pulse_sort_key(minutes[-1])
        found = next(self._records.pages(partition, between=between, ConsistentRead=True))
        if found.get("LastEvaluatedKey"):
            return None
        keyed = [(sort_key_of(item), item) for item in found["Items"]]
        return [(int(minute), _numbers(item)) for minute, item in keyed if minute.isdecimal()]

    def _items_one_by_one(
        self, partition: str, minutes: range, left: float
    ) -> tuple[list[tuple[int, dict[str, str]]], float]:
        """Read the minutes' items by their keys, so that other items hide none; also return the read units left.

        Raises `PulsesUnavailableError` when *left* read units are used up.
        """
        found = []
        for minute in minutes:
            answer = self._records.get((partition, pulse_sort_key(minute)), ReturnConsumedCapacity="TOTAL")
            left -= answer["ConsumedCapacity"]["CapacityUnits"]
            if left < 0:
                message = f"the items of {len(minutes)} minutes take more than 4 MB, which no fleet writes"
                raise PulsesUnavailableError(message)
            if "Item" in answer:
                found.append((minute, _numbers(answer["Item"])))
        return found, left

    def tell(self, label: str, hints: Mapping[TargetKey, Hint], first_minute: int, minutes: int) -> None:
        """Write hints into the items of *minutes* minutes from *first_minute* on; raises `PulsesUnavailableError`.

        A hint for a shard says which share of the fleet's requests is reported in that shard, as last read.
        """
        for shard, own in hints_of_shards(hints, self._units.get(label, {})).items():
            for minute in range(first_minute, first_minute + minutes):
                values = {"hint": {"S": hints_text(own)}, "expires": {"N": str(minute * 60 + KEPT_SECONDS)}}
                self._records.update(
                    (pulse_partition(label, shard), pulse_sort_key(minute)),
                    f"SET #{HINT_ATTRIBUTE} = :hint, #{TTL_ATTRIBUTE} = :expires",
                    None,
                    values,
                )


def _numbers(item: Mapping[str, Any]) -> dict[str, str]:
    return {name: value["N"] for name, value in item.items() if "N" in value}
