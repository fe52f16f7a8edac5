"""The lowest floor of a target while something else goes on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from acceptance.deployed import read_state
from acceptance.stage import Stage
from highwater.core.names import TargetName

_POLL_SECONDS: Final = 0.02


class LowestFloor:
    """The lowest floor that a thread sees while a block runs, and for how long the floor was below *planned*."""

    def __init__(self, stage: Stage, name: TargetName, planned: int) -> None:
        self._stage = stage
        self._name = name
        self._planned = planned
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.floor = planned
        self.seconds = 0.0

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
        before = self._stage.place.status().now
        while not self._is_over.wait(_POLL_SECONDS):
            floor = read_state(self._stage.place, self._name).floor or 0
            now = self._stage.place.status().now
            if floor < self._planned:
                self.seconds += (now - before).total_seconds()
            self.floor = min(self.floor, floor)
            before = now
