"""What falls due in the cloud, in order of time: scheduled actions, and target tracking every minute."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from highwater_local import ministack
from highwater_local.alarms import Alarms
from highwater_local.autoscaling.service import TIMING, AutoScaling
from highwater_local.clock import CloudClock
from highwater_local.schedules import Schedules

_DAY = timedelta(days=1)
_MINUTE = timedelta(minutes=1)
_SHORTEST_TICK = 0.005


class Agenda:
    """Runs what falls due for every account and region; *services* may gain members at any time."""

    def __init__(
        self,
        clock: CloudClock,
        services: Mapping[tuple[str, str], AutoScaling],
        alarms: Alarms,
        schedules: Schedules,
    ) -> None:
        self._clock = clock
        self._schedules = schedules
        self._scheduled_minute = clock.second() // 60
        self._services = services
        self._alarms = alarms
        self._ran_until = clock.now()

    async def follow_clock(self) -> None:
        """Run what falls due on a clock that runs, every second of the cloud where possible, until cancelled."""
        while True:
            await asyncio.sleep(max(_SHORTEST_TICK, 1 / self._clock.speed))
            self._run_until(self._clock.now(), hold=False)
            self._run_schedules()

    def next_due(self) -> datetime:
        """When something falls due next: a minute's schedules or alarms, or a scheduled action."""
        ran = int(self._ran_until.timestamp())
        runs = [due for service in self._services.values() if (due := service.next_run(ran)) is not None]
        moments = [self._next_judgement(), datetime.fromtimestamp((self._scheduled_minute + 1) * 60, UTC)]
        return min(moments + [datetime.fromtimestamp(due, UTC) for due in runs])

    def run_next(self) -> None:
        """Move the clock to `next_due`, and run what falls due then."""
        at = self.next_due()
        self._run_until(at, hold=True)
        self._run_schedules()

    async def advance(self, ahead: timedelta) -> None:
        """Move the clock ahead; everything due on the way runs at its own time."""
        goal = self._clock.now() + ahead
        try:
            while self._ran_until < goal:
                self._run_until(min(goal, self._ran_until + _DAY), hold=True)
                # other requests get a turn between days
                await asyncio.sleep(0)
            self._clock.hold(goal)
        finally:
            self._clock.release()
        self._run_schedules()

    def _run_schedules(self) -> None:
        """Start what EventBridge Scheduler has due, where the clock has a new minute."""
        if self._clock.second() // 60 > self._scheduled_minute:
            self._scheduled_minute = self._clock.second() // 60
            self._schedules.run_due()

    def _next_judgement(self) -> datetime:
        """When the next minute's datapoint has set off its alarm."""
        minute = self._ran_until.replace(second=TIMING.acting_second, microsecond=0)
        return minute if minute > self._ran_until else minute + _MINUTE

    def _run_until(self, end: datetime, hold: bool) -> None:
        minute = self._next_judgement()
        while self._ran_until < end:
            ran = int(self._ran_until.timestamp())
            runs = [due for service in self._services.values() if (due := service.next_run(ran)) is not None]
            following = datetime.fromtimestamp(min(runs), UTC) if runs else None
            at = end if following is None else min(end, following)
            while minute <= at:
                if hold:
                    self._clock.hold(minute)
                for scope, service in self._services.items():
                    with ministack.request_scope(*scope):
                        service.track()
                self._alarms.judge_all()
                minute += _MINUTE
            if hold:
                self._clock.hold(at)
            for scope, service in self._services.items() if at == following else ():
                with ministack.request_scope(*scope):
                    service.run_due(int(at.timestamp()))
            self._ran_until = at
