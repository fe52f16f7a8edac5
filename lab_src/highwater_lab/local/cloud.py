"""A local cloud for the length of a `with` block."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any

from highwater_lab.local.control import CloudControl, CloudStatus
from highwater_lab.local.process import ServerProcess, start_process


@dataclass(slots=True)
class LocalCloud:
    """A local cloud for the length of a `with` block, on a port of its own unless one is given.

    With *speed* N its clock runs N times faster than real time: what AWS does takes an N-th of its time, and capacity
    units are for seconds of that clock. With *has_instant_updates* a change of a table's capacity, billing mode or warm
    throughput is there at once, as a fast test suite may want it; by default it takes the time that AWS takes. If it
    *is_strict*, functions may do only what the policies of their roles allow, and calls that come too fast are refused.
    Web pages may call it only if they are of one of the *allowed_origins*, such as `http://localhost:3000`.

    Example: `with LocalCloud() as cloud: cloud.client("dynamodb").list_tables()`.
    """

    port: int = 0
    log: Path | None = None
    speed: int = 1
    has_instant_updates: bool = False
    is_strict: bool = False
    allowed_origins: Sequence[str] = ()
    _server: ServerProcess | None = field(default=None, repr=False)
    _scratch: Any = field(default=None, repr=False)

    def __enter__(self) -> LocalCloud:
        """Start it; raises `CloudError` where it cannot start."""
        self._scratch = tempfile.TemporaryDirectory(prefix="highwater-local-", ignore_cleanup_errors=True)
        try:
            folder = Path(self._scratch.name)
            log = self.log or folder / "server.log"
            self._server = start_process(
                self.port,
                log,
                folder,
                self.speed,
                has_instant_updates=self.has_instant_updates,
                is_strict=self.is_strict,
                allowed_origins=self.allowed_origins,
            )
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

    def advance(self, ahead: timedelta) -> CloudStatus:
        """Move its clock ahead, running all that falls due on the way, in order."""
        return self.control.advance(ahead)

    def run_at(self, speed: int) -> CloudStatus:
        """Have its clock run *speed* times faster than real time, 1 to 1,000, from now on."""
        return self.control.run_at(speed)
