"""Tables that the scaler manages: a plan with the scaler's mode, read from a parameter or from tags on the table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from highwater.core.checks import check as check_plan
from highwater.core.checks import errors_of
from highwater.core.documents import read_document
from highwater.core.names import names_of_parameter, plan_parameter, table_label
from highwater.core.plan.capacity import Capacity, HighWaterMark
from highwater.core.plan.plan import Plan
from highwater.core.scaler.settings import THROTTLE_PRICE_REQUESTS, Mode, ScalerSettings
from highwater.core.schedule.bounds import require_bounds
from highwater.core.units import Dimension


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledPlan:
    """One table that the scaler looks after.

    The constructs write it into an SSM parameter; the function, the `highwater` command and the lab read it there.

    Attributes:
        table: The table's name.
        mode: What the scaler moves.
        plan: What is declared for the table.
        region: The table's region; `None` where that is the scaler's own.
        scaler: The name of the scaler that looks after the table; empty where tags on the table chose it.
        is_released: Whether the scaler no longer looks after the table; CloudFormation is about to delete the plan.
        is_tagged: Whether tags on the table chose it. Its plan then lists no indexes: they follow the table.
        throttle_price_requests: What it is worth that a unit is not throttled, as `ScalerSettings` has it.
    """

    table: str
    mode: Mode
    plan: Plan
    region: str | None = None
    scaler: str = ""
    is_released: bool = False
    is_tagged: bool = False
    throttle_price_requests: int = THROTTLE_PRICE_REQUESTS

    @property
    def settings(self) -> ScalerSettings:
        """How the scaler sizes the table's targets."""
        return ScalerSettings(mode=self.mode, throttle_price_requests=self.throttle_price_requests)

    @property
    def label(self) -> str:
        """The table's name, after its region where that is another than the scaler's; unique among all plans."""
        return table_label(self.table, self.region)

    @property
    def parameter(self) -> str:
        """Name of the SSM parameter that the plan is kept in."""
        return plan_parameter(self.scaler, self.table, self.region)

    def to_json(self) -> str:
        """The parameter's value: one line of JSON."""
        price = self.throttle_price_requests
        told = "" if price == THROTTLE_PRICE_REQUESTS else f'"throttle_price_requests":{price},'
        return f'{{"mode":"{self.mode}",{told}"plan":{self.plan.to_json()}}}'

    @classmethod
    def from_parameter(cls, name: str, value: str) -> ScaledPlan:
        """Read a parameter that the constructs wrote.

        Raises:
            ValueError: The value is not such a plan, or has a window that never opens or closes. The message begins
                with the kind of the error.
        """
        try:
            scaled = cls._parsed(name, value)
            require_bounds(scaled.plan.targets())
            scaled.settings  # noqa: B018 - which refuses a price out of range
        except Exception as error:  # a parameter may hold anything
            message = f"{type(error).__name__}: {error}"
            raise ValueError(message) from error
        return scaled

    @classmethod
    def _parsed(cls, name: str, value: str) -> ScaledPlan:
        document = read_document(value)
        scaler, table, region = names_of_parameter(name)
        return cls(
            table=table,
            mode=Mode(document["mode"]),
            plan=Plan.from_document(document["plan"]),
            region=region,
            scaler=scaler,
            is_released=bool(document.get("released")),
            throttle_price_requests=document.get("throttle_price_requests", THROTTLE_PRICE_REQUESTS),
        )

    def with_indexes(self, names: Iterable[str]) -> ScaledPlan:
        """The same, where the indexes of these names follow the table unless the plan lists them already."""
        return replace(self, plan=self.plan.with_indexes(names))


# The value of this tag is the scaler's mode: `floor` or `direct`
MANAGED_TAG: Final = "highwater:managed"
# The function of a scaler of tagged tables has this tag, with the scaler's name, by which other such scalers find it
FINDER_TAG: Final = "highwater:scales-tagged-tables"
TAG_MODES: Final = (Mode.FLOOR, Mode.DIRECT)
_BOUND_TAGS: Final = {
    (dimension, bound): f"highwater:{dimension}-{bound}" for dimension in Dimension for bound in ("min", "max")
}


def plan_of_tags(table: str, tags: Mapping[str, str], region: str | None = None) -> ScaledPlan:
    """Return the plan that the tags of *table* declare; *region* is the table's region, if not the scaler's.

    `highwater:managed` is `floor` or `direct`; `highwater:read-min`, `-read-max`, `-write-min` and `-write-max` are
    units per second. All five are required.

    Raises:
        ValueError: A tag is missing or has a wrong value; the message names the tag, its value and the allowed values.
    """
    managed = tags.get(MANAGED_TAG)
    if managed not in TAG_MODES:
        message = f"tag {MANAGED_TAG} must be {' or '.join(TAG_MODES)}, got {_given_text(managed)}"
        raise ValueError(message)
    bounds = {key: _units(tag, tags.get(tag)) for key, tag in _BOUND_TAGS.items()}
    read, write = (
        Capacity.autoscaled(min_capacity=bounds[dimension, "min"], max_capacity=bounds[dimension, "max"])
        for dimension in (Dimension.READ, Dimension.WRITE)
    )
    plan = Plan(read=read, write=write, mark=HighWaterMark.none())
    errors = errors_of(check_plan(plan))
    if errors:
        raise ValueError("; ".join(f"{error.subject}: {error.problem}" for error in errors))
    return ScaledPlan(table=table, mode=Mode(managed), plan=plan, region=region, is_tagged=True)


def _units(tag: str, text: str | None) -> int:
    if text is None or not text.isascii() or not text.isdigit() or len(text) > 9:
        message = f"tag {tag} must be whole units per second such as 40, got {_given_text(text)}"
        raise ValueError(message)
    return int(text)


def _given_text(value: str | None) -> str:
    return "no such tag" if value is None else repr(value)
