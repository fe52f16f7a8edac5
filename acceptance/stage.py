"""What a part of the suite works with: a place, the CDK CLI, a ledger, a record, and a limit of time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from acceptance.cdk import App, Cdk
from acceptance.deployed import Deployed, find_deployed
from acceptance.ledger import Ledger
from acceptance.place import Place
from acceptance.record import Check, Fact, Record
from highwater.core import HighwaterError

# Often enough to time what takes seconds, and far below the rates that AWS grants
_POLL = timedelta(seconds=2)
_SHORT_POLL = timedelta(seconds=1)


class StageError(HighwaterError):
    """The suite cannot go on."""


@dataclass(slots=True)
class Stage:
    """One run of the suite.

    Attributes:
        place: Where it runs.
        cdk: The CDK CLI there.
        ledger: What it has created.
        record: What it has found.
        console: Where it tells what it does.
        part: The part that runs.
        deadline: When the part ends at the latest, by the place's clock; its cost is bounded by that.
    """

    place: Place
    cdk: Cdk
    ledger: Ledger
    record: Record
    console: Console
    part: str = ""
    deadline: datetime | None = None

    def now(self) -> datetime:
        """The place's time. Raises `StageError` past the deadline."""
        now = self.place.status().now
        if self.deadline is not None and now >= self.deadline:
            raise StageError(f"{self.part} takes longer than it may, until {self.deadline:%H:%M} UTC; it ends here")
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
        self.record.checks.append(Check(self.part, subject, str(planned), str(actual), kept))
        if not kept:
            self.tell(f"[red]✗ {escape(f'{subject}: planned {planned}, actually {actual}')}[/]")

    def measure(self, name: str, value: float | str | None, unit: str = "", *, question: str, assumed: str) -> None:
        """Record something measured."""
        self.record.facts.append(Fact(self.part, name, value, unit, question, assumed))
        # texts of AWS may have brackets
        said = escape(f"{value} {unit}")
        self.tell(f"  {escape(question)} [bold]{said}[/] [dim](the lab assumes {escape(assumed)})[/]")

    def deploy(self, app: App, context: dict[str, str] | None = None) -> list[Deployed]:
        """Synthesize and deploy an app; return the tables that it manages."""
        name = self.cdk.stack_name(app)
        with self.busy(f"deploy {name}"):
            out = self.cdk.synth(app, context or {}, self._left())
            self.ledger.add_stack(name)
            self.cdk.deploy(app, self._left())
        return find_deployed(self.place, name, self.template(app, out))

    def _left(self) -> timedelta | None:
        """The time until the deadline."""
        now = self.now()
        return None if self.deadline is None else self.deadline - now

    def template(self, app: App, out: Path) -> Path:
        """The template of a synthesized app."""
        return out / f"{self.cdk.stack_name(app)}.template.json"

    def wait_before_the_part(self, at: datetime, why: str) -> None:
        """Wait until the place's time is *at* while the part has made nothing yet; its deadline moves with it."""
        if self.deadline is not None:
            self.deadline += max(timedelta(0), at - self.now())
        self.wait_until(at, why)

    def wait_until(self, at: datetime, why: str) -> None:
        """Wait until the place's time is *at*."""
        left = at - self.now()
        if left > timedelta(0):
            with self.busy(f"{why}, until {at:%H:%M:%S} UTC"):
                self.place.wait_until(at)

    def seconds_until(
        self, holds: Callable[[], bool], within: timedelta, why: str, poll: timedelta = _POLL
    ) -> int | None:
        """Ask again and again until *holds* is true; return the seconds that took, `None` if longer than *within*."""
        began = now = self.now()
        with self.console.status(f"{why} …"):
            while not holds():
                if now - began > within:
                    return None
                self.place.wait_until(now + poll)
                now = self.now()
        return round((self.now() - began).total_seconds())

    def passed_until(self, holds: Callable[[], bool], within: timedelta, why: str) -> datetime | None:
        """Like `seconds_until` while the place's clock runs by itself; return the time at which *holds* was true."""
        began = self.now()
        with self.console.status(f"{why} …"):
            while not holds():
                if self.now() - began > within:
                    return None
                self.place.let_pass(_SHORT_POLL)
        return self.now()
