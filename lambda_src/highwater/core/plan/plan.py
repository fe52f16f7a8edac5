"""The plan: all that is declared for one table and its indexes, and the targets and high-water marks that follow."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Final, TypeAlias

from highwater.core.codec import MINUTES, SECONDS, WHOLE, Codec, Field, Form, many, one_of
from highwater.core.documents import read_document
from highwater.core.limits import DEFAULT_TABLE_QUOTA_UNITS
from highwater.core.names import target_label
from highwater.core.plan.capacity import Capacity, HighWaterMark, MarkRule
from highwater.core.plan.month_days import MonthDay
from highwater.core.plan.windows import Window, once_span
from highwater.core.prices import ThroughputPrices, prices_or_usual
from highwater.core.units import Dimension

PLAN_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexCapacity:
    """Settings of a global secondary index that differ from the table's. `None` means the same as the table.

    Attributes:
        index_name: The name of the index.
        read: Read capacity. By default the table's.
        write: Write capacity. By default the table's. An index with less write capacity than its table throttles the
            table's writes.
        windows: The windows that apply to the index, an empty tuple for none. By default the table's.
        is_managed: Whether the index is scaled. Give false in the deploy that adds it to a table, which then changes
            nothing but the table, and leave it out in the next. By default true.

    Example:
        ```python
        by_day = IndexCapacity(index_name="by-day", write=Capacity.autoscaled(max_capacity=4_000), windows=())
        manage_capacity(orders, read=follow, write=follow, indexes=[by_day])
        ```
    """

    index_name: str
    read: Capacity | None = None
    write: Capacity | None = None
    windows: tuple[Window, ...] | None = None
    is_managed: bool = True


@dataclass(frozen=True, slots=True)
class TargetWindow:
    """A window as it applies to one target: its floor, its ceiling, or both, in units per second."""

    window: Window
    min: int | None
    max: int | None


# Identifies a target within its table: the name of the index (`None` for the table itself) and the dimension
TargetKey: TypeAlias = tuple[str | None, Dimension]


@dataclass(frozen=True, slots=True)
class Target:
    """One dimension of one resource, called a scalable target by Application Auto Scaling.

    Attributes:
        index: Name of the index, `None` for the table itself.
        dimension: READ or WRITE.
        capacity: The target's base floor, base ceiling and policy.
        windows: The windows that have a floor or ceiling for this dimension.
    """

    index: str | None
    dimension: Dimension
    capacity: Capacity
    windows: tuple[TargetWindow, ...]

    @property
    def key(self) -> TargetKey:
        """The index and dimension, which identify the target within its table."""
        return self.index, self.dimension

    @property
    def label(self) -> str:
        """The target's name in findings: `table write`, `index 'by_status' read`."""
        return target_label(self.index, self.dimension)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All that is declared for one table and its indexes.

    Attributes:
        read: The table's read capacity.
        write: The table's write capacity.
        windows: Windows with a higher floor or ceiling, in any order.
        indexes: The indexes that are managed. Each has the table's capacity and windows except where it sets its own.
        mark: The high-water mark. By default the highest floor declared.
        table_quota_units: The account's quota per table and index, in units per second of each dimension.
    """

    read: Capacity
    write: Capacity
    windows: tuple[Window, ...] = ()
    indexes: tuple[IndexCapacity, ...] = ()
    mark: HighWaterMark = HighWaterMark.to_windows()  # noqa: RUF009 - frozen
    table_quota_units: int = DEFAULT_TABLE_QUOTA_UNITS

    def resources(self) -> Iterator[tuple[str | None, Target, Target]]:
        """Yield the table, then each index in the order declared: name (`None` for the table) and both targets."""
        yield None, *_pair(None, self.read, self.write, self.windows)
        for index in self.indexes:
            windows = self.windows if index.windows is None else index.windows
            yield (
                index.index_name,
                *_pair(index.index_name, index.read or self.read, index.write or self.write, windows),
            )

    def targets(self) -> tuple[Target, ...]:
        """Return every target: the table's read and write, then those of each index, in the order declared."""
        return tuple(target for _, read, write in self.resources() for target in (read, write))

    def all_windows(self) -> tuple[Window, ...]:
        """Return the table's windows, then the windows that indexes set themselves."""
        return (*self.windows, *(window for index in self.indexes for window in index.windows or ()))

    def without_past(self, as_of: datetime) -> Plan:
        """Return the plan without one-off windows that ended by *as_of*. The windows must have passed `check`."""

        def to_come(windows: tuple[Window, ...]) -> tuple[Window, ...]:
            return tuple(w for w in windows if w.is_recurring or once_span(w)[1] > as_of)

        indexes = (
            index if index.windows is None else replace(index, windows=to_come(index.windows)) for index in self.indexes
        )
        return replace(self, windows=to_come(self.windows), indexes=tuple(indexes))

    def without_windows(self) -> Plan:
        """Return the plan with only its base floors and ceilings."""
        indexes = (replace(index, windows=None) for index in self.indexes)
        return replace(self, windows=(), indexes=tuple(indexes))

    def to_document(self) -> dict[str, Any]:
        """Return the plan as JSON-ready values, with a version. `from_document` is the inverse."""
        return {"version": PLAN_VERSION, **_PLAN.write(self)}

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> Plan:
        """Return the plan that `to_document` wrote; raises `ValueError` for a version that this code does not know."""
        if document.get("version") != PLAN_VERSION:
            message = f"plan has version {document.get('version')!r}, this code reads {PLAN_VERSION}; deploy both again"
            raise ValueError(message)
        return _PLAN.read(document)

    def to_json(self) -> str:
        """Return `to_document` as JSON text. Equal plans give equal text."""
        return json.dumps(self.to_document(), sort_keys=True, separators=(",", ":"))

    @property
    def size_bytes(self) -> int:
        """The size of `to_json`; a scaler has room for `MAX_PLAN_BYTES`."""
        return len(self.to_json().encode())

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """Return the plan that `to_json` wrote; raises the same errors as `from_document`."""
        return cls.from_document(read_document(text))

    def with_indexes(self, names: Iterable[str]) -> Plan:
        """Return the plan with an entry for each of *names*. An index without an entry so far follows the table."""
        listed = {index.index_name for index in self.indexes}
        added = (IndexCapacity(index_name=name) for name in names if name not in listed)
        return replace(self, indexes=(*self.indexes, *added))

    def managed(self) -> Plan:
        """Return the plan without the indexes that are left to themselves."""
        return replace(self, indexes=tuple(index for index in self.indexes if index.is_managed))


