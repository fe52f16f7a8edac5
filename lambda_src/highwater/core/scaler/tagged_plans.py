"""Plans of tables without constructs, read from tags on the table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from highwater.core.checks.check import check as check_plan
from highwater.core.checks.check import errors_of
from highwater.core.plan.capacity import Capacity
from highwater.core.plan.high_water_mark import HighWaterMark
from highwater.core.plan.plan import Plan
from highwater.core.scaler.scaled_plan import ScaledPlan
from highwater.core.scaler.settings import Mode
from highwater.core.units import Dimension

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
