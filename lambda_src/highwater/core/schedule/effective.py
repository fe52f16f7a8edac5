"""The windows of a target that have an effect."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from highwater.core.plan.plan import Target, TargetWindow
from highwater.core.plan.windows import covers_minute
from highwater.core.plan.zones import constant_shift
from highwater.core.schedule.bounds import Bounds, bounds_with
from highwater.core.schedule.weeks import edges_of


def effective(target: Target) -> Target:
    """Return the target without windows that raise no bound, so that they add no scheduled actions and no time zone.

    A window raises no bound if it is not higher than the base. A recurring window also raises none if, whenever it is
    open, other recurring windows with the same clock changes are open and at least as high.
    """
    if not target.windows:
        return target
    base = bounds_with(target, ())
    kept = [w for w in target.windows if bounds_with(target, (w,)) != base]
    # of two windows with the same effect, remove the one whose zone is later in the alphabet
    for target_window in sorted(kept, key=_from_low_to_high):
        others = tuple(w for w in kept if w is not target_window)
        if _is_hidden(target, target_window, others):
            kept = list(others)
    return replace(target, windows=tuple(w for w in target.windows if w in kept))


def _from_low_to_high(target_window: TargetWindow) -> tuple[object, ...]:
    window = target_window.window
    descending_zone = tuple(-ord(letter) for letter in window.timezone)
    return (target_window.min or 0, target_window.max or 0, descending_zone, window.start, window.end, window.name)


def _is_hidden(target: Target, target_window: TargetWindow, others: tuple[TargetWindow, ...]) -> bool:
    """Whether other recurring windows with the same clock changes are open and as high whenever this one is open."""
    window = target_window.window
    if not window.is_recurring:
        return False
    # windows with other clock changes may cover this one in summer and not in winter
    comparable = [
        (w, shift // timedelta(minutes=1))
        for w in others
        if w.window.is_recurring and (shift := constant_shift(w.window.zone, window.zone)) is not None
    ]
    with_window = [*comparable, (target_window, 0)]
    minutes = {edge for w, shift in with_window for edge in edges_of(w, shift)}
    return all(
        _bounds_of_minute(target, comparable, minute) == _bounds_of_minute(target, with_window, minute)
        for minute in minutes
    )


def _bounds_of_minute(target: Target, windows: list[tuple[TargetWindow, int]], minute: int) -> Bounds:
    return bounds_with(target, tuple(w for w, shift in windows if covers_minute(w.window, minute, shift)))
