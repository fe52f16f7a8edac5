"""One run of the suite: its parts one after the other, and deletion whatever happens."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Console

from acceptance.cdk import Cdk
from acceptance.cleanup import Cleanup
from acceptance.costs import longest
from acceptance.estimate import is_agreed, tell_cost
from acceptance.ledger import Ledger
from acceptance.leftovers import wait_for_nothing
from acceptance.parts.part import Part
from acceptance.place import Place
from acceptance.record import Check, Record
from acceptance.report import REPORT, Circumstances, write_report
from acceptance.stage import Stage
from highwater.core import HighwaterError


class Run:
    """A run of *parts* in *place*; its files go below *build*.

    *profile* is noted for a later deletion. In an account the run asks before it begins, and does not begin if it can
    cost more than *most_usd*.
    """

    def __init__(
        self, place: Place, parts: Sequence[Part], build: Path, console: Console, *, profile: str, most_usd: float
    ) -> None:
        self._place = place
        self._parts = parts
        self._build = build
        self._console = console
        self._most_usd = most_usd
        self._begun = place.status().now
        self._done: list[str] = []
        ledger = Ledger.begin(build, self._begun, account=place.account, region=place.region, profile=profile)
        cdk = Cdk(place, ledger.prefix, ledger.folder / "cdk")
        self._stage = Stage(place, cdk, ledger, Record(), console)

    def tell_cost(self, region: str = "") -> int:
        """Print what the run can cost at most in *region*, by default the place's; return the exit status."""
        tell_cost(self._stage, self._parts, region)
        return 0

    def run(self) -> int:
        """Run everything and return the exit status; deletes what it made, also when it is interrupted or fails."""
        if self._place.is_real:
            usd = tell_cost(self._stage, self._parts)
            if usd > self._most_usd:
                raise HighwaterError(
                    f"the run can cost {usd:.2f} USD, more than the limit of {self._most_usd:.2f}; choose fewer "
                    "PARTS, begin at a cheaper time, or raise MOST_USD"
                )
            if not is_agreed(self._console, self._place.account, self._place.title, usd):
                raise HighwaterError("not confirmed; nothing was done")
        self._stage.ledger.lock()
        try:
            self._run_parts()
        finally:
            try:
                # what could not be deleted is tried once more
                self._stage.part = "deletion"
                if self._delete():
                    self._look_for_leftovers()
                self._write()
            finally:
                self._stage.ledger.unlock()
        return 1 if self._stage.record.broken else 0

    def _run_parts(self) -> None:
        stage = self._stage
        if not self._place.is_real:
            with stage.busy("bootstrap the local cloud"):
                stage.cdk.bootstrap()
        for part in self._parts:
            stage.part = part.name
            # a local cloud costs nothing, and its clock runs ahead of a busy machine
            stage.deadline = self._place.status().now + longest(part.minutes) if self._place.is_real else None
            self._console.print(f"[bold]{part.name}[/]: {part.title}", highlight=False)
            if not self._run_part(part):
                self._console.print("no further part begins", style="red")
                return

    def _run_part(self, part: Part) -> bool:
        """Run a part and delete what it made; return whether the next one may begin."""
        stage = self._stage
        goes_on = True
        try:
            part.run(stage)
        except (BotoCoreError, ClientError, HighwaterError) as error:
            # continue: later parts are independent
            self._fail("runs to its end", error)
            goes_on = self._has_credentials()
        else:
            self._done.append(part.name)
        stage.deadline = None
        return self._delete() and goes_on

    def _has_credentials(self) -> bool:
        """Whether AWS still answers; without credentials each part would fail, at its own time."""
        if not self._place.is_real:
            return True
        try:
            # needs no permission
            self._place.client("sts").get_caller_identity()
        except (BotoCoreError, ClientError) as error:
            self._fail("credentials last", error)
            return False
        return True

    def _delete(self) -> bool:
        """Delete what was made; return whether that succeeded, and so whether something else may be made."""
        try:
            Cleanup(self._place, self._stage.ledger, lambda text: self._console.print(text, highlight=False)).run()
        except (BotoCoreError, ClientError, HighwaterError) as error:
            self._fail("is deleted", error)
            return False
        return True

    def _fail(self, what: str, error: Exception) -> None:
        stage = self._stage
        stage.record.checks.append(Check(stage.part, what, "yes", str(error), holds=False))
        self._console.print(f"{stage.part}: {error}", style="red", markup=False, highlight=False)

    def _look_for_leftovers(self) -> None:
        self._stage.deadline = None
        try:
            left = ", ".join(wait_for_nothing(self._place, self._stage.ledger.prefix))
        except (BotoCoreError, ClientError) as error:
            # the report is written all the same
            left = f"unknown: {error}"
        self._stage.check("what is left", "nothing", left or "nothing")
        if not left:
            self._stage.ledger.finish()

    def _write(self) -> None:
        record = self._stage.record
        kind = "AWS account" if self._place.is_real else "local cloud"
        is_whole = len(self._done) == len(self._parts)
        ended = self._place.status().now
        account, region = self._place.account, self._place.region
        write_report(
            self._build, record, Circumstances(kind, account, region, self._begun, ended, self._done, is_whole)
        )
        for check in record.broken:
            self._console.print(
                f"does not hold: {check.part}: {check.subject}: planned {check.planned}, actually {check.actual}",
                style="red",
                markup=False,
                highlight=False,
            )
        if is_whole and not record.broken:
            self._console.print(f"[green]all {len(record.checks)} checks hold[/]")
        self._console.print(f"report: {self._build / REPORT}", highlight=False)
