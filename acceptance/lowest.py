"""The lowest floor of a target while something else goes on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Final

from botocore.exceptions import BotoCoreError, ClientError

from acceptance.deployed import read_state
from acceptance.stage import Stage
from highwater.core.names import TargetName

# In an account CloudFormation calls the same services meanwhile, and has the same rates
_POLL: Final = {True: timedelta(seconds=1), False: timedelta(seconds=0.4)}
UNKNOWN: Final = "unknown"


class LowestFloor:
    """The lowest floor that is seen while a block runs, and for how long the floor was below *planned*.

    A thread looks each second. A look that AWS refuses is left out; if most are refused, both results are unknown.
    """

    def __init__(self, stage: Stage, name: TargetName, planned: int) -> None:
        self._stage = stage
        self._name = name
        self._planned = planned
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._floor = planned
        self._low = timedelta(0)
        self._looks = self._refused = 0

    @property
    def floor(self) -> int | str:
        """The lowest floor, in units."""
        return self._floor if self._is_known else UNKNOWN

    @property
    def seconds(self) -> int | str:
        """For how many seconds it was too low."""
        return round(self._low.total_seconds()) if self._is_known else UNKNOWN

    @property
    def _is_known(self) -> bool:
        return self._looks > self._refused

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch during the block."""
        self._thread.start()
        try:
            yield
        finally:
            self._is_over.set()
            self._thread.join()

    def _watch(self) -> None:
        status = self._stage.place.status()
        before = status.now
        seconds = _POLL[self._stage.place.is_real].total_seconds() / status.speed
        while not self._is_over.wait(seconds):
            self.look(before)
            before = self._stage.place.status().now

    def look(self, before: datetime) -> None:
        """Look once; the look before was at *before*."""
        try:
            floor = read_state(self._stage.place, self._name).floor or 0
        except (BotoCoreError, ClientError):
            self._refused += 1
            return
        self._looks += 1
        if floor < self._planned:
            self._low += self._stage.place.status().now - before
        self._floor = min(self._floor, floor)
