"""What a template declares, in words: the capacity of each target, its schedule and its high-water marks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from highwater.core import Window
from highwater.core.plan.windows import DAYS, parse_days
from highwater_lab.services.autoscaling import ScheduledChange
from highwater_lab.services.schedules import At, Cron, Expression, Rate
from highwater_lab.simulation import TableSetup, TargetRun


def declared_text(setup: TableSetup, target: TargetRun) -> str:
    """Return the capacity declared for a target: `400-8,000 at 70 %`, `150 units`, or `on demand`."""
    if setup.is_on_demand:
        return "on demand"
    resource = next(each for each in setup.resources if each.index == target.index)
    declared = resource.target(target.dimension)
    if not declared.can_be_raised:
        return f"{declared.units:,} units"
    text = f"{declared.min:,}-{declared.max:,}"
    return text if declared.tracking is None else f"{text} at {declared.tracking.target_percent} %"


def zone_of(setup: TableSetup) -> str | None:
    """Return the first time zone of the schedule or of the scaler's windows that is not UTC, `None` for none."""
    zones = [
        action.expression.zone.key
        for resource in setup.resources
        for target in (resource.read, resource.write)
        for action in target.actions
        if isinstance(action.expression, Cron)
    ]
    if setup.scaler is not None:
        zones += [window.timezone for window in setup.scaler.plan.windows]
    return next((zone for zone in zones if zone not in ("UTC", "Etc/UTC")), None)


def plan_lines(setup: TableSetup) -> list[str]:
    """Return a line for each time at which scheduled actions set bounds, each window, the scaler and the marks."""
    lines: dict[str, list[str]] = {}
    for resource in setup.resources:
        for dimension, target in (("read", resource.read), ("write", resource.write)):
            for action in target.actions:
                lines.setdefault(_action_text(action), []).append(f"{resource.label} {dimension}")
    texts = [f"{what}: {', '.join(targets)}" for what, targets in lines.items()]
    if setup.scaler is not None:
        texts.append(f"Highwater's scaler, in mode {setup.scaler.mode}")
        texts += [f"window {window.name}: {_window_text(window)}" for window in setup.scaler.plan.windows]
    marks = [
        f"{resource.label} {resource.warm_read_units:,} reads, {resource.warm_write_units:,} writes"
        for resource in setup.resources
        if resource.warm_read_units or resource.warm_write_units
    ]
    return texts + [f"high-water mark: {'; '.join(marks)}"] * bool(marks)


def _action_text(action: ScheduledChange) -> str:
    sets = [
        f"{name} {units:,}" for name, units in (("floor", action.min), ("ceiling", action.max)) if units is not None
    ]
    return f"{_schedule_text(action.expression)}, {', '.join(sets)}"


def _schedule_text(expression: Expression) -> str:
    match expression:
        case At(when):
            return f"once, {when:%a %Y-%m-%d %H:%M} UTC"
        case Rate(every, _):
            return f"every {every}"
        case Cron(minutes, hours, (day, month, weekday, year), zone):
            times = [f"{hour:02}:{minute:02}" for hour in hours for minute in minutes]
            shown = ", ".join(times[:4]) + (f" and {len(times) - 4} more times" if len(times) > 4 else "")
            days = weekday if day == "?" else f"day {day}"
            dates = ["every day" if days in ("*", "day *") else days]
            dates += [f"month {month}"] * (month != "*") + [year] * (year != "*")
            return f"{shown} {' '.join(dates)} {zone.key}"


def _window_text(window: Window) -> str:
    days = "" if window.days is None else f"{_days_text(parse_days(window.days))} "
    return ", ".join([f"{days}{window.start}-{window.end} {window.timezone}", *_bounds_of(window)])


def _days_text(days: Sequence[int]) -> str:
    return "every day" if len(days) == len(DAYS) else ",".join(DAYS[day] for day in days)


def _bounds_of(window: Window) -> Iterator[str]:
    for name in ("read_min", "write_min", "read_max", "write_max"):
        units = getattr(window, name)
        if units is not None:
            dimension, _, bound = name.partition("_")
            yield f"{dimension} {'floor' if bound == 'min' else 'ceiling'} {units:,}"
