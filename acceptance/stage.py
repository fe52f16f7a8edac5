"""What a part of the suite is, and what it works with: a place, the CDK CLI, a ledger, a report, a limit of time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from rich.console import Console
from rich.markup import escape

from acceptance.cdk import Cdk
from acceptance.ledger import Ledger
from acceptance.place import Place
from acceptance.report import Check, Report
from highwater.core import Dimension, HighwaterError
from highwater.core.names import TargetName

MINUTE = timedelta(minutes=1)
# Often enough to time what takes seconds, and far below the rates that AWS grants
_POLL = timedelta(seconds=1)
# Application Auto Scaling's answers are eventually consistent: what was just set is not always in the next one
_SHOWN_WITHIN = timedelta(seconds=5)


@dataclass(slots=True)
class Stage:
    """One run of the suite, and the part that runs.

    The part ends at the *deadline* at the latest, by the place's clock: its cost is bounded by that.
    """

    place: Place
    cdk: Cdk
    ledger: Ledger
    report: Report
    console: Console
    part: str = ""
    deadline: datetime | None = None

    def now(self) -> datetime:
        """The place's time. Raises `HighwaterError` past the deadline."""
        now = self.place.status().now
        if self.deadline is not None and now >= self.deadline:
            raise HighwaterError(f"{self.part} takes longer than it may, until {self.deadline:%H:%M} UTC; it ends here")
        return now

    def tell(self, text: str) -> None:
        """Print a line with the place's time."""
        self.console.print(f"[dim]{self.now():%H:%M:%S}[/] {text}", highlight=False)

    @contextmanager
    def busy(self, text: str) -> Iterator[None]:
        """Show *text* with a spinner during the block, and as a line with the time that it took at its end."""
        began = self.now()
        with self.console.status(f"{text} …"):
            yield
        took = self.now() - began
        self.tell(f"[green]✓[/] {text} [dim]({took.total_seconds():.0f} s)[/]")

    def check(self, subject: str, planned: object, actual: object, *, holds: bool | None = None) -> None:
        """Record a promise and what was seen; it holds if both are equal, unless *holds* says otherwise."""
        kept = planned == actual if holds is None else holds
        self.report.checks.append(Check(self.part, subject, str(planned), str(actual), kept))
        if not kept:
            self.tell(f"[red]✗ {escape(f'{subject}: planned {planned}, actually {actual}')}[/]")

    def measure(self, name: str, value: float | str | None, *, assumed: str) -> None:
        """Record something measured, and what the lab assumes of it."""
        self.report.facts.append((self.part, name, str(value), assumed))
        # texts of AWS may have brackets
        self.tell(f"  {name}: [bold]{escape(str(value))}[/] [dim](the lab assumes {escape(assumed)})[/]")

    def deploy(self, stack: str, context: dict[str, str] | None = None, *more: str) -> list[TargetName]:
        """Deploy a stack of the app, with *more* options of the CDK CLI; return the writes of its tables."""
        name = self.cdk.full_name(stack)
        with self.busy(f"deploy {name}"):
            self.ledger.add(name)
            within = None if self.deadline is None else self.deadline - self.now()
            self.cdk.deploy(stack, context or {}, within, *more)
        tables = self.cdk.names_of_type(stack, "AWS::DynamoDB::Table")
        return [TargetName(table, None, Dimension.WRITE) for table in tables]

    def wait_until(self, at: datetime, why: str) -> None:
        """Wait until the place's time is *at*."""
        if at > self.now():
            with self.busy(f"{why}, until {at:%H:%M:%S} UTC"):
                self.place.wait_until(at)

    def seconds_until(self, holds: Callable[[], bool], within: timedelta, poll: timedelta = _POLL) -> int | None:
        """Wait as the place does, at most until the deadline; return the seconds, `None` if longer than *within*."""

        def holds_in_time() -> bool:
            self.now()
            return holds()

        with self.console.status(f"{self.part} …"):
            return self.place.seconds_until(holds_in_time, within, poll)

    def settle(
        self,
        subject: str,
        planned: object,
        read: Callable[[Place, TargetName], object],
        name: TargetName,
        within: timedelta = _SHOWN_WITHIN,
    ) -> int | None:
        """Check that *planned* is read of a target within some time; return the seconds, `None` if it was not."""
        took = self.seconds_until(lambda: read(self.place, name) == planned, within)
        self.check(subject, planned, read(self.place, name) if took is None else planned)
        return took


@dataclass(frozen=True, slots=True)
class Part:
    """Something that the suite deploys, checks and measures.

    In an account it takes about so many *minutes*, and its tables have at most so many *units* together; a part with
    many units of reads counts them apart, as *read_units*, since they cost a fifth of writes.
    """

    name: str
    title: str
    minutes: int
    units: int
    run: Callable[[Stage], None]
    read_units: int = 0


def part(*, minutes: int, units: int, read_units: int = 0) -> Callable[[Callable[[Stage], None]], Part]:
    """Make a part of a function: its name is the part's, and its docstring the title."""
    return lambda run: Part(run.__name__, str(run.__doc__).removesuffix("."), minutes, units, run, read_units)
