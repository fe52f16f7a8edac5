"""The floor and ceiling that a plan asks for at an instant, without boosts and without the scaler."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TypeAlias

from highwater.core.plan.plan import Target, TargetWindow
from highwater.core.plan.windows import is_open, openings
from highwater.core.plan.zones import aware

# Whether bounds can be computed for a plan does not depend on the time
_ANY_TIME = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, order=True)
class Bounds:
    """Floor and ceiling in units per second: AAS MinCapacity and MaxCapacity."""

    min: int
    max: int


# Bounds over a time: first its start with its bounds, then each change
Timeline: TypeAlias = tuple[tuple[datetime, Bounds], ...]


def bounds_with(target: Target, open_windows: tuple[TargetWindow, ...]) -> Bounds:
    """Return floor and ceiling while *open_windows* are open: each is the maximum of the base and the windows.

    The ceiling of fixed capacity equals its floor.

    Raises:
        ValueError: Only CloudFormation knows the target's bounds.
    """
    if target.capacity.is_deploy_time:
        message = f"{target.label}: the bounds are known only at deploy time; read the plan from a deployed stack"
        raise ValueError(message)
    floor = max([int(target.capacity.min_capacity), *(w.min for w in open_windows if w.min is not None)])
    if not target.capacity.is_autoscaled:
        return Bounds(floor, floor)
    return Bounds(floor, max([int(target.capacity.max_capacity), *(w.max for w in open_windows if w.max is not None)]))


def bounds_at(target: Target, at: datetime) -> Bounds:
    """Return the floor and ceiling that the plan alone asks for at the aware instant *at*."""
    at = aware(at)
    return bounds_with(target, tuple(w for w in target.windows if is_open(w.window, at)))


def highest_ceiling(target: Target) -> int:
    """Return the highest ceiling that the plan asks for at any time, so that no open window is limited.

    Raises:
        ValueError: Only CloudFormation knows the target's bounds.
    """
    return bounds_with(target, target.windows).max


def require_bounds(targets: Iterable[Target]) -> None:
    """Raise an error if the targets of a plan that was read from text have no bounds, or cannot be compared or hashed.

    Raises:
        Exception: Of any kind, as the text may contain anything.
    """
    for target in targets:
        hash(target)
        bounds_at(target, _ANY_TIME)


def has_changed(target: Target, at: datetime, within: timedelta) -> bool:
    """Whether the planned bounds at *at* differ from those at *at* - *within*."""
    return bool(target.windows) and bounds_at(target, at) != bounds_at(target, at - within)


def baseline(target: Target, at: datetime) -> int:
    """Return the floor that the plan alone asks for at the aware instant *at*: the base or the highest open window."""
    return bounds_at(target, at).min


def timeline(target: Target, start: datetime, end: datetime) -> Timeline:
    """Return the bounds over [*start*, *end*): first *start* with its bounds, then each change; instants in UTC."""
    # without the index name, so that indexes that follow their table share its cache entry
    return _timeline(replace(target, index=None), aware(start), aware(end))


@lru_cache(maxsize=1024)
def _timeline(target: Target, start: datetime, end: datetime) -> Timeline:
    edges: dict[datetime, list[tuple[int, int]]] = {}
    # with a long lead, one opening of a window may overlap the next, so open windows are counted
    counts = [0] * len(target.windows)
    for position, target_window in enumerate(target.windows):
        for opens, closes in openings(target_window.window, start, end):
            edges.setdefault(max(opens, start), []).append((position, 1))
            if closes < end:
                edges.setdefault(closes, []).append((position, -1))
    changes: list[tuple[datetime, Bounds]] = []
    for at in sorted({start, *edges}):
        for position, step in edges.get(at, ()):
            counts[position] += step
        bounds = bounds_with(target, tuple(w for w, count in zip(target.windows, counts, strict=True) if count))
        if not changes or changes[-1][1] != bounds:
            changes.append((at, bounds))
    return tuple(changes)