def _pair(index: str | None, read: Capacity, write: Capacity, windows: tuple[Window, ...]) -> tuple[Target, Target]:
    return _target(index, Dimension.READ, read, windows), _target(index, Dimension.WRITE, write, windows)


def _target(index: str | None, dimension: Dimension, capacity: Capacity, windows: tuple[Window, ...]) -> Target:
    target_windows = []
    for window in windows:
        if dimension is Dimension.READ:
            floor, ceiling = window.read_min, window.read_max
        else:
            floor, ceiling = window.write_min, window.write_max
        if floor is not None or ceiling is not None:
            target_windows.append(TargetWindow(window, floor, ceiling))
    return Target(index, dimension, capacity, tuple(target_windows))


# Deployed plans are read by these tables: a member that is added needs what it is where it is missing.
_CAPACITY: Final = Codec(
    lambda **found: Capacity(is_autoscaled=found["target_utilization_percent"] is not None, **found),
    Field("min_capacity", "min", WHOLE),
    Field("max_capacity", "max", WHOLE),
    Field("target_utilization_percent", left_out=None),
    Field("scale_in_cooldown", "scale_in_cooldown_seconds", SECONDS, timedelta(0)),
    Field("scale_out_cooldown", "scale_out_cooldown_seconds", SECONDS, timedelta(0)),
    Field("disable_scale_in", left_out=False),
    Field("max_with_boosts", left_out=None),
)
_MONTH_DAY: Final = Codec(MonthDay, *(Field(name, left_out=None) for name in ("day", "weekday", "nth")))
_WINDOW: Final = Codec(
    Window,
    *map(Field, ("name", "start", "end", "timezone")),
    Field("lead", "lead_minutes", MINUTES),
    Field("days", form=Form(lambda days: days if isinstance(days, str) else ",".join(days)), left_out=None),
    Field("month_day", form=_MONTH_DAY, left_out=None),
    *(Field(name, left_out=None) for name in ("read_min", "write_min", "read_max", "write_max")),
)
_INDEX: Final = Codec(
    IndexCapacity,
    Field("index_name", "name"),
    Field("read", form=_CAPACITY, left_out=None),
    Field("write", form=_CAPACITY, left_out=None),
    Field("windows", form=many(_WINDOW), left_out=None),
)
_MARK: Final = Codec(
    HighWaterMark,
    Field("rule", form=one_of(MarkRule)),
    Field("read", left_out=None),
    Field("write", left_out=None),
)
_PLAN: Final = Codec(
    Plan,
    Field("read", form=_CAPACITY),
    Field("write", form=_CAPACITY),
    Field("windows", form=many(_WINDOW)),
    Field("indexes", form=many(_INDEX)),
    Field("mark", form=_MARK),
    Field("table_quota_units"),
)


