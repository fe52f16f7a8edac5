"""`highwater.boost`: requests capacity before a job starts, renews the lease while the job runs, and releases it."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Final

from highwater.client.coordinator import BoostError, BoostRefusedError, CoordinatorClient


@dataclass(frozen=True, slots=True)
class GrantedTarget:
    """What a boost gets of one target.

    Attributes:
        target: The table or index and dimension, such as `table write`.
        asked: The units per second that were asked for.
        units: Those that were granted, 0 for none.
        limits: What left it so many, a sentence each; empty if it got all.
        usd_per_hour: What the granted units cost per hour in US dollars; `None` where the price is not known.
    """

    target: str
    asked: int
    units: int
    limits: tuple[str, ...]
    usd_per_hour: float | None


@dataclass(frozen=True, slots=True)
class BoostAnswer:
    """The answer to a request for a boost.

    Attributes:
        id: The boost's id, for `renew`, `release` and `highwater boost release`.
        table: The table's name.
        outcome: `whole`, `part` or `refused`.
        start: The instant from which it counts.
        end: The instant at which it ends by itself.
        targets: What it gets, the table first; its indexes follow where it writes.
        notes: What the job should know, such as growth that comes before the capacity.
    """

    id: str
    table: str
    outcome: str
    start: datetime
    end: datetime
    targets: tuple[GrantedTarget, ...]
    notes: tuple[str, ...] = ()

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> BoostAnswer:
        """Read the coordinator's JSON."""
        return cls(
            document["id"],
            document["table"],
            document["outcome"],
            datetime.fromisoformat(document["start"]),
            datetime.fromisoformat(document["end"]),
            tuple(
                GrantedTarget(
                    each["target"],
                    each["asked"],
                    each["units"],
                    tuple(limit["sentence"] for limit in each["limits"]),
                    each["usd_per_hour"],
                )
                for each in document["targets"]
            ),
            tuple(document.get("notes", ())),
        )

    @property
    def usd_per_hour(self) -> float | None:
        """What it costs per hour in US dollars, of all its targets; `None` where a price is not known."""
        prices = [each.usd_per_hour for each in self.targets]
        return None if None in prices else sum(price for price in prices if price is not None)

    def lines(self) -> list[str]:
        """Return the answer in sentences."""
        lines = []
        for each in self.targets:
            granted = f"{each.units:,} units/s" if each.units else "nothing"
            of = "" if each.units == each.asked else f" of {each.asked:,}"
            lines.append(f"{self.table}, {each.target}: {granted}{of} until {self.end:%Y-%m-%d %H:%M:%S} UTC")
            lines.extend(f"  {limit}" for limit in each.limits)
        if self.usd_per_hour:
            lines.append(f"about {self.usd_per_hour:,.2f} USD an hour; an hour is billed at its highest capacity")
        return [*lines, *self.notes]


@dataclass(frozen=True, slots=True)
class TargetState:
    """How far one target is, in units per second.

    Attributes:
        target: The table or index and dimension, such as `table write`.
        wanted: What plan and boosts ask for now.
        floor: Its floor, `None` where no scalable target is registered.
        provisioned: Its capacity.
        is_ready: Whether it has what it is to have, and the table is not being changed.
    """

    target: str
    wanted: int
    floor: int | None
    provisioned: int
    is_ready: bool


@dataclass(frozen=True, slots=True)
class BoostState:
    """How far a boost is.

    Attributes:
        is_ready: Whether the capacity can be used.
        targets: Its targets.
        notes: What the job should know.
    """

    is_ready: bool
    targets: tuple[TargetState, ...]
    notes: tuple[str, ...] = ()

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> BoostState:
        """Read the coordinator's JSON."""
        targets = tuple(
            TargetState(each["target"], each["wanted"], each["floor"], each["provisioned"], each["is_ready"])
            for each in document["targets"]
        )
        return cls(document["is_ready"], targets, tuple(document["notes"]))

    def line(self) -> str:
        """Return the state in one line: capacity of what is to be there, by target."""
        return ", ".join(f"{each.target} {each.provisioned:,} of {each.wanted:,}" for each in self.targets)


