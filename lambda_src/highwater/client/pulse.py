"""`highwater.pulse`: reports this process's demand, so that the scaler can react within seconds."""

from __future__ import annotations

import atexit
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from importlib import import_module
from queue import Empty, SimpleQueue
from random import SystemRandom
from typing import Any, Final

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from highwater.calls.attempts import ONCE, PULSE_SECONDS, Rest, client_config
from highwater.client.coordinator import (
    GIVE_PULSE,
    BoostError,
    BoostRefusedError,
    CoordinatorClient,
    CoordinatorNotFoundError,
)
from highwater.client.fleet import FleetTable
from highwater.client.hooks import Counts, Meter
from highwater.client.sessions import (
    Place,
    account_of,
    check_session,
    events_of,
    renewed_in_forks,
    session_apart,
)
from highwater.core.plan.plan import TargetKey
from highwater.core.pulses import CALM_SLOTS, SLOT_SECONDS, SLOTS_PER_MINUTE

_LOG: Final = logging.getLogger("highwater.pulse")
_CALM_SECONDS: Final = CALM_SLOTS * SLOT_SECONDS
# A process whose demand is below a thousandth of the capacity reports once a minute.
_LITTLE_PARTS, _LITTLE_SECONDS, _LITTLE_SPREAD = 1_000, 60, 5
# The fleet's processes write within this time after a slot's end, each with a random delay of its own.
_SPREAD_SECONDS: Final = 1.5
_ANSWERED_SECONDS: Final = 0.3
_REFUSED_SECONDS: Final = 1
# A surge: this process's demand relative to its own at its last pulse; the rest of the fleet may surge as well.
_SURGE_FACTOR: Final = 1.5
# How long the end of a process waits for its last pulses, all tables together
_END_SECONDS: Final = 2
# An error that comes again and again is logged this often.
_COMPLAINT_SECONDS: Final = 60
# Seconds for a connection, and for an answer: of the coordinator's table, and of its function
_WRITE_TIMEOUTS, _WAKE_TIMEOUTS = (2, 3), (3.0, 5.0)
_RANDOM: Final = SystemRandom()


def pulse(
    session_or_client: Any = None,
    *,
    tables: Iterable[str] | None = None,
    coordinator: str | None = None,
    session: Any = None,
) -> Pulse:
    """Report this process's demand for DynamoDB capacity; one call per process, before clients are made.

    From now on, consumed and throttled units are counted and added to the fleet's sum: every half minute, every ten
    seconds once the fleet nears its capacity, and at once after a request was throttled. A background thread, started
    by the first request, sends the reports; requests never wait for it and never fail because of it. No keys and no
    values leave the process, only amounts. Requests to other regions, accounts and endpoints are not counted.
    A forked process reports what it counts itself.

    Args:
        session_or_client: A boto3 session, whose later clients and resources are metered, or a DynamoDB client. By
            default boto3's default session.
        tables: The names of the tables to report. By default all that the process is granted.
        coordinator: The coordinator's name. By default the one that the environment variables of `grant_pulse` name, or
            the only one in the account and region.
        session: The session that pulses are sent with, where *session_or_client* is a client. By default one with
            boto3's usual credentials and the client's region.

    Returns:
        The pulse, whose `stop` ends the reports. They also end with the process.

    Raises:
        TypeError: A session or client is not boto3's, or the client is one of another service.
        botocore.exceptions.NoRegionError: The session has no region.

    Example:
        ```python
        session = boto3.Session()
        highwater.pulse(session)
        orders = session.resource("dynamodb").Table("orders")
        ```
    """
    target = session_or_client
    if target is None:
        if boto3.DEFAULT_SESSION is None:
            boto3.setup_default_session()
        target = boto3.DEFAULT_SESSION
    events_of(target, "pulse: session_or_client")
    check_session(session, "pulse: session")
    if session is None:
        session = target if hasattr(target, "events") else boto3.Session(region_name=target.meta.region_name)
    # The caller's session is not for other threads, so all that they need of it is taken here.
    profile, region, credentials = session.profile_name, session.region_name, session.get_credentials()

    def connect() -> tuple[Any, CoordinatorClient]:
        apart = session_apart(profile, region, credentials)
        # no retries, as a pulse whose answer was lost may have been added already
        return apart.client("dynamodb", config=client_config(ONCE, _WRITE_TIMEOUTS)), CoordinatorClient(
            coordinator=coordinator, session=apart, attempts=1, timeouts=_WAKE_TIMEOUTS
        )

    dynamodb, client = connect()
    told = None if tables is None else frozenset(tables)
    made = Pulse(dynamodb=dynamodb, coordinator=client, connect=connect, tables=told)
    if made.meter.place is not None:
        made.meter.place.account = account_of(credentials)
    made.meter.install(target)
    atexit.register(made.stop)
    with suppress(ImportError):
        # in Lambda functions with SnapStart
        import_module("snapshot_restore_py").register_after_restore(made.begin_anew)
    return made


