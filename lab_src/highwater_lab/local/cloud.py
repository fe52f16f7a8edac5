"""A local cloud for the length of a `with` block."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal

from highwater_lab.local.control import CloudControl, CloudStatus
from highwater_lab.local.lockstep import SeatClock, play
from highwater_lab.local.process import ServerOptions, ServerProcess, start_process

# where a driven clock begins: midnight at the start of a Monday
DRIVEN_FROM: Final = datetime(2026, 1, 5, tzinfo=UTC)


@dataclass(slots=True)
class LocalCloud:
    """A local cloud for the length of a `with` block, on a port of its own unless one is given.

    Its *clock* is "running" or "driven". A running one runs in real time, or with *speed* N N times faster: what AWS
    does takes an N-th of its time, and capacity units are for seconds of that clock. A driven one stands still until
    `step`, `advance` or `play` moves it, so that a test has the same result on every machine; it begins at
    *starts_at*, by default Monday 2026-01-05 at midnight, UTC.

    With *has_instant_updates* a change of a table's capacity, billing mode or warm throughput is in force at once, as a
    fast test suite may want it; by default it takes the time that AWS takes. If it *is_strict*, functions may do only
    what the policies of their roles allow, and calls that come too fast are refused. Web pages may call it only if they
    are of one of the *allowed_origins*, such as `http://localhost:3000`.

    Example: `with LocalCloud() as cloud: cloud.client("dynamodb").list_tables()`.
    """

    port: int = 0
    log: Path | None = None
    speed: int = 1
    has_instant_updates: bool = False
    is_strict: bool = False
    allowed_origins: Sequence[str] = ()
    clock: Literal["running", "driven"] = "running"
    starts_at: datetime | None = None
    _server: ServerProcess | None = field(default=None, repr=False)
    _scratch: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Check that the arguments fit each other."""
        if self.clock not in ("running", "driven"):
            raise ValueError(f"clock: got {self.clock!r}, allowed: 'running' or 'driven'")
        if self.clock == "driven" and self.speed != 1:
            raise ValueError(f"speed: got {self.speed} for a driven clock, which has none; leave it out")
        if self.clock == "running" and self.starts_at is not None:
            raise ValueError("starts_at: got a time for a running clock, which begins now; add clock='driven'")
        if self.starts_at is not None and self.starts_at.tzinfo is None:
            raise ValueError(f"starts_at: got {self.starts_at.isoformat()} without a time zone; add tzinfo=UTC")

    def __enter__(self) -> LocalCloud:
        """Start it; raises `CloudError` where it cannot start."""
        self._scratch = tempfile.TemporaryDirectory(prefix="highwater-local-", ignore_cleanup_errors=True)
        try:
            folder = Path(self._scratch.name)
            log = self.log or folder / "server.log"
            start = self.starts_at or DRIVEN_FROM
            options = ServerOptions(
                speed=self.speed,
                driven_from=start.astimezone(UTC) if self.clock == "driven" else None,
                has_instant_updates=self.has_instant_updates,
                is_strict=self.is_strict,
                allowed_origins=self.allowed_origins,
            )
            self._server = start_process(self.port, log, folder, options)
        except BaseException:
            self._scratch.cleanup()
            raise
        self.port = self._server.port
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        if self._server is not None:
            self._server.stop()
        self._scratch.cleanup()

    @property
    def control(self) -> CloudControl:
        """Its status and clock."""
        return CloudControl(self.port)

    @property
    def endpoint(self) -> str:
        """Where AWS clients find it."""
        return self.control.endpoint

    def environment(self) -> dict[str, str]:
        """The variables that point AWS's tools at it."""
        return self.control.environment()

    def client_arguments(self) -> dict[str, str]:
        """What `boto3.client` needs to talk to it."""
        return self.control.client_arguments()

    def client(self, service: str, config: Any = None) -> Any:
        """A boto3 client of that service, talking to this cloud, with a `botocore.config.Config` if one is given."""
        return self.control.client(service, config)

    def status(self) -> CloudStatus:
        """How it is."""
        return self.control.status()

    def step(self, ahead: timedelta | float) -> CloudStatus:
        """Move a driven clock ahead by a `timedelta` or a number of seconds.

        All that falls due on the way happens at its own time: scheduled actions, target tracking, alarms, schedules,
        and the functions that they start, each of which ends, or waits for a later time, before the clock moves on.
        0 waits for functions that run in the background.

        Raises:
            CloudError: The clock runs, or it cannot move because a function hangs.
        """
        return self.control.step(ahead if isinstance(ahead, timedelta) else timedelta(seconds=ahead))

    def play(self, *jobs: Callable[[SeatClock], Any]) -> list[Any]:
        """Run *jobs* side by side in lock-step with a driven clock; what they return, in their order.

        Each is called in a thread of its own with its `SeatClock`. One of them works at a time; the clock moves when
        all of them wait, to the next moment that one of them waits for. In a job, `time.sleep`, `time.time`,
        `time.monotonic` and waits for a `threading.Event` are the clock's, so the pauses of an SDK's retries are in the
        cloud's time too. In other threads, and in an event loop, they are the machine's, except in threads that run in
        a copy of the job's context, as `asyncio.to_thread` starts them.

        Raises:
            CloudError: The clock runs, or it cannot move because a job neither waits nor ends.
            BaseException: What the first job raised that failed.

        Example: `cloud.play(lambda clock: clock.sleep(10))`.
        """
        return play(self.control, jobs)

    def advance(self, ahead: timedelta) -> CloudStatus:
        """Move its clock ahead by whole seconds, running scheduled actions, target tracking and alarms on the way.

        Schedules of EventBridge Scheduler run once, at the end, and functions see the time at the end: a long way is
        short work. `step` runs everything at its own time.
        """
        return self.control.advance(ahead)

    def run_at(self, speed: int) -> CloudStatus:
        """Have a running clock run *speed* times faster than real time, 1 to 1,000, from now on."""
        return self.control.run_at(speed)