_POLL_SECONDS: Final = 2.0
_LOG: Final = logging.getLogger("highwater.boost")
# A lease is renewed when a third of it is left, and a renewal that fails is tried again twice before it ends.
_RENEWED_AFTER: Final = 2 / 3
_RETRIED_AFTER: Final = 1 / 10
_OVER: Final = 410


class BoostNotReadyError(BoostError):
    """The capacity has not come in time."""


@dataclass(kw_only=True)
class Boost:
    """One boost, made by `highwater.boost`: a context manager, for `with` and for `async with`.

    Within the block the capacity is there. The lease is renewed for as long as the block runs, up to a day, and given
    back at its end, also after an exception. If the process dies, the lease ends by itself.

    Attributes:
        table: The table's label.
        members: What is asked for, as the coordinator takes it.
        minutes: The length of the lease.
        client: Speaks with the coordinator.
        timeout: How long to wait for the capacity.
        on_progress: Called with the boost's state while waiting.
        id: The boost's id: a request that is sent again with it is one boost.
        clock: Tells seconds that only go forward.
        answer: The coordinator's answer, `None` before `begin`.
    """

    table: str
    members: dict[str, Any]
    minutes: int
    client: CoordinatorClient
    timeout: timedelta
    on_progress: Callable[[BoostState], None] | None = None
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    clock: Callable[[], float] = lambda: time.monotonic()
    answer: BoostAnswer | None = None
    _ended: threading.Event = field(default_factory=threading.Event)
    _renewer: threading.Thread | None = None
    _begun_at: float = 0.0

    def begin(self) -> BoostAnswer:
        """Ask for the capacity and return the answer, without waiting for the capacity.

        Raises:
            BoostRefusedError: Nothing is granted.
            CoordinatorUnavailableError: No coordinator is found, or it does not answer.
        """
        self._begun_at = self.clock()
        document = self.client.send("begin", id=self.id, table=self.table, minutes=self.minutes, **self.members)
        self.answer = BoostAnswer.from_document(document)
        if self.answer.outcome == "refused":
            raise BoostRefusedError(409, "; ".join(line.strip() for line in self.answer.lines()))
        return self.answer

    def state(self) -> BoostState:
        """Ask how far the boost is; raises the errors of `CoordinatorClient.send`."""
        return BoostState.from_document(self.client.send("status", id=self.id, table=self.table))

    def wait(self) -> BoostState:
        """Wait until the capacity can be used.

        Raises:
            BoostNotReadyError: It has not come in time; the boost goes on.
        """
        until = self.clock() + self.timeout.total_seconds()
        while True:
            if self._ended.is_set():
                raise BoostNotReadyError(f"{self.table}: boost {self.id} was given back")
            state = self.state()
            if self.on_progress is not None:
                self.on_progress(state)
            if state.is_ready:
                return state
            if self.clock() + _POLL_SECONDS > until:
                why = "; ".join((state.line(), *state.notes))
                raise BoostNotReadyError(f"{self.table}: the capacity has not come in {self.timeout}: {why}")
            self._ended.wait(_POLL_SECONDS)

    def renew(self) -> None:
        """Have the lease last its length from now on; raises the errors of `CoordinatorClient.send`."""
        self.client.send("renew", id=self.id, table=self.table, minutes=self.minutes)

    def release(self) -> None:
        """Give the capacity back; raises the errors of `CoordinatorClient.send`."""
        self._ended.set()
        self.client.send("release", id=self.id, table=self.table)

    def keep_renewed(self) -> None:
        """Renew the lease from a thread of its own until `release`, unless it holds only the start of the job."""
        if self.members.get("hold") == "start" or self._ended.is_set():
            return
        self._renewer = threading.Thread(target=self._renew_on, name=f"highwater-boost-{self.id}", daemon=True)
        self._renewer.start()

    def __enter__(self) -> Boost:
        """Ask for the capacity, wait for it, and keep the lease renewed; raises the errors of `begin` and `wait`."""
        try:
            self.begin()
            self.wait()
        except BoostRefusedError:
            raise
        except BaseException:
            # it may have been granted, though the answer was lost
            self._release_quietly()
            raise
        self.keep_renewed()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give the capacity back. Where that fails the lease ends by itself, and the block's own result counts."""
        self._release_quietly()

    async def __aenter__(self) -> Boost:
        """Do what `__enter__` does, without holding up the event loop."""
        try:
            return await asyncio.to_thread(self.__enter__)
        except asyncio.CancelledError:
            # the thread goes on: it finds the boost given back
            await asyncio.shield(asyncio.to_thread(self._release_quietly))
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Do what `__exit__` does, without holding up the event loop."""
        await asyncio.to_thread(self._release_quietly)

    def _renew_on(self) -> None:
        length = self.minutes * 60
        due = self._begun_at + length * _RENEWED_AFTER
        while not self._ended.wait(max(due - self.clock(), 0)):
            try:
                self.renew()
                due = self.clock() + length * _RENEWED_AFTER
            except BoostError as error:
                if isinstance(error, BoostRefusedError) and error.status == _OVER:
                    # the job goes on with what there is
                    _LOG.warning("boost %s of %s has ended: %s", self.id, self.table, error)
                    return
                _LOG.info("boost %s of %s: not renewed, asked again soon: %s", self.id, self.table, error)
                due = self.clock() + length * _RETRIED_AFTER

    def _release_quietly(self) -> None:
        try:
            self.release()
        except BoostError:
            return


def boost(
    table: str,
    *,
    minutes: int,
    write: int | None = None,
    read: int | None = None,
    write_total: int | None = None,
    read_total: int | None = None,
    write_rate: int | None = None,
    read_rate: int | None = None,
    index: str | None = None,
    at: datetime | None = None,
    hold: str = "lease",
    reason: str = "",
    is_all_or_nothing: bool = False,
    timeout: timedelta = timedelta(minutes=5),
    on_progress: Callable[[BoostState], None] | None = None,
    coordinator: str | None = None,
    session: Any = None,
) -> Boost:
    """Ask for capacity of a table while a block runs: `with highwater.boost("orders", write=8_000, minutes=30): ...`.

    At least one of the six sizes is needed, and at most one for each dimension. A boost of a table's writes boosts its
    indexes too, in proportion to what they consumed of its writes in the last day. Nothing is sent before the block is
    entered, or `begin` is called.

    Args:
        table: The table's name; `eu-west-1/orders` for a replica in another region than the coordinator's.
        minutes: The length of the lease, 1 to 1,440. It is renewed while the block runs, and if the process dies the
            capacity stays until its end.
        write: Units per second of writes on top of what is there.
        read: Likewise of reads.
        write_total: Units per second of writes that the job needs in total, together with what is there.
        read_total: Likewise of reads.
        write_rate: Units per second that the job will write on top of the present traffic: the boost leaves the
            table's headroom as it is.
        read_rate: Likewise of reads.
        index: The index to boost. By default the table.
        at: The aware instant at which the job starts, for a boost that is booked ahead with `begin`. By default now.
        hold: `lease`, the default, or `start`: the lease ends ten minutes after the start, and from then on the job's
            own consumption holds the capacity.
        reason: Why, for the log; up to 200 characters.
        is_all_or_nothing: Refuse what cannot be granted whole. By default the block runs with a part; see
            `Boost.answer`.
        timeout: How long to wait for the capacity. By default five minutes.
        on_progress: Called with the state of the boost while waiting.
        coordinator: Name or URL of the coordinator. By default the one of HIGHWATER_BOOST_URL, or the only one.
        session: The boto3 session to use. By default the default one.
    """
    members: dict[str, Any] = {
        "write": write,
        "read": read,
        "write_total": write_total,
        "read_total": read_total,
        "write_rate": write_rate,
        "read_rate": read_rate,
        "index": index,
        "at": None if at is None else at.isoformat(),
        "hold": hold,
        "reason": reason,
        "is_all_or_nothing": is_all_or_nothing,
    }
    return Boost(
        table=table,
        members=members,
        minutes=minutes,
        client=CoordinatorClient(coordinator=coordinator, session=session),
        timeout=timeout,
        on_progress=on_progress,
    )