@dataclass(slots=True, kw_only=True, eq=False, weakref_slot=True)
class Pulse:
    """The pulses of one process; a forked process has pulses of its own.

    Attributes:
        dynamodb: A client that is not metered. Tables of its region and endpoint are reported.
        coordinator: Sends requests to the coordinator.
        connect: Makes both anew in a forked process, where connections must not be shared with the parent. By default
            they are kept.
        tables: The tables to report, `None` for all.
        clock: Seconds since 1970.
        pause: Sleeps for the given number of seconds.
        has_thread: Whether a background thread calls `beat`, as it does by default; otherwise the caller has to, about
            once a second.
        counts: The unreported counts.
        meter: The hooks that count.

    Example:
        ```python
        pulse = highwater.pulse(session, tables=["orders"])
        serve()
        pulse.stop()
        ```
    """

    dynamodb: Any
    coordinator: CoordinatorClient
    connect: Callable[[], tuple[Any, CoordinatorClient]] | None = None
    tables: frozenset[str] | None = None
    clock: Callable[[], float] = lambda: time.time()
    pause: Callable[[float], None] = lambda seconds: time.sleep(seconds)
    has_thread: bool = True
    counts: Counts = field(default_factory=Counts)
    meter: Meter = field(init=False)
    _beats: dict[str, _Beat] = field(default_factory=dict)
    _standings: dict[str, _Standing] = field(default_factory=dict)
    _pulse_table: str | None = None
    # shared by all tables, as all of them need the coordinator
    _search: Rest = field(default_factory=Rest)
    _spread: float | None = None
    # Requests only use what never waits, also in a signal handler and after a fork: no events, no locks.
    _news: SimpleQueue[None] = field(default_factory=SimpleQueue)
    _thread: threading.Thread | None = None
    _starting: threading.Lock = field(default_factory=threading.Lock)
    _no_thread: Rest = field(default_factory=Rest)
    _is_used: bool = False
    _has_to_connect: bool = False
    _complained_at: float = 0.0
    _is_stopped: bool = False

    def __post_init__(self) -> None:
        """Make the meter."""
        self.meter = Meter(self.counts, self._is_told, self._notice, self.clock, Place.of(self.dynamodb))
        _PULSES.add(self)

    def stop(self) -> None:
        """Report what is left, and end; requests are no longer counted.

        Waits two seconds at most, for all tables together. Without a thread, the pulse that is under way then is
        waited for too.
        """
        if self._is_stopped:
            return
        self._is_stopped = True
        thread = self._thread
        self._news.put(None)
        if thread is None:
            self.beat(is_last=True)
        elif thread.ident is not None and thread is not threading.current_thread():
            thread.join(timeout=_END_SECONDS)

    def beat(self, *, is_last: bool = False) -> None:
        """Report each table that is due; nothing is raised."""
        began = self.clock()
        try:
            self._reconnect()
            tables = self.counts.tables()
        except Exception:
            return self._complain()
        for table in tables:
            try:
                if is_last or self._due_at(table) <= self.clock():
                    self._tell(table, is_last=is_last)
            except Exception:
                # whatever the error, the process and its other pulses continue
                self._complain()
            if is_last and self.clock() - began >= _END_SECONDS:
                return None
        return None

    def begin_anew(self) -> None:
        """Begin as a process of its own: forked, or restored from another's memory. The other one reports its counts.

        Called by itself after a fork, and in Lambda functions with SnapStart.
        """
        before, self._news = self._news, SimpleQueue()
        self.counts.forget()
        self._beats, self._spread, self._thread, self._starting = {}, None, None, threading.Lock()
        # what was never used has no connection to share, and making it takes a tenth of a second
        self._has_to_connect = self._is_used
        # a thread that was restored too ends
        before.put(None)

    def _is_told(self, table: str) -> bool:
        if self._is_stopped or table == self._pulse_table or (self.tables is not None and table not in self.tables):
            return False
        standing = self._standings.get(table)
        return standing is None or not standing.is_resting(self.clock())

    def _notice(self) -> None:
        """Wake the thread, or start it: at the first request, also after a fork."""
        if not self.has_thread:
            return
        if self._thread is None:
            self._start()
        if self._news.empty():
            self._news.put(None)

    def _start(self) -> None:
        # of several first requests one starts the thread, and the others do not wait for that
        if not self._starting.acquire(blocking=False):
            return
        try:
            if self._thread is not None or self._is_stopped or self._no_thread.is_resting(self.clock()):
                return
            self._thread = threading.Thread(target=self._run, args=(self._news,), name="highwater-pulse", daemon=True)
            try:
                self._thread.start()
            except RuntimeError:
                # the interpreter is ending, or there are too many
                self._thread = None
                self._no_thread.fail(self.clock())
                return
            # processes of multiprocessing end without what atexit registers
            module: Any = sys.modules.get("multiprocessing.util")
            if module is not None:
                module.Finalize(None, self.stop, exitpriority=0)
        finally:
            self._starting.release()

    def _run(self, news: SimpleQueue[None]) -> None:
        while not self._is_stopped and self._news is news:
            try:
                self._wait(news)
                if self.counts.tables():
                    # requests that come close together are handled in one go
                    self.pause(0.05)
                    self.beat()
            except Exception:
                self._complain()
                self.pause(1)
        if self._is_stopped:
            self.beat(is_last=True)

    def _wait(self, news: SimpleQueue[None]) -> None:
        """Wait until a table is due, or, without unreported counts, for traffic."""
        due = min((self._due_at(table) for table in self.counts.tables()), default=None)
        try:
            news.get(timeout=None if due is None else min(max(due - self.clock(), 0.05), _LITTLE_SECONDS))
            while True:
                news.get_nowait()
        except Empty:
            return

    def _complain(self) -> None:
        now = self.clock()
        is_new = not 0 <= now - self._complained_at < _COMPLAINT_SECONDS
        if is_new:
            self._complained_at = now
        _LOG.log(logging.ERROR if is_new else logging.DEBUG, "a pulse failed", exc_info=True)

    def _reconnect(self) -> None:
        if self._has_to_connect and self.connect is not None and self.counts.tables():
            self.dynamodb, self.coordinator = self.connect()
            self._has_to_connect = False

    def _due_at(self, table: str) -> float:
        now, beat = self.clock(), self._beats.get(table)
        if beat is None:
            # the first pulse comes at the end of the present slot, so that the scaler soon knows of a new fleet
            beat = self._beats[table] = _Beat(now, now, is_near=True)
        if max(beat.told_at, beat.counted_since) > now:
            # the clock was set back
            beat.told_at, beat.counted_since = min(beat.told_at, now), min(beat.counted_since, now)
            self.counts.end_at(table, int(now) // SLOT_SECONDS)
        pace = self._pace(table, beat)
        soonest = beat.told_at + (PULSE_SECONDS if beat.is_kept else 0)
        if self._pulse_table is None and self._search.is_resting(now):
            soonest = max(soonest, self._search.ends_at)
        if self._spread is None:
            self._spread = _RANDOM.uniform(0, _SPREAD_SECONDS)
        if pace is _Pace.REFUSED:
            return soonest + _REFUSED_SECONDS + self._spread
        # Just after the end of a slot, so that the slot's sum is complete soon. Less frequent pulses are aligned with
        # minutes, as each minute's item costs a write.
        lengths = {_Pace.LITTLE: _LITTLE_SECONDS, _Pace.CALM: _CALM_SECONDS}
        length = lengths.get(pace, SLOT_SECONDS)
        soonest = soonest if length == SLOT_SECONDS else soonest + length / 2
        # there may be many processes with little demand; they spread over most of a slot
        spread = self._spread * (_LITTLE_SPREAD if pace is _Pace.LITTLE else 1)
        return (soonest // length + 1) * length + spread

    def _pace(self, table: str, beat: _Beat) -> _Pace:
        counted = self.counts.peek(table)
        now = self.clock()
        if beat.is_urgent({key for _, key, is_refused in counted if is_refused}, int(now) // SLOT_SECONDS):
            return _Pace.REFUSED
        since = now - beat.counted_since
        units = sum(counted.values())
        if units > _SURGE_FACTOR * beat.rate * max(since, SLOT_SECONDS) > 0:
            return _Pace.SURGE
        if beat.is_near:
            return _Pace.NEAR
        return _Pace.LITTLE if units * _LITTLE_PARTS < beat.capacity * since else _Pace.CALM

    def _tell(self, table: str, *, is_last: bool = False) -> None:
        now = self.clock()
        slot = int(now) // SLOT_SECONDS
        beat = self._beats.setdefault(table, _Beat(now, now))
        # unless it is urgent, a slot is reported once it is over
        is_urgent = is_last or self._pace(table, beat) in (_Pace.REFUSED, _Pace.SURGE)
        amounts = self.counts.take(table, None if is_urgent else slot)
        beat.told_at, beat.is_kept = now, False
        if not amounts:
            return
        told, since = sum(amounts.values()), max(now - beat.counted_since, 1.0)
        beat.counted_since, beat.rate = now if is_urgent else slot * SLOT_SECONDS, told / since
        self._is_used = True
        try:
            fleet = beat.fleet or FleetTable(self.dynamodb, self._find_table(), table)
            beat.fleet = fleet
            fleet.add(amounts)
            if not beat.has_arrived:
                _LOG.info(
                    "highwater: pulses of table %s arrive, in the coordinator's table %s", table, fleet.pulse_table
                )
                beat.has_arrived = True
            self._standing(table).denied.succeed()
            _LOG.debug("told of %s: %.1f units in %.1f s", table, told, since)
            # the present slot's sum is not complete yet, but may already be near the capacity
            beat.is_near = fleet.is_near(slot)
            beat.capacity = max((hint.capacity_units for hint in fleet.hints.values()), default=0)
            # one that cannot find the coordinator leaves the election to others
            is_asking = not self._search.is_resting(now) and fleet.is_asking(slot)
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code")
            if code in ("AccessDeniedException", "ResourceNotFoundException"):
                fix = f"; {GIVE_PULSE}" if code == "AccessDeniedException" else ""
                self._leave_alone(table, self._standing(table).denied, f"{error}{fix}")
            else:
                self._keep(table, amounts, error)
        except (BotoCoreError, BoostError) as error:
            self._keep(table, amounts, error)
        else:
            if is_asking:
                self._wake(table, now, is_last=is_last)

    def _wake(self, table: str, elected_at: float, *, is_last: bool) -> None:
        """Ask for help: in a thread apart, as the other tables' pulses must not wait for the coordinator's function."""
        if threading.current_thread() is self._thread and not is_last:
            name = f"highwater-pulse-{table}"
            apart = threading.Thread(target=self._ask_for_help, args=(table, elected_at), name=name, daemon=True)
            try:
                return apart.start()
            except RuntimeError:
                # the interpreter is ending
                is_last = True
        return self._ask_for_help(table, elected_at, is_last=is_last)

    def _ask_for_help(self, table: str, elected_at: float, *, is_last: bool = False) -> None:
        if not is_last:
            # wait for the other processes' reports of the same slot
            complete = elected_at // SLOT_SECONDS * SLOT_SECONDS + _SPREAD_SECONDS + _ANSWERED_SECONDS
            self.pause(max(complete - self.clock(), 0.0))
        standing = self._standing(table)
        try:
            self.coordinator.wake(table)
            self._search.succeed()
            standing.turned_away.succeed()
            _LOG.info("the fleet of %s asked for help, which took %.1f s", table, self.clock() - elected_at)
        except BoostRefusedError as refused:
            self._leave_alone(table, standing.turned_away, f"the coordinator refuses: {refused}")
        except CoordinatorNotFoundError as error:
            _LOG.warning("no help for %s for %d seconds: %s", table, self._search.fail(self.clock()), error)
        except (BotoCoreError, ClientError, BoostError) as error:
            _LOG.info("no help for %s: %s", table, error)
        except Exception:
            self._complain()

    def _keep(self, table: str, amounts: Any, error: Exception) -> None:
        """Keep amounts that certainly were not written, for a later pulse."""
        _LOG.info("pulse of %s: %s", table, error)
        self._beats[table].told_at, self._beats[table].is_kept = self.clock(), True
        oldest = _oldest_slot(self.clock())
        self.counts.put_back(table, {at: units for at, units in amounts.items() if at[0] >= oldest})

    def _leave_alone(self, table: str, rest: Rest, why: str) -> None:
        _LOG.warning("no pulses of %s for %d seconds: %s", table, rest.fail(self.clock()), why)
        self.counts.take(table)

    def _standing(self, table: str) -> _Standing:
        return self._standings.setdefault(table, _Standing())

    def _find_table(self) -> str:
        if self._pulse_table is None:
            now = self.clock()
            if self._search.is_resting(now):
                # only at the end of the process, as no table is due before
                raise CoordinatorNotFoundError("no coordinator was found")
            try:
                self._pulse_table = self.coordinator.pulse_table
            except CoordinatorNotFoundError as error:
                _LOG.warning("no pulses for %d seconds: %s", self._search.fail(now), error)
                for table in self.counts.tables():
                    self.counts.take(table, _oldest_slot(now))
                raise
            self._search.succeed()
            place = self.meter.place
            if place is not None and place.account is None:
                place.account = self.coordinator.account
        return self._pulse_table


def _oldest_slot(now: float) -> int:
    """The first slot whose amounts are still worth telling."""
    return int(now) // SLOT_SECONDS - 2 * SLOTS_PER_MINUTE


_PULSES: Final = renewed_in_forks(Pulse.begin_anew)


@dataclass(slots=True)
class _Standing:
    """How long a table is left alone: its items may not be written, or the coordinator does not serve it."""

    denied: Rest = field(default_factory=Rest)
    turned_away: Rest = field(default_factory=Rest)

    def is_resting(self, now: float) -> bool:
        return self.denied.is_resting(now) or self.turned_away.is_resting(now)


class _Pace(Enum):
    """How soon a process sends its next pulse of a table."""

    REFUSED = auto()
    SURGE = auto()
    NEAR = auto()
    CALM = auto()
    LITTLE = auto()


@dataclass(slots=True)
class _Beat:
    """When, and with what demand, a process last sent a pulse of a table.

    *is_kept* says that the pulse could not be written, so that its amounts wait for another one; *has_arrived* that one
    was written.
    """

    told_at: float
    counted_since: float
    rate: float = 0.0
    capacity: int = 0
    is_near: bool = False
    is_kept: bool = False
    has_arrived: bool = False
    fleet: FleetTable | None = None

    def is_urgent(self, refused: set[TargetKey], slot: int) -> bool:
        """Whether requests refused for these targets are to be told at once."""
        return bool(refused) and (self.fleet is None or self.fleet.is_urgent(refused, slot))
