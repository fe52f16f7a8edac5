"""Reads the segments of a table with several threads, a page of each in turn."""

from __future__ import annotations

import queue
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextvars import copy_context
from typing import Any, Final

Key = Mapping[str, Any] | None
# Pages come from at least so many segments in turn, so that no partition is read for long
_LEAST_ACTIVE: Final = 5
_WAIT_SECONDS: Final = 0.2
_STOP_SECONDS: Final = 2.0


class SegmentPages:
    """Yields (segment, page, key of the next page) until all segments are read to their end.

    Args:
        read: Reads the page of a segment after a key.
        pending: Where each segment that is not done begins.
        workers: How many threads read.
        is_stopped: Ends the pages once it is set, from wherever. By default only `stop` does.
    """

    def __init__(
        self,
        read: Callable[[int, Key], dict[str, Any]],
        pending: Mapping[int, Key],
        workers: int,
        is_stopped: threading.Event | None = None,
    ) -> None:
        self._read = read
        waiting = list(pending.items())
        random.shuffle(waiting)
        self._waiting = waiting
        self._active: deque[tuple[int, Key]] = deque()
        self._most_active = max(_LEAST_ACTIVE, workers)
        self._left = len(waiting)
        self._lock = threading.Lock()
        self._is_stopped = is_stopped or threading.Event()
        # pages are not read far ahead of whoever works on them
        self._pages: queue.Queue[tuple[int, dict[str, Any]] | BaseException] = queue.Queue(maxsize=workers)
        # each in a copy of the caller's context: traces and the like see one piece of work
        self._threads = [
            threading.Thread(target=copy_context().run, args=(self._work,), daemon=True)
            for _ in range(min(workers, len(waiting)))
        ]

    def __iter__(self) -> Iterator[tuple[int, dict[str, Any], Key]]:
        """Start the threads and yield pages until `stop`; raises what a thread raised."""
        for thread in self._threads:
            thread.start()
        while self._left and not self._is_stopped.is_set():
            try:
                found = self._pages.get(timeout=_WAIT_SECONDS)
            except queue.Empty:
                continue
            if isinstance(found, BaseException):
                raise found
            segment, page = found
            key = page.get("LastEvaluatedKey")
            if key is None:
                self._left -= 1
            yield segment, page, key

    def stop(self) -> None:
        """End the threads; what they are reading is dropped."""
        self._is_stopped.set()
        # those that wait for their budget may have long to wait, so all of them together get this time
        end = time.monotonic() + _STOP_SECONDS
        for thread in self._threads:
            if thread.is_alive():
                thread.join(timeout=max(end - time.monotonic(), 0))

    def _work(self) -> None:
        while not self._is_stopped.is_set():
            taken = self._take()
            if taken is None:
                if not self._left:
                    return
                # the others' segments come back, or are done
                self._is_stopped.wait(_WAIT_SECONDS)
                continue
            segment, key = taken
            try:
                page = self._read(segment, key)
            except BaseException as error:
                self._put(error)
                return
            self._put((segment, page))
            following = page.get("LastEvaluatedKey")
            if following is not None:
                with self._lock:
                    self._active.append((segment, following))

    def _take(self) -> tuple[int, Key] | None:
        with self._lock:
            while self._waiting and len(self._active) < self._most_active:
                self._active.append(self._waiting.pop())
            return self._active.popleft() if self._active else None

    def _put(self, page: tuple[int, dict[str, Any]] | BaseException) -> None:
        while not self._is_stopped.is_set():
            try:
                self._pages.put(page, timeout=_WAIT_SECONDS)
            except queue.Full:
                continue
            return
