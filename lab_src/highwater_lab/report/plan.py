"""What a template declares, in words: the capacity of each target, its schedule and its high-water marks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields

from highwater.core import Dimension, Window
from highwater.core.plan.month_days import DAYS
from highwater.core.plan.windows import parse_days
from highwater_lab.services.autoscaling import ScheduledChange
from highwater_lab.services.schedules import At, Cron, Expression, Rate
from highwater_lab.simulation import ResourceSetup, TableSetup, TargetRun, TargetSetup

# The schedule changes with each window, and a comment is short
_MOST_SCHEDULE_LINES = 4


def declared_text(setup: TableSetup, target: TargetRun) -> str:
    """Return the capacity declared for a target: `400-8,000 at 70 %`, `150 units`, or `on demand`."""
    if setup.is_on_demand:
        return "on demand"
    resource = next(each for each in setup.resources if each.index == target.index)
    return _target_text(resource.target(target.dimension))


def _target_text(declared: TargetSetup) -> str:
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
    marks = _marks_text(setup.resources)
    return texts + [f"high-water mark: {marks}"] * bool(marks)


def _marks_text(resources: Iterable[ResourceSetup]) -> str:
    return "; ".join(
        f"{resource.label} {resource.warm_read_units:,} reads, {resource.warm_write_units:,} writes"
        for resource in resources
        if resource.warm_read_units or resource.warm_write_units
    )


def mode_text(setup: TableSetup) -> str:
    """Return the mode with what it declares for the table: `on demand`, `provisioned, read 5 units, write 2-90`."""
    if not setup.is_on_demand:
        return ", ".join(
            ["provisioned", *(f"{each} {_target_text(setup.resources[0].target(each))}" for each in Dimension)]
        )
    most = _maximum_text(setup.resources[0])
    return f"on demand, {most}" if most else "on demand"


def _maximum_text(resource: ResourceSetup) -> str:
    """Return the maximums of a table or index on demand: `at most 900 reads and 800 writes a second`, or nothing."""
    bounds = (("reads", resource.max_read_units), ("writes", resource.max_write_units))
    most = " and ".join(f"{units:,} {name}" for name, units in bounds if units is not None)
    return f"at most {most} a second" if most else ""


def change_lines(old: TableSetup, new: TableSetup) -> list[str]:
    """Return what is declared differently, a line each, such as `write floor 200 → 900 WCU`.

    Of a table with indexes the line names the targets. Differences that have no words here are named by their field.
    """
    was, now = ({resource.index: resource for resource in setup.resources} for setup in (old, new))
    lines = [*_mode_changes(old, new), *_replica_changes(old, new)]
    lines += [f"{each.label} added" for index, each in now.items() if index not in was]
    lines += [f"{each.label} removed" for index, each in was.items() if index not in now]
    both = [(was[index], now[index]) for index in now if index in was]
    if not old.is_on_demand and not new.is_on_demand:
        changes: dict[str, list[str]] = {}
        for one, other in both:
            for dimension in Dimension:
                for text in _target_changes(dimension, one.target(dimension), other.target(dimension)):
                    changes.setdefault(text, []).append(other.label)
        lines += [f"{text} ({', '.join(labels)})" if len(now) > 1 else text for text, labels in changes.items()]
        schedule = _schedule_changes(both, is_alone=len(now) == 1)
        more = len(schedule) - _MOST_SCHEDULE_LINES
        lines += schedule[:_MOST_SCHEDULE_LINES] + [f"{more} more changes of the schedule"] * (more > 0)
    if old.is_on_demand and new.is_on_demand:
        for one, other in both[1:]:
            if (texts := (_maximum_text(one), _maximum_text(other)))[0] != texts[1]:
                lines.append(f"{other.label} {texts[0] or 'no maximum'} → {texts[1] or 'no maximum'}")
    lines += _scaler_changes(old, new)
    # a mark that comes with the capacity is no news
    bought = (
        [each for each in setup.resources if each.bought_read_units or each.bought_write_units] for setup in (old, new)
    )
    marks = [_marks_text(resources) or "none" for resources in bought]
    if marks[0] != marks[1]:
        lines.append(f"high-water mark {marks[0]} → {marks[1]}")
    differ = [each.name for each in fields(old) if getattr(old, each.name) != getattr(new, each.name)]
    return lines or [f"{name.replace('_', ' ')} differs" for name in differ if name not in ("name", "notes")]


def _mode_changes(old: TableSetup, new: TableSetup) -> Iterator[str]:
    modes = mode_text(old), mode_text(new)
    if (old.is_on_demand or new.is_on_demand) and modes[0] != modes[1]:
        yield f"mode {modes[0]} → {modes[1]}"
    names = ["Standard-IA" if setup.is_infrequent_access else "Standard" for setup in (old, new)]
    if names[0] != names[1]:
        yield f"table class {names[0]} → {names[1]}"
    queues = ["none" if each.buffer is None else f"{each.buffer.units:,} write units a second" for each in (old, new)]
    if queues[0] != queues[1]:
        yield f"queue before its writes {queues[0]} → {queues[1]}"


def _replica_changes(old: TableSetup, new: TableSetup) -> Iterator[str]:
    was, now = ({replica.region: replica for replica in setup.replicas} for setup in (old, new))
    for region in sorted(was.keys() | now.keys()):
        if region not in was or region not in now:
            yield f"replica {region} {'added' if region in now else 'removed'}"
        elif was[region].read_units != now[region].read_units:
            yield f"replica {region} reads {was[region].read_units:,} → {now[region].read_units:,} RCU"


def _target_changes(dimension: Dimension, old: TargetSetup, new: TargetSetup) -> Iterator[str]:
    unit = "RCU" if dimension is Dimension.READ else "WCU"
    if not old.can_be_raised or not new.can_be_raised or (old.tracking is None) != (new.tracking is None):
        if (texts := (_target_text(old), _target_text(new)))[0] != texts[1]:
            yield f"{dimension} {texts[0]} → {texts[1]}"
        return
    # the capacity of a new table, which auto scaling changes
    start = (old.units, new.units) if old.min == new.min else (0, 0)
    values = [("floor", old.min, new.min, unit), ("ceiling", old.max, new.max, unit), ("initially", *start, unit)]
    if old.tracking is not None and new.tracking is not None:
        one, other = old.tracking, new.tracking
        values += [
            ("target", one.target_percent, other.target_percent, "%"),
            ("scale-in cooldown", one.scale_in_cooldown, other.scale_in_cooldown, "s"),
            ("scale-out cooldown", one.scale_out_cooldown, other.scale_out_cooldown, "s"),
        ]
        if one.disable_scale_in != other.disable_scale_in:
            yield f"{dimension} scale-in {'disabled' if other.disable_scale_in else 'enabled'}"
    changed = [f"{name} {before:,} → {after:,} {unit}" for name, before, after, unit in values if before != after]
    if changed:
        yield f"{dimension} {', '.join(changed)}"


def _schedule_changes(both: Sequence[tuple[ResourceSetup, ResourceSetup]], *, is_alone: bool) -> list[str]:
    changes: dict[tuple[str, str], list[str]] = {}
    for old, new in both:
        for dimension in Dimension:
            was, now = (
                dict.fromkeys(_action_text(action) for action in resource.target(dimension).actions)
                for resource in (old, new)
            )
            for what, texts, others in (("added", now, was), ("removed", was, now)):
                for text in texts:
                    if text not in others:
                        label = str(dimension) if is_alone else f"{new.label} {dimension}"
                        changes.setdefault((text, what), []).append(label)
    return [f"scheduled action {what}: {text} ({', '.join(labels)})" for (text, what), labels in changes.items()]


def _scaler_changes(old: TableSetup, new: TableSetup) -> Iterator[str]:
    was, now = (
        {}
        if setup.scaler is None
        else {"Highwater's scaler": f", in mode {setup.scaler.mode}"}
        | {f"window {window.name}": f": {_window_text(window)}" for window in setup.scaler.plan.windows}
        for setup in (old, new)
    )
    for name in {**was, **now}:
        if name not in was or name not in now:
            yield f"{name} {'added' if name in now else 'removed'}{now.get(name) or was[name]}"
        elif was[name] != now[name]:
            yield f"{name}{was[name]} → {now[name].lstrip(':, ')}"


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
    if window.month_day is not None:
        days = f"{window.month_day} "
    return ", ".join([f"{days}{window.start}-{window.end} {window.timezone}", *_bounds_of(window)])


def _days_text(days: Sequence[int]) -> str:
    return "every day" if len(days) == len(DAYS) else ",".join(DAYS[day] for day in days)


def _bounds_of(window: Window) -> Iterator[str]:
    for name in ("read_min", "write_min", "read_max", "write_max"):
        units = getattr(window, name)
        if units is not None:
            dimension, _, bound = name.partition("_")
            yield f"{dimension} {'floor' if bound == 'min' else 'ceiling'} {units:,}"
