"""The local cloud's own commands, such as `status` and `step`, as requests under `/_highwater/`."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from datetime import timedelta
from importlib import metadata
from typing import Any, Final

from highwater.core.documents import DocumentError, read_document
from highwater_local.clock import CloudClock
from highwater_local.timeline import Agenda, StuckError, Timeline

CONTROL_PATH: Final = "/_highwater/"
# Ten years: further ahead, time zone rules are not reliable
_LONGEST_SECONDS: Final = 3660 * 24 * 3600
_LONGEST_ECHO: Final = 60
_MOST_SEATS: Final = 1_000
FASTEST: Final = 1000
Answer = tuple[int, dict[str, Any]]
Document = dict[str, Any]


class _WrongError(Exception):
    """A command cannot be carried out; the message says why."""


class Commands:
    """Answers the commands.

    *run_of* returns the run of a function to which a Lambda request belongs; *contents* returns the counts of the
    cloud's resources, by the names of `CloudStatus`; *throttles* returns what its tables have throttled.
    """

    def __init__(
        self,
        clock: CloudClock,
        agenda: Agenda,
        timeline: Timeline,
        run_of: Callable[[str], str],
        contents: Callable[[], dict[str, int]],
        throttles: Callable[[], list[Document]],
    ) -> None:
        self._clock = clock
        self._agenda = agenda
        self._timeline = timeline
        self._run_of = run_of
        self._contents = contents
        self._throttles = throttles
        # a web page can make a browser send a GET request unnoticed
        self._commands: dict[str, tuple[str, Callable[[Document], Awaitable[Document]]]] = {
            "status": ("GET", self._status),
            "advance": ("POST", self._advance),
            "speed": ("POST", self._run_at),
            "time": ("GET", self._time),
            "step": ("POST", self._step),
            "wait": ("POST", self._wait),
            "seats": ("POST", self._take_seats),
            "leave": ("POST", self._leave),
            "throttles": ("GET", self._count_throttles),
        }

    async def answer(self, path: str, method: str, body: bytes) -> Answer:
        """Carry out a command; return the HTTP status and the document of the answer."""
        name = path.removeprefix(CONTROL_PATH)
        if name not in self._commands:
            *others, last = self._commands
            return 404, {"message": f"no command {name!r}; there are {', '.join(others)} and {last}"}
        wanted, command = self._commands[name]
        if method != wanted:
            return 405, {"message": f"{name} wants {wanted}"}
        try:
            return 200, await command(_document(body))
        except _WrongError as wrong:
            return 400, {"message": str(wrong)}
        except StuckError as stuck:
            return 409, {"message": str(stuck)}

    async def _status(self, _: Document) -> Document:
        return {
            "now": self._clock.now().isoformat(),
            "speed": self._clock.speed,
            "pid": os.getpid(),
            "version": metadata.version("highwater-local"),
        } | self._contents()

    async def _advance(self, given: Document) -> Document:
        await self._agenda.advance(timedelta(seconds=_whole(given, "seconds", 0, _LONGEST_SECONDS)))
        if self._clock.is_driven and not self._timeline.has_seats:
            # until everything that was started has ended
            await self._timeline.wait(timedelta(0))
        return await self._status(given)

    async def _run_at(self, given: Document) -> Document:
        speed = _whole(given, "speed", 1, FASTEST)
        if self._clock.is_driven:
            raise _WrongError("the clock is driven, so it has no speed; move it with step or advance")
        self._clock.run_at(speed)
        return await self._status(given)

    async def _step(self, given: Document) -> Document:
        if not self._clock.is_driven:
            raise _WrongError("the clock runs by itself; use advance, or start the cloud with --clock driven")
        if self._timeline.has_seats:
            raise _WrongError("jobs play in lock-step, and the clock moves when they wait; sleep in a job instead")
        await self._timeline.wait(_length(given))
        return await self._status(given)

    async def _wait(self, given: Document) -> Document:
        seat, request = given.get("seat"), given.get("request")
        await self._timeline.wait(
            _length(given),
            seat=seat if isinstance(seat, int) else None,
            run=self._run_of(request) if isinstance(request, str) else None,
        )
        return await self._time(given)

    async def _time(self, _: Document) -> Document:
        return {"now": self._clock.now().isoformat(), "timestamp": self._clock.now().timestamp()}

    async def _take_seats(self, given: Document) -> Document:
        return {"seats": self._timeline.take_seats(_whole(given, "number", 1, _MOST_SEATS))}

    async def _count_throttles(self, _: Document) -> Document:
        return {"throttles": self._throttles()}

    async def _leave(self, given: Document) -> Document:
        seat = given.get("seat")
        if isinstance(seat, int):
            self._timeline.leave(seat)
        return {}


def _whole(given: Document, name: str, least: int, most: int) -> int:
    number = given.get(name)
    if not isinstance(number, int) or isinstance(number, bool) or not least <= number <= most:
        got = repr(number)[:_LONGEST_ECHO]
        raise _WrongError(f"{name} must be a whole number from {least} to {most}, got {got}")
    return number


def _length(given: Document) -> timedelta:
    seconds = given.get("seconds")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= _LONGEST_SECONDS:
        got = repr(seconds)[:_LONGEST_ECHO]
        raise _WrongError(f"seconds must be a number from 0 to {_LONGEST_SECONDS}, got {got}")
    return timedelta(seconds=seconds)


def _document(body: bytes) -> Document:
    """Return the request's JSON object; an empty one if the body is not an object."""
    try:
        document = read_document(body)
    except DocumentError:
        return {}
    return document if isinstance(document, dict) else {}
