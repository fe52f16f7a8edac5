"""`highwater.pulse`: reports this process's demand, so that the scaler can react within seconds."""

from __future__ import annotations

import atexit
import logging
import os
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from highwater.client.coordinator import BoostError, BoostRefusedError, CoordinatorClient
from highwater.client.hooks import Amounts, Counts, Meter
from highwater.core.plan.plan import TargetKey
from highwater.core.pulses import (
    HINT_ATTRIBUTE,
    KEPT_SECONDS,
    SLOT_SECONDS,
    SLOTS_PER_MINUTE,
    WOKEN_ATTRIBUTE,
    Hint,
    Slots,
    amount_attribute,
    hints_of_text,
    pulse_partition,
    pulse_sort_key,
    slots_of_items,
)

# the same as in highwater.aws.coordinator_table, which clients may not import
PARTITION_KEY, SORT_KEY, TTL_ATTRIBUTE = "table", "item", "expires"
_MINUTES_KEPT: Final = 3


@dataclass(slots=True)
class FleetTable:
    """The pulse items of one table's fleet, as this process last read them.

    Attributes:
        dynamodb: A DynamoDB client that is not metered.
        pulse_table: The name of the coordinator's table.
        label: The table whose demand is reported.
        hints: The scaler's newest hints, by target.
    """

    dynamodb: Any
    pulse_table: str
    label: str
    hints: dict[TargetKey, Hint] = field(default_factory=dict)
    _minutes: dict[int, dict[str, str]] = field(default_factory=dict)

    def add(self, amounts: Amounts) -> None:
        """Add the amounts to the items of their minutes, and remember the fleet's sums that DynamoDB returns.

        Raises `ClientError` or `BotoCoreError` of the first item that cannot be written. *amounts* then has only what
        certainly was not written: amounts that may have arrived are removed from it, as they could count twice.
        """
        for minute in sorted({slot // SLOTS_PER_MINUTE for slot, _, _ in amounts}):
            parts = {at: units for at, units in amounts.items() if at[0] // SLOTS_PER_MINUTE == minute}
            names = {f"#a{number}": amount_attribute(at[0], at[1], refused=at[2]) for number, at in enumerate(parts)}
            values = {f":a{number}": {"N": _text(units)} for number, units in enumerate(parts.values())}
            adding = ", ".join(f"#a{number} :a{number}" for number in range(len(parts)))
            may_have_arrived = True
            try:
                found = self.dynamodb.update_item(
                    TableName=self.pulse_table,
                    Key=self._key(minute),
                    UpdateExpression=f"ADD {adding} SET #expires = :expires",
                    ExpressionAttributeNames={**names, "#expires": TTL_ATTRIBUTE},
                    ExpressionAttributeValues={**values, ":expires": {"N": str(minute * 60 + KEPT_SECONDS)}},
                    ReturnValues="ALL_NEW",
                )
            except ClientError as error:
                may_have_arrived = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400) >= 500
                raise
            finally:
                if may_have_arrived:
                    for at in parts:
                        del amounts[at]
            self._learn(minute, found["Attributes"])

    def is_elected(self, slot: int) -> bool:
        """Elect, by a conditional write, the process that wakes the scaler in a slot; return whether it is this one."""
        try:
            self.dynamodb.update_item(
                TableName=self.pulse_table,
                Key=self._key(slot // SLOTS_PER_MINUTE),
                UpdateExpression="SET #woken = :slot",
                ConditionExpression="attribute_not_exists(#woken) OR #woken < :slot",
                ExpressionAttributeNames={"#woken": WOKEN_ATTRIBUTE},
                ExpressionAttributeValues={":slot": {"N": str(slot)}},
            )
        except ClientError as error:
            if error.response["Error"]["Code"] == "ConditionalCheckFailedException":
                return False
            raise
        return True

    def slots(self, newest_slot: int) -> Mapping[TargetKey, Slots]:
        """Return the fleet's sums of the last minutes, as last read by this process, up to a slot since 1970."""
        first = newest_slot // SLOTS_PER_MINUTE - _MINUTES_KEPT + 1
        return slots_of_items(self._minutes.items(), first, newest_slot)

    def needing_help(self, newest_slot: int) -> Iterator[TargetKey]:
        """Yield the targets whose burst bucket will run out before help comes, or whose requests are throttled."""
        for key, slots in self.slots(newest_slot).items():
            hint = self.hints.get(key)
            # without a hint the capacity is unknown, so the scaler is woken
            if hint is None or hint.needs_help(slots):
                yield key

    def is_near(self, newest_slot: int) -> bool:
        """Whether the fleet's demand for any target is so near its capacity that pulses should be frequent."""
        found = self.slots(newest_slot)
        return any(key in self.hints and self.hints[key].is_near(slots) for key, slots in found.items())

    def _learn(self, minute: int, attributes: Mapping[str, Mapping[str, str]]) -> None:
        self._minutes[minute] = {name: value["N"] for name, value in attributes.items() if "N" in value}
        for old in [each for each in self._minutes if each <= minute - _MINUTES_KEPT]:
            del self._minutes[old]
        told = hints_of_text(attributes.get(HINT_ATTRIBUTE, {}).get("S", "{}"))
        self.hints.update(told)

    def _key(self, minute: int) -> dict[str, Any]:
        return {PARTITION_KEY: {"S": pulse_partition(self.label)}, SORT_KEY: {"S": pulse_sort_key(minute)}}


def _text(units: float) -> str:
    return f"{units:.1f}".removesuffix(".0")


_LOG: Final = logging.getLogger("highwater.pulse")
# Interval of pulses while demand is far below the capacity; near the capacity, one for each slot.
_CALM_SECONDS: Final = 30
# A process whose demand is below a thousandth of the capacity reports once a minute.
_LITTLE_PARTS, _LITTLE_SECONDS, _LITTLE_SPREAD = 1_000, 60, 5
# The fleet's processes write within this time after a slot's end, each with a random delay of its own.
_SPREAD_SECONDS: Final = 1.5
_ANSWERED_SECONDS: Final = 0.3
_REFUSED_SECONDS: Final = 1
# How long to send no pulses of a table after the process was denied them, or if nothing scales the table
_LEFT_ALONE_SECONDS: Final = 900
_RETRIED_SECONDS: Final = 10
# A surge: this process's demand relative to its own at its last pulse; the rest of the fleet may surge as well.
_SURGE_FACTOR: Final = 1.5


def pulse(
    session_or_client: Any = None,
    *,
    tables: Iterable[str] | None = None,
    coordinator: str | None = None,
    session: Any = None,
) -> Pulse:
    """Report this process's demand for DynamoDB capacity; one call per process, before clients are made.

    From now on, consumed and throttled units are counted and added to the fleet's sum: every half minute, every ten
    seconds once the fleet nears its capacity, and at once after a request was throttled. A background thread, started
    by the first request, sends the reports; requests never wait for it and never fail because of it. No keys and no
    values leave the process, only amounts.

    Args:
        session_or_client: A boto3 session, whose later clients and resources are metered, or a DynamoDB client. By
            default boto3's default session.
        tables: The names of the tables to report. By default all that the process is granted.
        coordinator: The coordinator's name. By default the one that the environment variables of `grant_pulse` name, or
            the only one in the account and region.
        session: The session that pulses are sent with, where *session_or_client* is a client. By default one with
            boto3's usual credentials and the client's region.

    Returns:
        The pulse, whose `stop` ends the reports. They also end with the process.

    Raises:
        botocore.exceptions.NoRegionError: The session has no region.

    Example:
        ```python
        session = boto3.Session()
        highwater.pulse(session)
        orders = session.resource("dynamodb").Table("orders")
        ```
    """
    target = session_or_client
    if target is None:
        if boto3.DEFAULT_SESSION is None:
            boto3.setup_default_session()
        target = boto3.DEFAULT_SESSION
    if session is None:
        session = target if hasattr(target, "events") else boto3.Session(region_name=target.meta.region_name)
    # This client is made before the hooks are installed, so that pulses themselves are not counted. It does not retry,
    # as a pulse whose answer was lost may have been added already.
    retries: Any = {"mode": "standard", "total_max_attempts": 1}
    config = Config(connect_timeout=2, read_timeout=3, retries=retries)
    made = Pulse(
        dynamodb=session.client("dynamodb", config=config),
        coordinator=CoordinatorClient(coordinator=coordinator, session=session, attempts=1),
        tables=None if tables is None else frozenset(tables),
    )
    made.meter.install(target)
    atexit.register(made.stop)
    return made


@dataclass(slots=True, kw_only=True)
class Pulse:
    """The pulses of one process.

    Attributes:
        dynamodb: A client that is not metered.
        coordinator: Sends requests to the coordinator.
        tables: The tables to report, `None` for all.
        clock: Seconds since 1970.
        pause: Sleeps for the given number of seconds.
        has_thread: Whether a background thread calls `beat`, as it does by default; otherwise the caller has to, about
            once a second.
        counts: The unreported counts.
        meter: The hooks that count.

    Example:
        ```python
        pulse = highwater.pulse(session, tables=["orders"])
        serve()
        pulse.stop()
        ```
    """

    dynamodb: Any
    coordinator: CoordinatorClient
    tables: frozenset[str] | None = None
    clock: Callable[[], float] = lambda: time.time()
    pause: Callable[[float], None] = lambda seconds: time.sleep(seconds)
    has_thread: bool = True
    counts: Counts = field(default_factory=Counts)
    meter: Meter = field(init=False)
    _beats: dict[str, _Beat] = field(default_factory=dict)
    _left_alone: dict[str, float] = field(default_factory=dict)
    _pulse_table: str | None = None
    _spread: float = field(default_factory=lambda: random.uniform(0, _SPREAD_SECONDS))  # noqa: S311 - not for security
    _news: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _pid: int = 0
    _is_stopped: bool = False

    def __post_init__(self) -> None:
        """Make the meter."""
        self.meter = Meter(self.counts, self._is_told, self._notice, self.clock)

    def stop(self) -> None:
        """Report what is left, and end; requests are no longer counted."""
        if self._is_stopped:
            return
        self._is_stopped = True
        thread = self._thread
        self._news.set()
        if not self.has_thread:
            self._beat_safely(is_last=True)
        if thread is not None and self._pid == os.getpid() and thread is not threading.current_thread():
            thread.join(timeout=5)

    def beat(self, *, is_last: bool = False) -> None:
        """Report each table that is due; nothing is raised."""
        for table in self.counts.tables():
            if is_last or self._due_at(table) <= self.clock():
                self._tell(table, is_last=is_last)

    def _is_told(self, table: str) -> bool:
        if self._is_stopped or table == self._pulse_table or (self.tables is not None and table not in self.tables):
            return False
        until = self._left_alone.get(table)
        return until is None or self.clock() >= until

    def _notice(self) -> None:
        """Wake the thread, or start it: at the first request, also after a fork."""
        if not self.has_thread:
            return
        pid = os.getpid()
        if self._pid != pid:
            if self._pid:
                self.counts.forget()
            self._pid, self._news = pid, threading.Event()
            self._thread = threading.Thread(target=self._run, name="highwater-pulse", daemon=True)
            try:
                self._thread.start()
            except RuntimeError:
                # the interpreter is ending
                return
        self._news.set()

    def _run(self) -> None:
        while not self._is_stopped:
            due = min((self._due_at(table) for table in self.counts.tables()), default=None)
            # without unreported counts, wait for traffic
            self._news.wait(None if due is None else max(due - self.clock(), 0.05))
            self._news.clear()
            if self.counts.tables():
                # requests that come close together are handled in one go
                self.pause(0.05)
                self._beat_safely()
        self._beat_safely(is_last=True)

    def _beat_safely(self, *, is_last: bool = False) -> None:
        try:
            self.beat(is_last=is_last)
        except Exception:
            # whatever the error, the process and its pulses continue
            _LOG.exception("a pulse failed")

    def _due_at(self, table: str) -> float:
        beat = self._beats.get(table)
        if beat is None:
            # the first pulse comes at the end of the present slot, so that the scaler soon knows of a new fleet
            beat = self._beats[table] = _Beat(self.clock(), self.clock(), is_near=True)
        pace = self._pace(table, beat)
        if pace is _Pace.REFUSED:
            return beat.told_at + _REFUSED_SECONDS
        # Just after the end of a slot, so that the slot's sum is complete soon. Less frequent pulses are aligned with
        # minutes, as each minute's item costs a write.
        lengths = {_Pace.LITTLE: _LITTLE_SECONDS, _Pace.CALM: _CALM_SECONDS}
        length = lengths.get(pace, SLOT_SECONDS)
        soonest = beat.told_at if length == SLOT_SECONDS else beat.told_at + length / 2
        # there may be many processes with little demand; they spread over most of a slot
        spread = self._spread * (_LITTLE_SPREAD if pace is _Pace.LITTLE else 1)
        return (soonest // length + 1) * length + spread

    def _pace(self, table: str, beat: _Beat) -> _Pace:
        counted = self.counts.peek(table)
        if any(refused for _, _, refused in counted):
            return _Pace.REFUSED
        since = self.clock() - beat.counted_since
        units = sum(counted.values())
        if units > _SURGE_FACTOR * beat.rate * max(since, SLOT_SECONDS) > 0:
            return _Pace.SURGE
        if beat.is_near:
            return _Pace.NEAR
        return _Pace.LITTLE if units * _LITTLE_PARTS < beat.capacity * since else _Pace.CALM

    def _tell(self, table: str, *, is_last: bool = False) -> None:
        now = self.clock()
        beat = self._beats.setdefault(table, _Beat(now, now))
        # unless it is urgent, a slot is reported once it is over
        is_urgent = is_last or self._pace(table, beat) in (_Pace.REFUSED, _Pace.SURGE)
        amounts = self.counts.take(table, None if is_urgent else int(now) // SLOT_SECONDS)
        beat.told_at = now
        if not amounts:
            return
        told, since = sum(amounts.values()), max(now - beat.counted_since, 1.0)
        beat.counted_since, beat.rate = now if is_urgent else now // SLOT_SECONDS * SLOT_SECONDS, told / since
        try:
            fleet = beat.fleet or FleetTable(self.dynamodb, self._find_table(), table)
            beat.fleet = fleet
            fleet.add(amounts)
            _LOG.debug("told of %s: %.1f units in %.1f s", table, told, since)
            newest = int(now) // SLOT_SECONDS - 1
            # the present slot's sum is not complete yet, but may already be near the capacity
            beat.is_near = fleet.is_near(newest + 1)
            beat.capacity = max((hint.capacity_units for hint in fleet.hints.values()), default=0)
            if any(fleet.needing_help(newest)) and fleet.is_elected(newest + 1):
                # wait for the other processes' reports of the same slot
                self.pause(max((newest + 1) * SLOT_SECONDS + _SPREAD_SECONDS + _ANSWERED_SECONDS - self.clock(), 0.0))
                self.coordinator.send("pulse", table=table)
                _LOG.info("the fleet of %s asked for help, which took %.1f s", table, self.clock() - now)
        except BoostRefusedError as refused:
            self._leave_alone(table, f"the coordinator refuses: {refused}")
        except ClientError as error:
            self._hear(table, amounts, error)
        except (BotoCoreError, BoostError) as error:
            self._keep(table, amounts, error)

    def _hear(self, table: str, amounts: Any, error: ClientError) -> None:
        if error.response.get("Error", {}).get("Code") in ("AccessDeniedException", "ResourceNotFoundException"):
            self._leave_alone(table, str(error))
        else:
            self._keep(table, amounts, error)

    def _keep(self, table: str, amounts: Any, error: Exception) -> None:
        """Keep amounts that certainly were not written, for a later pulse."""
        _LOG.info("pulse of %s: %s", table, error)
        self._beats[table].told_at = self.clock() + _RETRIED_SECONDS
        oldest = int(self.clock()) // SLOT_SECONDS - 2 * SLOTS_PER_MINUTE
        self.counts.put_back(table, {at: units for at, units in amounts.items() if at[0] >= oldest})

    def _leave_alone(self, table: str, why: str) -> None:
        _LOG.warning("no pulses of %s for %d minutes: %s", table, _LEFT_ALONE_SECONDS // 60, why)
        self._left_alone[table] = self.clock() + _LEFT_ALONE_SECONDS
        self.counts.take(table)

    def _find_table(self) -> str:
        if self._pulse_table is None:
            self._pulse_table = self.coordinator.pulse_table
        return self._pulse_table


class _Pace(Enum):
    """How soon a process sends its next pulse of a table."""

    REFUSED = auto()
    SURGE = auto()
    NEAR = auto()
    CALM = auto()
    LITTLE = auto()


@dataclass(slots=True)
class _Beat:
    """When, and with what demand, a process last sent a pulse of a table."""

    told_at: float
    counted_since: float
    rate: float = 0.0
    capacity: int = 0
    is_near: bool = False
    fleet: FleetTable | None = None
