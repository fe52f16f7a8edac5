"""An audit as lines for the terminal, as CSV, as one HTML page and as JSON."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from highwater_lab.audit import AuditFinding, Judgement
from highwater_lab.audit.deviations import DeviationKind, PlacedDeviation
from highwater_lab.report.app import usd
from highwater_lab.report.commitments import commitment_document, commitment_lines
from highwater_lab.report.pages import fill_page
from highwater_lab.services.commitments import CommitmentAdvice
from highwater_lab.services.data_costs import DataCosts

_COLUMNS = ("account", "region", "table", "kind", "gain_usd", "throttled_before", "throttled_after", "what", "code")
# the findings come first: what is committed to cannot be given back
_OF_WHAT = "these tables after their best change"
_POINTER = "AWS Compute Optimizer names idle tables, if it is enabled; its recommendations were not read"


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """The result of an audit.

    Attributes:
        judgements: What is known of each table.
        commitments: Which commitments are worth it for the capacity of all tables after the best change of each.
        until: The time up to which traffic was read.
        days: The days before.
        deviations: What is left over or differs in the accounts and regions, in the order of worth.
        refused: The accounts and regions that were not read, with the reason.
        unchecked: Why a part of the leftovers, the drift and the data could not be read, by account and region.
        data: What the data of all tables costs.
        idle: What Compute Optimizer says of tables, by account, region and name, in USD a month; `None` if it could not
            be read.
        calls: The requests to AWS that were sent, by operation; repeated ones count again.
        metrics: The metrics that were requested from CloudWatch.
        price_usd: What these cost at the list price.
    """

    judgements: tuple[Judgement, ...]
    commitments: CommitmentAdvice
    until: datetime
    days: int
    deviations: tuple[PlacedDeviation, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    unchecked: tuple[str, ...] = ()
    data: DataCosts = field(default_factory=DataCosts)
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
    def capacity_usd(self) -> float:
        """What the capacity of all judged tables costs now, in USD a month."""
        return sum(judgement.cost_usd or 0.0 for judgement in self.judgements)

    @property
    def deviations_usd(self) -> float:
        """What everything costs that is left over or differs, in USD a month."""
        return sum(each.deviation.usd_month for each in self.deviations)

    @property
    def gain_usd(self) -> float:
        """What the best change of every table saves together, in USD a month."""
        return sum(judgement.gain_usd for judgement in self.judgements)


def audit_lines(audit: Audit) -> Iterator[str]:
    """Yield a line for each finding and deviation, for commitments, for what was not judged, and for the sums."""
    for judgement, finding in audit.findings:
        yield f"{judgement.label}: {_sentence(finding)}"
    for each in audit.deviations:
        throttles = ", may throttle" if each.deviation.can_throttle else ""
        yield f"{each.place}: {each.deviation.kind}: {each.deviation.text}{throttles}; fix: {each.deviation.command}"
    yield from _commitments(audit)
    yield from _notes(audit)
    yield from _costs(audit)
    yield _sum(audit)


def _sentence(finding: AuditFinding) -> str:
    said = f"{finding.kind}: {finding.what}"
    if not finding.code:
        return f"{said}; throttled {finding.throttled_before:,.0f} a month"
    gain = finding.gain_usd
    money = f"saves {usd(gain)}" if gain >= 0 else f"costs {usd(-gain)} more"
    before, after = finding.throttled_before, finding.throttled_after
    return f"{said}; {money} USD a month, throttled {before:,.0f} -> {after:,.0f} a month"


def _commitments(audit: Audit) -> Iterator[str]:
    if any(judgement.capacity is not None for judgement in audit.judgements):
        yield from commitment_lines(audit.commitments, _OF_WHAT)


def _notes(audit: Audit) -> Iterator[str]:
    for judgement in audit.judgements:
        if judgement.problem:
            yield f"{judgement.label}: not judged: {judgement.problem}"
    for place, reason in audit.refused.items():
        yield f"{place}: not read: {reason}"
    yield from audit.unchecked
    idle = [judgement.label for judgement in audit.judgements if judgement.is_idle]
    if not idle:
        return
    told = _POINTER
    if audit.idle is not None:
        named = {label: audit.idle[label] for label in idle if label in audit.idle}
        told = f"AWS Compute Optimizer names {len(named)} of them idle, with savings of {usd(sum(named.values()))} USD"
    yield f"{_count(len(idle), 'table')} had no requests in {audit.days} days: {told}"


def _costs(audit: Audit) -> Iterator[str]:
    """Yield what everything costs now, and what of that is not simulated."""
    judged, data = sum(judgement.cost_usd is not None for judgement in audit.judgements), audit.data
    if not judged and data.usd_month < 0.005:
        return
    parts = (
        ("storage", data.storage_gb, data.storage_usd),
        ("point-in-time recovery", data.recovery_gb, data.recovery_usd),
        ("on-demand backups", data.backup_gb, data.backup_usd),
    )
    told = ", ".join(f"{what} {usd(cost)} ({size:,.1f} GB)" for what, size, cost in parts)
    yield (
        f"cost now: {usd(audit.capacity_usd + data.usd_month)} USD a month: capacity of {_count(judged, 'table')} "
        f"{usd(audit.capacity_usd)}; not simulated: {told}"
    )
    if data.streams:
        yield (
            f"not in it: reads of {_count(data.streams, 'stream')}, {data.stream_read_million:.2f} USD a million but "
            "by Lambda functions and global tables, which read for nothing"
        )
    if data.unpriced:
        yield f"not in it: storage and backups in {', '.join(data.unpriced)}, as the file of prices lacks them"


def _sum(audit: Audit) -> str:
    tables = len([judgement for judgement in audit.judgements if not judgement.problem])
    findings = _count(len(audit.findings), "finding")
    said = f"{_count(tables, 'table')} judged, {findings}, {usd(audit.gain_usd)} USD a month to be saved"
    if not audit.deviations:
        return said
    kinds = Counter(each.deviation.kind for each in audit.deviations)
    left, drifts = _count(kinds[DeviationKind.LEFTOVER], "leftover"), _count(kinds[DeviationKind.DRIFT], "drift")
    return f"{said}; {left} and {drifts}, {usd(audit.deviations_usd)} USD a month"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def audit_csv(audit: Audit) -> str:
    """Return the findings as CSV, a row each, with the code of the change; then what is left over or differs."""
    text = io.StringIO()
    rows = csv.DictWriter(text, _COLUMNS, extrasaction="ignore", lineterminator="\n")
    rows.writeheader()
    for judgement, finding in audit.findings:
        rows.writerow({**judgement.document(), **asdict(finding), "kind": str(finding.kind)})
    for each in audit.deviations:
        of_place = {"account": each.account, "region": each.region, "kind": str(each.deviation.kind)}
        told = {"gain_usd": round(each.deviation.usd_month, 2), "what": each.deviation.text}
        rows.writerow({**of_place, **told, "code": each.deviation.command})
    return text.getvalue()


def audit_document(audit: Audit) -> dict[str, Any]:
    """Return everything ready for `json.dumps`."""
    return {
        "until": audit.until.isoformat(),
        "days": audit.days,
        "gain_usd": round(audit.gain_usd, 2),
        "tables": [judgement.document() for judgement in audit.judgements],
        "deviations": [each.document() for each in audit.deviations],
        "deviations_usd": round(audit.deviations_usd, 2),
        "commitments": commitment_document(audit.commitments),
        "unchecked": list(audit.unchecked),
        "cost": {
            "capacity_usd": round(audit.capacity_usd, 2),
            "total_usd": round(audit.capacity_usd + audit.data.usd_month, 2),
            "not_simulated": {name: _rounded(value) for name, value in asdict(audit.data).items()},
        },
        "refused": dict(audit.refused),
        "idle_by_compute_optimizer": None if audit.idle is None else dict(audit.idle),
        "calls": dict(audit.calls),
        "metrics": audit.metrics,
        "price_usd": round(audit.price_usd, 6),
    }


def audit_page(audit: Audit) -> bytes:
    """Return the findings as one HTML page without scripts; the code of each change unfolds."""
    return fill_page(
        "audit.html",
        "Audit",
        audit=audit,
        total=_sum(audit),
        commitments="\n".join(_commitments(audit)),
        notes=[*_notes(audit), *_costs(audit)],
    )


def _rounded(value: Any) -> Any:
    return round(value, 3) if isinstance(value, float) else value
