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

# the start of a driven clock: midnight at the start of a Monday
DRIVEN_FROM: Final = datetime(2026, 1, 5, tzinfo=UTC)


@dataclass(slots=True)
class LocalCloud:
    """A local cloud for the length of a `with` block, on a free port unless one is given.

    Its *clock* is "running" or "driven". A running clock runs in real time, or *speed* times faster: everything in the
    cloud is then faster by that factor, and capacity units are per second of that clock. A driven clock stands still
    until `step`, `advance` or `play` moves it, so that a test has the same result on every machine; it starts at
    *starts_at*, by default Monday 2026-01-05 at midnight, UTC.

    With *has_instant_updates*, a change of a table's capacity, billing mode or warm throughput takes effect at once,
    for fast test suites; by default it takes as long as on AWS. If the cloud *is_strict*, functions have only the
    permissions of their roles' policies, and calls above AWS's rates are throttled. If it *is_express*, too, every
    operation on a stack is in CloudFormation's express mode, whether it asks for that or not. If it *is_fresh_account*,
    too, it is as an account in which nothing was deployed before: Application Auto Scaling has no role yet, and Lambda
    ten concurrent runs. Web pages may call the cloud only if they are from one of the *allowed_origins*, such as
    `http://localhost:3000`.

    Example:
        ```python
        with LocalCloud() as cloud:
            print(cloud.client("dynamodb").list_tables()["TableNames"])
        ```
    """

    port: int = 0
    log: Path | None = None
    speed: int = 1
    has_instant_updates: bool = False
    is_strict: bool = False
    is_express: bool = False
    is_fresh_account: bool = False
    allowed_origins: Sequence[str] = ()
    clock: Literal["running", "driven"] = "running"
    starts_at: datetime | None = None
    _server: ServerProcess | None = field(default=None, repr=False)
    _scratch: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Check that the arguments fit each other."""
        if self.clock not in ("running", "driven"):
            raise ValueError(f"clock: got {self.clock!r}, allowed: 'running' or 'driven'")
        if self.is_express and not self.is_strict:
            raise ValueError("is_express: got True for a cloud that is not strict; add is_strict=True")
        if self.is_fresh_account and not self.is_strict:
            raise ValueError("is_fresh_account: got True for a cloud that is not strict; add is_strict=True")
        if self.clock == "driven" and self.speed != 1:
            raise ValueError(f"speed: got {self.speed} for a driven clock, which has none; leave it out")
        if self.clock == "running" and self.starts_at is not None:
            raise ValueError("starts_at: got a time for a running clock, which begins now; add clock='driven'")
        if self.starts_at is not None and self.starts_at.tzinfo is None:
            raise ValueError(f"starts_at: got {self.starts_at.isoformat()} without a time zone; add tzinfo=UTC")

    def __enter__(self) -> LocalCloud:
        """Start the cloud; raises `CloudError` if it cannot start."""
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
                is_express=self.is_express,
                is_fresh_account=self.is_fresh_account,
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
        """Stop the cloud."""
        if self._server is not None:
            self._server.stop()
        self._scratch.cleanup()

    @property
    def control(self) -> CloudControl:
        """Its status and clock."""
        return CloudControl(self.port)

    @property
    def endpoint(self) -> str:
        """The endpoint URL for AWS clients."""
        return self.control.endpoint

    def environment(self, role: str | None = None) -> dict[str, str]:
        """The environment variables that direct AWS's tools to it, with credentials of the account's root.

        With *role*, the name or ARN of a role of the cloud, they are that role's; raises `CloudError` if there is none.
        """
        return self.control.environment(role)

    def client_arguments(self) -> dict[str, str]:
        """The arguments for `boto3.client`."""
        return self.control.client_arguments()

    def client(self, service: str, config: Any = None) -> Any:
        """Return a boto3 client of that service for this cloud, with a `botocore.config.Config` if one is given."""
        return self.control.client(service, config)

    def status(self) -> CloudStatus:
        """Return the cloud's status."""
        return self.control.status()

    def step(self, ahead: timedelta | float) -> CloudStatus:
        """Move a driven clock ahead by a `timedelta` or a number of seconds.

        Everything that falls due on the way runs at its own time: scheduled actions, target tracking, alarms,
        schedules, and the functions that they start. Each function ends, or waits for a later time, before the clock
        moves on. 0 waits for functions that run in the background.

        Raises:
            CloudError: The clock is a running one, or it cannot move because a function hangs.
        """
        return self.control.step(ahead if isinstance(ahead, timedelta) else timedelta(seconds=ahead))

    def play(self, *jobs: Callable[[SeatClock], Any]) -> list[Any]:
        """Run *jobs* concurrently in lock-step with a driven clock; return their results in the order of the jobs.

        Each job is called in a separate thread with its `SeatClock`. One job works at a time; when all of them wait,
        the clock moves to the next moment for which one of them waits. In a job, `time.sleep`, `time.time`,
        `time.monotonic` and waits for a `threading.Event` use the cloud's clock, so the pauses of an SDK's retries do
        too. In other threads, and in an event loop, they use the machine's clock, except in threads that run in a copy
        of the job's context, as `asyncio.to_thread` starts them.

        Raises:
            CloudError: The clock is a running one, or it cannot move because a job neither waits nor ends.
            BaseException: The exception of the first job that failed.

        Example:
            ```python
            cloud.play(lambda clock: clock.sleep(10))
            ```
        """
        return play(self.control, jobs)

    def advance(self, ahead: timedelta) -> CloudStatus:
        """Move its clock ahead by whole seconds, running scheduled actions, target tracking and alarms on the way.

        Schedules of EventBridge Scheduler run once, at the end, and functions see the time at the end, so that long
        times are fast. `step` runs everything at its own time.
        """
        return self.control.advance(ahead)

    def run_at(self, speed: int) -> CloudStatus:
        """Make a running clock run *speed* times faster than real time, 1 to 1,000, from now on."""
        return self.control.run_at(speed)