@dataclass(frozen=True, slots=True)
class Mark:
    """The mark of one resource, together with its base floors. Auto scaling reaches the base floors by itself.

    Attributes:
        index: Name of the index, `None` for the table.
        read: Wanted mark for reads, in units per second.
        write: Wanted mark for writes, in units per second.
        base_read: The base floor of reads, in units per second.
        base_write: The base floor of writes, in units per second.
    """

    index: str | None
    read: int
    write: int
    base_read: int
    base_write: int

    @property
    def is_above_base(self) -> bool:
        """Whether the mark is higher than a base floor, so that reaching the base floors does not reach the mark."""
        return self.read > self.base_read or self.write > self.base_write


def marks_of(plan: Plan) -> tuple[Mark, ...]:
    """Return the marks of the table and of each index, or none if the plan does not raise marks."""
    if plan.mark.rule is MarkRule.NONE:
        return ()
    return tuple(
        Mark(index, _wanted(plan.mark, read), _wanted(plan.mark, write), _base(read), _base(write))
        for index, read, write in plan.resources()
    )


def _wanted(mark: HighWaterMark, target: Target) -> int:
    floors = [w.min for w in target.windows if w.min is not None]
    if mark.rule is MarkRule.UNITS:
        declared_units = mark.read if target.dimension is Dimension.READ else mark.write
        return _base(target) if declared_units is None else declared_units
    if target.capacity.is_deploy_time:
        return _base(target)
    if mark.rule is MarkRule.WINDOWS:
        return max([_base(target), *floors])
    # the ceiling of fixed capacity is always equal to its floor, so the floors count as ceilings
    return max([int(target.capacity.max_capacity), *(w.max for w in target.windows if w.max is not None), *floors])


def _base(target: Target) -> int:
    """The base floor. If only CloudFormation knows it, 1, which is the lowest capacity."""
    return 1 if target.capacity.is_deploy_time else int(target.capacity.min_capacity)


@dataclass(frozen=True, slots=True)
class WarmUpCharge:
    """The one-time charge of raising marks from the base floors, in one region.

    Raising warm throughput is charged once at provisioned rates (Amazon DynamoDB Developer Guide, "Warm throughput").
    The examples on the pricing page suggest one hour of each added unit; no other source confirms this, so every
    message says "about".

    Attributes:
        read_units: Read units added, summed over all resources.
        write_units: Write units added, summed over all resources.
        prices: The prices of the region.
    """

    read_units: int
    write_units: int
    prices: ThroughputPrices

    @property
    def usd(self) -> Decimal:
        """The approximate charge in US dollars, rounded to the cent."""
        reads, writes = (self.read_units, Dimension.READ), (self.write_units, Dimension.WRITE)
        exact = self.prices.provisioned(*reads) + self.prices.provisioned(*writes)
        return exact.quantize(Decimal("0.01"), ROUND_HALF_UP)

    @property
    def arithmetic(self) -> str:
        """The calculation of `usd` as text, such as `500 WCU x $0.00065 = $0.33`."""
        parts = []
        if self.write_units:
            parts.append(f"{self.write_units:,} WCU x ${self.prices.unit_hours[Dimension.WRITE]:f}")
        if self.read_units:
            parts.append(f"{self.read_units:,} RCU x ${self.prices.unit_hours[Dimension.READ]:f}")
        return f"{' + '.join(parts)} = ${self.usd}"


def warm_up_charge(marks: tuple[Mark, ...], region: str | None = None) -> WarmUpCharge | None:
    """Return the charge for raising the marks from the base floors, `None` if no mark is above its base floor.

    It is at the prices of *region*, and at those of us-east-1 where that or its prices are not known.
    """
    read = sum(max(0, mark.read - mark.base_read) for mark in marks)
    write = sum(max(0, mark.write - mark.base_write) for mark in marks)
    return WarmUpCharge(read, write, prices_or_usual(region)) if read or write else None
