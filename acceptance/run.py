"""One run of the suite: its parts one after the other, and deletion whatever happens."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Console

from acceptance.cdk import Cdk
from acceptance.cleanup import Cleanup, wait_for_nothing
from acceptance.costs import longest, tell_cost
from acceptance.ledger import Ledger
from acceptance.place import Place
from acceptance.report import Check, Report
from acceptance.stage import Part, Stage
from highwater.core import HighwaterError


class Run:
    """A run of *parts* in *place*; its files go below *build*.

    In an account it asks before it begins, and does not begin if it can cost more than *most_usd*.
    """

    def __init__(
        self, place: Place, parts: Sequence[Part], build: Path, console: Console, *, profile: str, most_usd: float
    ) -> None:
        self._place = place
        self._parts = parts
        self._build = build
        self._console = console
        self._most_usd = most_usd
        ledger = Ledger.begin(build, datetime.now(UTC), account=place.account, region=place.region, profile=profile)
        report = Report(where=place.title, account=place.account, begun=place.status().now)
        self._stage = Stage(place, Cdk(place, ledger.prefix, ledger.folder), ledger, report, console)

    def run(self) -> int:
        """Run everything and return the exit status; deletes what it made, also when it is interrupted or fails."""
        if self._place.is_real:
            self._ask()
        with self._stage.ledger.locked():
            try:
                self._run_parts()
            finally:
                # what could not be deleted is tried once more
                self._stage.part = "deletion"
                if self._delete():
                    self._look_for_leftovers()
                self._tell_result()
        return 1 if self._stage.report.broken else 0

    def _ask(self) -> None:
        usd = tell_cost(self._console, self._parts, self._place.region)
        if usd > self._most_usd:
            raise HighwaterError(
                f"the run can cost {usd:.2f} USD, more than the limit of {self._most_usd:.2f}; choose fewer PARTS, "
                "or raise MOST_USD"
            )
        self._console.print(
            f"This deploys to {self._place.title}, sends traffic, deletes everything at its end, and costs up to "
            f"{usd:.2f} USD.\nType the account's number to begin:",
            highlight=False,
        )
        if sys.stdin.readline().strip() != self._place.account:
            raise HighwaterError("not confirmed; nothing was done")

    def _run_parts(self) -> None:
        stage = self._stage
        if not self._place.is_real:
            with stage.busy("bootstrap the local cloud"):
                stage.cdk.bootstrap()
        for part in self._parts:
            stage.part = part.name
            stage.deadline = self._place.status().now + longest(part.minutes)
            self._console.print(f"[bold]{part.name}[/]: {part.title}", highlight=False)
            try:
                part.run(stage)
                stage.report.done.append(part.name)
            except (BotoCoreError, ClientError, HighwaterError) as error:
                # continue: later parts are independent
                self._fail("runs to its end", error)
            if not self._delete():
                self._console.print("no further part begins", style="red")
                return
        stage.report.is_whole = len(stage.report.done) == len(self._parts)

    def _delete(self) -> bool:
        """Delete what was made; return whether that succeeded, and so whether something else may be made."""
        self._stage.deadline = None
        try:
            Cleanup(self._place, self._stage.ledger, self._console).run()
        except (BotoCoreError, ClientError, HighwaterError) as error:
            self._fail("is deleted", error)
            return False
        return True

    def _fail(self, what: str, error: Exception) -> None:
        stage = self._stage
        stage.report.checks.append(Check(stage.part, what, "yes", str(error), holds=False))
        self._console.print(f"{stage.part}: {error}", style="red", markup=False, highlight=False)

    def _look_for_leftovers(self) -> None:
        try:
            left = ", ".join(wait_for_nothing(self._place, self._stage.ledger.prefix))
        except (BotoCoreError, ClientError) as error:
            # the report is written all the same
            left = f"unknown: {error}"
        self._stage.check("what is left", "nothing", left or "nothing")
        if not left:
            self._stage.ledger.finish()

    def _tell_result(self) -> None:
        report = self._stage.report
        file = report.write(self._build, self._place.status().now)
        for check in report.broken:
            text = f"does not hold: {check.part}: {check.subject}: planned {check.planned}, actually {check.actual}"
            self._console.print(text, style="red", markup=False, highlight=False)
        if report.is_whole and not report.broken:
            self._console.print(f"[green]all {len(report.checks)} checks hold[/]")
        self._console.print(f"report: {file}", highlight=False)
