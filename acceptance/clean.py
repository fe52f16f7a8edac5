"""Deletes what earlier runs could not delete: `make acceptance CLEAN=yes`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Console

from acceptance.account import open_account
from acceptance.cleanup import AGAIN, Cleanup
from acceptance.ledger import Ledger, LedgerError
from acceptance.leftovers import wait_for_nothing
from acceptance.place import Place
from highwater.core import HighwaterError


def clean(console: Console, build: Path, open_place: Callable[[str, str, str], Place] = open_account) -> int:
    """Delete what the ledgers of earlier runs list; return the exit status.

    A ledger that cannot be read or reached does not keep the others from being cleaned.
    """
    ledgers = Ledger.unfinished(build)
    if not ledgers:
        console.print(f"no ledger of an unfinished run below {build}; no account was looked at", highlight=False)
        return 0
    left: list[str] = []
    for ledger in ledgers:
        try:
            if isinstance(ledger, LedgerError):
                raise ledger
            left += _clean_one(console, ledger, open_place)
        except (BotoCoreError, ClientError, HighwaterError) as error:
            left.append(f"{error}" if isinstance(ledger, LedgerError) else f"{ledger.prefix}: {error}")
    for what in left:
        console.print(f"left: {what}", style="red", markup=False, highlight=False)
    if not left:
        console.print("nothing is left of earlier runs")
    return 1 if left else 0


def tell_unfinished(console: Console, build: Path) -> None:
    """Print what the ledgers of runs in accounts still list, and how to delete it."""
    for ledger in Ledger.unfinished(build):
        if isinstance(ledger, LedgerError):
            said = str(ledger)
        else:
            entries = ", ".join(ledger.entries) or "what the report names"
            said = f"not deleted in account {ledger.account}, {ledger.region}: {entries}; run: {AGAIN}"
        console.print(said, style="red", markup=False, highlight=False)


def _clean_one(console: Console, ledger: Ledger, open_place: Callable[[str, str, str], Place]) -> list[str]:
    if not ledger.lock():
        return [f"{ledger.prefix}: its run goes on in another terminal; wait for its end, or interrupt it there"]
    try:
        place = open_place(ledger.profile, ledger.account, ledger.region)
        console.print(f"{ledger.prefix} in {place.title}", highlight=False)
        Cleanup(place, ledger, lambda text: console.print(text, highlight=False)).run()
        found = wait_for_nothing(place, ledger.prefix)
        if not found:
            ledger.finish()
        return [f"{what}: no ledger lists it; delete it yourself, then: {AGAIN}" for what in found]
    finally:
        ledger.unlock()
