"""Boosts: from the call to capacity, what limits a job, and a lease that ends by itself."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import Final

from acceptance.callers import outputs_of, parameter_value, session_as, wait_for_permission
from acceptance.cdk import App
from acceptance.deployed import names_of_type, read_state
from acceptance.parts.part import Part
from acceptance.stage import Stage
from highwater import Boost
from highwater import boost as make_boost
from highwater.core import Dimension
from highwater.core.names import TargetName, coordinator_parameter

_APP: Final = App("examples/side_by_side/app.py", "SideBySide")
_MINUTE: Final = timedelta(minutes=1)
# the app's floor, what it grants its job, and what the job asks for
_FLOOR, _CAP, _ASKED = 40, 600, 200
_LEASE_MINUTES: Final = 3
# A lease's schedule goes on for so long after the lease's end, for services that did not answer then
_SCHEDULED_FOR: Final = 15 * _MINUTE
_GONE_WITHIN: Final = 5 * _MINUTE


def _run(stage: Stage) -> None:
    table = next(each for each in stage.deploy(_APP) if "-Boosted" in each.table)
    name = TargetName(table.table, None, Dimension.WRITE)
    outputs = outputs_of(stage, _APP)
    wait_for_permission(stage, _job(stage, name, outputs, 1).client, "list", name.table)
    _boost_and_release(stage, name, outputs)
    _ask_for_more_than_granted(stage, name, outputs)
    _let_lease_end(stage, name, outputs)


def _boost_and_release(stage: Stage, name: TargetName, outputs: dict[str, str]) -> None:
    job = _job(stage, name, outputs, _ASKED)
    began, call = stage.now(), time.monotonic()
    answer = job.begin()
    took = round(time.monotonic() - call, 2)
    stage.check("units granted to a job that asks for 200", [_ASKED], [each.units for each in answer.targets])
    stage.measure(
        "boost_answer_seconds", took, "s", question="real seconds from the call to the answer:", assumed="under 2 s"
    )
    ready = stage.passed_until(lambda: job.state().is_ready, 10 * _MINUTE, "capacity for the boost")
    seconds = None if ready is None else round((ready - began).total_seconds(), 1)
    stage.measure(
        "boost_ready_seconds",
        seconds,
        "s",
        question="seconds from the call to capacity that can be used:",
        assumed="35 s",
    )
    state = read_state(stage.place, name)
    stage.check("floor and capacity in the lease", (_FLOOR + _ASKED, _FLOOR + _ASKED), (state.floor, state.units))
    job.release()
    stage.check("floor once the boost is given back", _FLOOR, read_state(stage.place, name).floor)


def _ask_for_more_than_granted(stage: Stage, name: TargetName, outputs: dict[str, str]) -> None:
    job = _job(stage, name, outputs, _CAP + 1)
    answer = job.begin()
    job.release()
    stage.check("units granted to a job that asks for 601", [_CAP], [each.units for each in answer.targets])


def _let_lease_end(stage: Stage, name: TargetName, outputs: dict[str, str]) -> None:
    """A job that dies: nobody gives the boost back."""
    # a boost that was given back keeps its schedule for a while
    before = _schedules(stage)
    answer = _job(stage, name, outputs, _ASKED).begin()
    stage.check("floor while the lease is live", _FLOOR + _ASKED, read_state(stage.place, name).floor)
    stage.check("schedules that a lease makes", 1, len(set(_schedules(stage)) - set(before)))
    over = stage.passed_until(
        lambda: read_state(stage.place, name).floor == _FLOOR,
        (_LEASE_MINUTES + 5) * _MINUTE,
        "the lease ends by itself",
    )
    seconds = None if over is None else round((over - answer.end).total_seconds())
    stage.measure(
        "boost_over_seconds", seconds, "s", question="seconds from a lease's end to the plan's floor:", assumed="60 s"
    )
    stage.check("a lease that nobody gives back ends by itself", "within 2 minutes", seconds, holds=_is_soon(seconds))
    _see_schedule_go(stage, answer.end + _SCHEDULED_FOR)


def _see_schedule_go(stage: Stage, end: datetime) -> None:
    """No thread needs the clock any more, so that a local cloud's may be moved ahead to the schedule's *end*."""
    stage.wait_until(end, "the end of the lease's schedule")
    took = stage.seconds_until(lambda: not _schedules(stage), _GONE_WITHIN, "its schedule deletes itself", _MINUTE / 4)
    stage.check(
        "the schedule of a lease that has ended deletes itself",
        f"within {_GONE_WITHIN // _MINUTE} minutes of its end",
        took,
        holds=took is not None,
    )


def _is_soon(seconds: int | None) -> bool:
    return seconds is not None and seconds <= 120


def _job(stage: Stage, name: TargetName, outputs: dict[str, str], units: int) -> Boost:
    return make_boost(
        name.table,
        write=units,
        minutes=_LEASE_MINUTES,
        reason="acceptance",
        coordinator=parameter_value(stage, coordinator_parameter(outputs["Coordinator"])),
        session=session_as(stage, outputs["LoaderRole"]),
    )


def _schedules(stage: Stage) -> list[str]:
    groups = names_of_type(stage.place, stage.cdk.stack_name(_APP), "AWS::Scheduler::ScheduleGroup")
    schedules = stage.place.client("scheduler").get_paginator("list_schedules")
    return [
        str(each["Name"])
        for group in groups
        for page in schedules.paginate(GroupName=group)
        for each in page["Schedules"]
    ]


BOOSTS: Final = Part(
    name="boosts",
    title="boosts: seconds from the call to capacity, caps, and a lease that ends by itself",
    minutes=40,
    app=_APP,
    # the most that a job gets, above the floor that the table has without it
    bare_units=_CAP,
    run=_run,
)
