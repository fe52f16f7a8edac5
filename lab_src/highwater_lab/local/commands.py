"""The local cloud's own commands: `status`, `advance` and `speed`, as requests under `/_highwater/`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

from highwater_lab.local.agenda import Agenda
from highwater_lab.local.clock import CloudClock

CONTROL_PATH: Final = "/_highwater/"
# Ten years: zone rules are guesses before that
_LONGEST_SECONDS: Final = 3660 * 24 * 3600
_LONGEST_ECHO: Final = 60
FASTEST: Final = 1000
_METHODS: Final = {"status": "GET", "advance": "POST", "speed": "POST"}
Answer = tuple[int, dict[str, Any]]


class Commands:
    """Answers the commands; *contents* tells what the cloud holds, by the names of `CloudStatus`."""

    def __init__(self, clock: CloudClock, agenda: Agenda, contents: Callable[[], dict[str, int]]) -> None:
        self._clock = clock
        self._agenda = agenda
        self._contents = contents

    async def answer(self, path: str, method: str, body: bytes) -> Answer:
        """Carry a command out; the HTTP status and the document to answer with."""
        command = path.removeprefix(CONTROL_PATH)
        wanted = _METHODS.get(command)
        if wanted is None:
            return 404, {"message": f"no command {command!r}; there are status, advance and speed"}
        if method != wanted:
            # a page can make a browser send GET without a word
            return 405, {"message": f"{command} wants {wanted}"}
        if command == "advance":
            seconds = _member(body, "seconds")
            if not isinstance(seconds, int) or isinstance(seconds, bool) or not 0 <= seconds <= _LONGEST_SECONDS:
                got = _shown(seconds)
                return 400, {"message": f"seconds must be a whole number from 0 to {_LONGEST_SECONDS}, got {got}"}
            await self._agenda.advance(timedelta(seconds=seconds))
        elif command == "speed":
            speed = _member(body, "speed")
            if not isinstance(speed, int) or isinstance(speed, bool) or not 1 <= speed <= FASTEST:
                return 400, {"message": f"speed must be a whole number from 1 to {FASTEST}, got {_shown(speed)}"}
            self._clock.run_at(speed)
        return 200, self._status()

    def _status(self) -> dict[str, Any]:
        now = self._clock.now().isoformat(timespec="seconds")
        return {"now": now, "speed": self._clock.speed, "pid": os.getpid()} | self._contents()


def _shown(value: object) -> str:
    return repr(value)[:_LONGEST_ECHO]


def _member(body: bytes, name: str) -> object:
    """What a request gives for a member, whatever it is."""
    try:
        document = json.loads(body)
    except ValueError:
        return None
    return document.get(name) if isinstance(document, dict) else None
