"""An audit as lines for the terminal, as CSV, as one HTML page and as JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from highwater_lab.audit import AuditFinding, Judgement
from highwater_lab.report.app import usd
from highwater_lab.report.pages import fill_page

_COLUMNS = ("account", "region", "table", "kind", "gain_usd", "throttled_before", "throttled_after", "what", "code")
_POINTER = "AWS Compute Optimizer names idle tables, if it is enabled; its recommendations were not read"


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """The result of an audit.

    Attributes:
        judgements: What is known of each table.
        until: The time up to which traffic was read.
        days: The days before.
        refused: The accounts and regions that were not read, with the reason.
        idle: What Compute Optimizer says of tables, by account, region and name, in USD a month; `None` if it could not
            be read.
        calls: The requests to AWS that were sent, by operation; repeated ones count again.
        metrics: The metrics that were requested from CloudWatch.
        price_usd: What these cost at the list price.
    """

    judgements: tuple[Judgement, ...]
    until: datetime
    days: int
    refused: Mapping[str, str] = field(default_factory=dict)
    idle: Mapping[str, float] | None = None
    calls: Mapping[str, int] = field(default_factory=dict)
    metrics: int = 0
    price_usd: float = 0.0

    @property
    def findings(self) -> list[tuple[Judgement, AuditFinding]]:
        """All findings with their tables, the most dollars first."""
        every = [(judgement, finding) for judgement in self.judgements for finding in judgement.findings]
        return sorted(every, key=lambda pair: (-pair[1].gain_usd, pair[0].label))

    @property
    def gain_usd(self) -> float:
        """What the best change of every table saves together, in USD a month."""
        return sum(judgement.gain_usd for judgement in self.judgements)


def audit_lines(audit: Audit) -> Iterator[str]:
    """Yield a line for each finding, for what was not judged, and for the sums."""
    for judgement, finding in audit.findings:
        yield f"{judgement.label}: {_sentence(finding)}"
    yield from _notes(audit)
    yield _sum(audit)


def _sentence(finding: AuditFinding) -> str:
    said = f"{finding.kind}: {finding.what}"
    if not finding.code:
        return f"{said}; throttled {finding.throttled_before:,.0f} a month"
    gain = finding.gain_usd
    money = f"saves {usd(gain)}" if gain >= 0 else f"costs {usd(-gain)} more"
    before, after = finding.throttled_before, finding.throttled_after
    return f"{said}; {money} USD a month, throttled {before:,.0f} -> {after:,.0f} a month"


def _notes(audit: Audit) -> Iterator[str]:
    for judgement in audit.judgements:
        if judgement.problem:
            yield f"{judgement.label}: not judged: {judgement.problem}"
    for place, reason in audit.refused.items():
        yield f"{place}: not read: {reason}"
    idle = [judgement.label for judgement in audit.judgements if judgement.is_idle]
    if not idle:
        return
    told = _POINTER
    if audit.idle is not None:
        named = {label: audit.idle[label] for label in idle if label in audit.idle}
        told = f"AWS Compute Optimizer names {len(named)} of them idle, with savings of {usd(sum(named.values()))} USD"
    yield f"{_count(len(idle), 'table')} had no requests in {audit.days} days: {told}"


def _sum(audit: Audit) -> str:
    tables = len([judgement for judgement in audit.judgements if not judgement.problem])
    findings = _count(len(audit.findings), "finding")
    return f"{_count(tables, 'table')} judged, {findings}, {usd(audit.gain_usd)} USD a month to be saved"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def audit_csv(audit: Audit) -> str:
    """Return the findings as CSV, a row each, with the code of the change."""
    text = io.StringIO()
    rows = csv.DictWriter(text, _COLUMNS, extrasaction="ignore", lineterminator="\n")
    rows.writeheader()
    for judgement, finding in audit.findings:
        rows.writerow({**asdict(judgement), **asdict(finding), "kind": str(finding.kind)})
    return text.getvalue()


def audit_document(audit: Audit) -> dict[str, Any]:
    """Return everything ready for `json.dumps`."""
    return {
        "until": audit.until.isoformat(),
        "days": audit.days,
        "gain_usd": round(audit.gain_usd, 2),
        "tables": [asdict(judgement) for judgement in audit.judgements],
        "refused": dict(audit.refused),
        "idle_by_compute_optimizer": None if audit.idle is None else dict(audit.idle),
        "calls": dict(audit.calls),
        "metrics": audit.metrics,
        "price_usd": round(audit.price_usd, 6),
    }


def audit_page(audit: Audit) -> bytes:
    """Return the findings as one HTML page without scripts; the code of each change unfolds."""
    return fill_page("audit.html", "Audit", audit=audit, total=_sum(audit), notes=list(_notes(audit)))
