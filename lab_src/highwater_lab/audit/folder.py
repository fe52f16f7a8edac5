"""The folder of an audit: what was fetched and judged, so that an interrupted audit goes on where it was.

HighwaterError
└── AuditError (also a ValueError): the folder is another audit's, or cannot be read
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from highwater.core import HighwaterError
from highwater_lab.audit.account import LiveTable
from highwater_lab.audit.judgement import AuditFinding, Judgement, Kind, Question
from highwater_lab.files import read_file, replace_file
from highwater_lab.services.commitments import CapacityHours
from highwater_lab.traffic import Usage, read_traffic_by_table, write_traffic
from highwater_lab.traffic.cloudwatch import KEPT_DAYS

_QUESTION: Final = "question.json"


class AuditError(HighwaterError, ValueError):
    """The folder is another audit's, or cannot be read."""


class AuditFolder:
    """The folder of one audit: a CSV file of traffic and a JSON file for each table, and the question.

    Args:
        path: The folder, which is created; `None` to keep nothing.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def open(self, question: Question, now: datetime) -> datetime:
        """Return the time up to which the audit looks: *now*, or that of an audit that was begun here before.

        Raises:
            AuditError: The audit that was begun here had another question, or is so old that CloudWatch has dropped
                datapoints that it needs.
            OSError: The folder cannot be written.
        """
        if self._path is None:
            return now
        self._path.mkdir(parents=True, exist_ok=True)
        file = self._path / _QUESTION
        asked = asdict(question)
        if not file.exists():
            replace_file(file, json.dumps({"until": now.isoformat(), **asked}, indent=2).encode())
            return now
        kept = _read(file)
        until = datetime.fromisoformat(kept.pop("until", now.isoformat()))
        differs = [name for name, value in asked.items() if kept.get(name) != value]
        if differs:
            name = differs[0]
            raise AuditError(
                f"{self._path}: has an audit with {name.replace('_', ' ')} {kept.get(name)!r}, not {asked[name]!r}; "
                "give another folder with --out, or the same options"
            )
        most = next(days for days, _ in KEPT_DAYS if question.days <= days)
        if now - until > timedelta(days=most - question.days):
            raise AuditError(
                f"{self._path}: has an audit of {until:%Y-%m-%d %H:%M} UTC, and CloudWatch no longer has all of its "
                "datapoints; give another folder with --out"
            )
        return until

    def keep_usage(self, table: LiveTable, usage: Usage) -> None:
        """Keep what was fetched of a table."""
        if self._path is None:
            return
        place = self._place(table.label)
        place.parent.mkdir(parents=True, exist_ok=True)
        write_traffic(usage.traffic, place.with_name(f"{table.name}.csv"))
        replace_file(place, json.dumps({"throttled": {s.label: n for s, n in usage.throttled.items()}}).encode())

    def has_usage(self, table: LiveTable) -> bool:
        """Whether a table was fetched before."""
        return "throttled" in self._kept(table.label)

    def usage(self, table: LiveTable) -> Usage:
        """Return what was fetched of a table before."""
        throttled = self._kept(table.label)["throttled"]
        traffic = read_traffic_by_table(self._place(table.label).with_name(f"{table.name}.csv"))[table.name]
        return Usage(
            traffic, {stream: throttled[stream.label] for stream in table.streams if stream.label in throttled}
        )

    def keep_judgement(self, judgement: Judgement) -> None:
        """Keep what was found about a table."""
        if self._path is not None:
            place = self._place(judgement.label)
            place.parent.mkdir(parents=True, exist_ok=True)
            capacity = None if judgement.capacity is None else judgement.capacity.document()
            found = {**judgement.document(), "capacity": capacity}
            kept = {**self._kept(judgement.label), "judgement": found}
            replace_file(place, json.dumps(kept).encode())

    def judgement(self, table: LiveTable) -> Judgement | None:
        """Return what was found about a table before, `None` for nothing."""
        kept = self._kept(table.label).get("judgement")
        if kept is None:
            return None
        findings = tuple(AuditFinding(**{**each, "kind": Kind(each["kind"])}) for each in kept.pop("findings"))
        capacity = kept.pop("capacity")
        hours = None if capacity is None else CapacityHours.of_document(capacity)
        return Judgement(**kept, findings=findings, capacity=hours)

    def _kept(self, label: str) -> dict[str, Any]:
        place = self._place(label)
        return _read(place) if self._path is not None and place.exists() else {}

    def _place(self, label: str) -> Path:
        return (self._path or Path()) / f"{label}.json"


def _read(file: Path) -> dict[str, Any]:
    try:
        document = json.loads(read_file(file))
    except (OSError, ValueError, RecursionError) as error:
        raise AuditError(f"{file}: cannot be read: {error}; give another folder with --out") from error
    if not isinstance(document, Mapping):
        raise AuditError(f"{file}: is not of an audit; give another folder with --out")
    return dict(document)
