"""What is decided about in tests: observations of a table, the state of a target, and settings of their own."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import settings

from highwater.core import Dimension
from highwater.core.scaler import Mode, Observation, ScalerSettings, TargetState, decide
from tests.core.examples import examples

NOW = datetime(2027, 3, 4, 10, 3, 40, tzinfo=UTC)
LATE = NOW.replace(minute=58)
FLOOR = ScalerSettings()
DIRECT = ScalerSettings(mode=Mode.DIRECT)
law = settings(max_examples=examples(300))


def minute_of(at: datetime) -> int:
    return int(at.timestamp()) // 60


def seen(
    consumed: list[int | None], throttled: list[int] | None = None, now: datetime = NOW, **more: Any
) -> Observation:
    """Minutes up to the newest that can be there at *now*: it ended 160 seconds ago."""
    newest = (int(now.timestamp()) - 160) // 60 - 1
    return Observation.of(newest, tuple(consumed), tuple(throttled or [0] * len(consumed)), **more)


def steady(units: int, minutes: int = 60, last: list[int | None] | None = None, **more: Any) -> Observation:
    """So many units a second for so many minutes, then *last*, units a minute."""
    return seen([*[units * 60] * minutes, *(last or [])], **more)


def state(current: int, baseline: int = 10, ceiling: int = 9_000, **more: Any) -> TargetState:
    return TargetState(
        index=None, dimension=Dimension.WRITE, current=current, baseline=baseline, ceiling=ceiling, **more
    )


def granted(
    current: int, observation: Observation, settings: ScalerSettings = FLOOR, now: datetime = NOW, **more: Any
) -> int:
    return decide(settings, state(current, **more), observation, now=now).granted
