"""The items in which a table's fleet adds up its pulses, as one process sees them, and whom they have ask for help."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from botocore.exceptions import ClientError

from highwater.calls.records import Key, Records
from highwater.client.hooks import Amounts
from highwater.core.names import TTL_ATTRIBUTE
from highwater.core.plan.plan import TargetKey
from highwater.core.pulses import (
    HINT_ATTRIBUTE,
    KEPT_SECONDS,
    PULSE_SHARDS,
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

_MINUTES_KEPT: Final = 3
# DynamoDB's errors for more writes of one item than its partition takes, and for an item in which a client wrote text
# where amounts are added
_ELSEWHERE: Final = ("ProvisionedThroughputExceededException", "ThrottlingException", "ValidationException")
# An expression has up to 4 KB (Amazon DynamoDB Developer Guide, "Service quotas"), and an amount takes up to 13 bytes.
# A table with twenty indexes may have twice as many amounts in a minute.
_MOST_AMOUNTS: Final = 250
# A fleet whose item has no hint asks for help once in so many minutes: nothing may scale its table.
_ASKED_MINUTES: Final = 5
# The clocks of a fleet's processes differ by less than a slot: somebody who was elected in a later one was not.
_AHEAD_SLOTS: Final = 1
# Within so many slots of an election the scaler's next hint is there. If not, each process asks for itself once in a
# minute: the scaler is down, or a client pretends that somebody is elected.
_HELP_SLOTS: Final = 3
# A hint of later slots than these is no scaler's, or of a clock that was set back.
_LATER_SLOTS: Final = 2 * SLOTS_PER_MINUTE


@dataclass(slots=True)
class FleetTable:
    """The pulse items of one table's fleet, as this process last read them.

    Attributes:
        dynamodb: A DynamoDB client that is not metered.
        pulse_table: The name of the coordinator's table.
        label: The table whose demand is reported.
        hints: The scaler's hints of the newest item, by target.
        shard: The shard in which this process reports, 0 unless it could not write there.
    """

    dynamodb: Any
    pulse_table: str
    label: str
    hints: dict[TargetKey, Hint] = field(default_factory=dict)
    shard: int = 0
    _minutes: dict[int, dict[str, str]] = field(default_factory=dict)
    # the slot, and the first of five minutes, in which somebody was elected already
    _woken_slot: int = -1
    _asked_from: int = -1
    # the first slot in which help was needed since the newest hint, and the slot of that hint
    _needed_since: int = -1
    _needed_hint: int = -1
    # the last slot in which this process asked without being elected, and its place in a minute for that
    _own_slot: int = -1
    _place: int = field(default_factory=lambda: random.randrange(SLOTS_PER_MINUTE))  # noqa: S311 - not for security

    def add(self, amounts: Amounts) -> None:
        """Add the amounts to the items of their minutes, and remember the fleet's sums that DynamoDB returns.

        Raises `ClientError` or `BotoCoreError` of the first item that cannot be written. *amounts* then has only what
        certainly was not written: amounts that may have arrived are removed from it, as they could count twice. After a
        write that was throttled, or whose item was spoilt, the next one goes to another shard.
        """
        for minute, parts in list(_parts_of(amounts)):
            names = {f"#a{number}": amount_attribute(at[0], at[1], refused=at[2]) for number, at in enumerate(parts)}
            values = {f"a{number}": {"N": _text(units)} for number, units in enumerate(parts.values())}
            adding = ", ".join(f"#a{number} :a{number}" for number in range(len(parts)))
            may_have_arrived = True
            try:
                found = self._records.update(
                    self._key(minute, self.shard),
                    f"ADD {adding} SET #{TTL_ATTRIBUTE} = :expires",
                    None,
                    values | {"expires": _expires(minute)},
                    names,
                    ReturnValues="ALL_NEW",
                )
            except ClientError as error:
                may_have_arrived = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400) >= 500
                if error.response.get("Error", {}).get("Code") in _ELSEWHERE:
                    self._move()
                raise
            finally:
                if may_have_arrived:
                    for at in parts:
                        del amounts[at]
            self._learn(minute, found or {})

    def is_asking(self, slot: int) -> bool:
        """Whether this process is to wake the scaler in a slot since 1970: help is needed, and it is elected.

        Help is needed where the burst bucket of a target will run out before help comes, or its requests are refused,
        unless there is no more to be had. Targets that the hints leave out are not scaled. Without any hint nothing is
        known, so the scaler is woken, once in five minutes.
        """
        hints = self._hints_at(slot)
        if not hints:
            from_minute = slot // SLOTS_PER_MINUTE // _ASKED_MINUTES * _ASKED_MINUTES
            if from_minute == self._asked_from:
                return False
            self._asked_from = from_minute
            return self.is_elected(_last_slot(from_minute))
        needs = (key in hints and hints[key].needs_help(slots) for key, slots in self._slots(slot - 1).items())
        if not any(needs):
            self._needed_since = -1
            return False
        newest = max(hint.slot for hint in hints.values())
        if self._needed_since < 0 or newest != self._needed_hint:
            self._needed_since, self._needed_hint = slot, newest
        if not self._is_woken(slot):
            self._woken_slot = slot
            if self.is_elected(slot):
                return True
        return self._asks_unelected(slot)

    def _asks_unelected(self, slot: int) -> bool:
        """Whether this process asks for help although another one was elected: no earlier election brought any."""
        waited = slot - self._needed_since
        if waited < _HELP_SLOTS or waited % SLOTS_PER_MINUTE != self._place or self._own_slot == slot:
            return False
        self._own_slot = slot
        return True

    def is_elected(self, slot: int) -> bool:
        """Elect, by conditional writes, the process that wakes the scaler in a slot; return whether it is this one.

        Each shard elects one of its processes, and the first shard's item elects one of these, so that a large fleet
        wakes the scaler once. Raises `ClientError` or `BotoCoreError` if the own shard's item cannot be written.
        """
        if not self._is_elected_in(self.shard, slot):
            return False
        if self.shard == 0:
            return True
        try:
            return self._is_elected_in(0, slot)
        except ClientError as error:
            if error.response["Error"]["Code"] not in _ELSEWHERE:
                raise
            # the item is full or spoilt, and help that is asked for twice is better than none
            return True

    def _is_elected_in(self, shard: int, slot: int) -> bool:
        minute = slot // SLOTS_PER_MINUTE
        written = self._records.update(
            self._key(minute, shard),
            f"SET #{WOKEN_ATTRIBUTE} = :slot, #{TTL_ATTRIBUTE} = :expires",
            f"attribute_not_exists(#{WOKEN_ATTRIBUTE}) OR #{WOKEN_ATTRIBUTE} < :slot OR #{WOKEN_ATTRIBUTE} > :next",
            {"slot": {"N": str(slot)}, "next": {"N": str(slot + _AHEAD_SLOTS)}, "expires": _expires(minute)},
        )
        return written is not None

    def is_urgent(self, refused: Iterable[TargetKey], slot: int) -> bool:
        """Whether requests refused for these targets are to be told at once: somebody could still ask for help."""
        hints = self._hints_at(slot)
        return not self._is_woken(slot) and any(key in hints and hints[key].is_urgent(slot) for key in refused)

    def is_near(self, slot: int) -> bool:
        """Whether the fleet's demand for any target is so near its capacity that pulses should be frequent."""
        found, hints = self._slots(slot), self._hints_at(slot)
        return any(key in hints and hints[key].is_near(slots) for key, slots in found.items())

    def _slots(self, newest_slot: int) -> Mapping[TargetKey, Slots]:
        """The fleet's sums of the last minutes, as last read by this process, up to a slot since 1970."""
        first = newest_slot // SLOTS_PER_MINUTE - _MINUTES_KEPT + 1
        return slots_of_items(self._minutes.items(), first, newest_slot)

    def _hints_at(self, slot: int) -> dict[TargetKey, Hint]:
        return {key: hint for key, hint in self.hints.items() if hint.slot <= slot + _LATER_SLOTS}

    def _is_woken(self, slot: int) -> bool:
        """Whether the answers show that somebody was elected in this slot."""
        minute = slot // SLOTS_PER_MINUTE
        told = self._minutes.get(minute, {}).get(WOKEN_ATTRIBUTE, "")
        # one of a slot to come was not elected
        return self._woken_slot == slot or (told.isdecimal() and slot <= int(told[:20]) <= slot + _AHEAD_SLOTS)

    def _learn(self, minute: int, attributes: Mapping[str, Mapping[str, str]]) -> None:
        self._minutes[minute] = {name: value["N"] for name, value in attributes.items() if "N" in value}
        # also those that are ahead since the clock was set back
        for other in [each for each in self._minutes if abs(each - minute) >= _MINUTES_KEPT]:
            del self._minutes[other]
        if minute == max(self._minutes):
            self.hints = hints_of_text(attributes.get(HINT_ATTRIBUTE, {}).get("S", "{}"))

    def _move(self) -> None:
        """Report to another shard from now on, chosen at random; nothing is known of its items yet."""
        others = [shard for shard in range(1, PULSE_SHARDS) if shard != self.shard]
        self.shard = random.choice(others)  # noqa: S311 - not for security
        self.hints, self._minutes = {}, {}

    @property
    def _records(self) -> Records:
        return Records(self.pulse_table, self.dynamodb)

    def _key(self, minute: int, shard: int) -> Key:
        return pulse_partition(self.label, shard), pulse_sort_key(minute)


def _parts_of(amounts: Amounts) -> Iterator[tuple[int, Amounts]]:
    """Yield the amounts of each minute, the earliest first, in as many parts as expressions need."""
    for minute in sorted({slot // SLOTS_PER_MINUTE for slot, _, _ in amounts}):
        own = [(at, units) for at, units in amounts.items() if at[0] // SLOTS_PER_MINUTE == minute]
        for start in range(0, len(own), _MOST_AMOUNTS):
            yield minute, dict(own[start : start + _MOST_AMOUNTS])


def _last_slot(minute: int) -> int:
    return minute * SLOTS_PER_MINUTE + SLOTS_PER_MINUTE - 1


def _expires(minute: int) -> dict[str, str]:
    return {"N": str(minute * 60 + KEPT_SECONDS)}


def _text(units: float) -> str:
    return f"{units:.1f}".removesuffix(".0")
