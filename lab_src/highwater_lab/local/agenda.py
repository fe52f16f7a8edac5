"""What falls due in the cloud, in order of time: scheduled actions, and target tracking every minute."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from highwater_lab.local import ministack
from highwater_lab.local.alarms import Alarms
from highwater_lab.local.autoscaling.service import TIMING, AutoScaling
from highwater_lab.local.clock import CloudClock
from highwater_lab.local.schedules import Schedules

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
        """Run what falls due, every second of the cloud where that is possible, until cancelled."""
        while True:
            await asyncio.sleep(max(_SHORTEST_TICK, 1 / self._clock.speed))
            self._run_until(self._clock.now(), hold=False)
            if self._clock.second() // 60 > self._scheduled_minute:
                self._scheduled_minute = self._clock.second() // 60
                self._schedules.run_due()

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

    def _run_until(self, end: datetime, hold: bool) -> None:
        # when a minute's datapoint has set off its alarm
        minute = self._ran_until.replace(second=TIMING.acting_second, microsecond=0)
        if minute <= self._ran_until:
            minute += _MINUTE
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
