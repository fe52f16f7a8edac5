"""An audit in words: what is left over or differs, and what could not be read of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

from highwater_lab.audit import Judgement
from highwater_lab.audit.deviations import Deviation, DeviationKind, PlacedDeviation
from highwater_lab.report.audit import Audit, audit_document, audit_lines
from highwater_lab.services.commitments import CommitmentAdvice
from highwater_lab.services.data_costs import DataCosts

DRIFT = Deviation(
    kind=DeviationKind.DRIFT,
    subject="target table/orders write",
    problem="has a floor of 3, declared for now: 7",
    command="aws mend",
    can_throttle=True,
)
AUDIT = Audit(
    judgements=(),
    commitments=CommitmentAdvice(hours=0, list_usd=Decimal(0), offers=(), unpriced={}, problem="nothing is known"),
    until=datetime(2026, 11, 28, tzinfo=UTC),
    days=14,
    deviations=(PlacedDeviation("111122223333", "eu-west-1", DRIFT),),
    unchecked=("role/x/eu-west-3: leftovers: may not be read: sqs:GetQueueUrl is denied",),
)


def test_drift_that_may_throttle_says_so_and_what_may_not_be_read_is_told() -> None:
    assert list(audit_lines(AUDIT)) == [
        "111122223333/eu-west-1: drift: target table/orders write has a floor of 3, declared for now: 7, may throttle; "
        "fix: aws mend",
        "role/x/eu-west-3: leftovers: may not be read: sqs:GetQueueUrl is denied",
        "0 tables judged, 0 findings, 0.00 USD a month to be saved; 0 leftovers and 1 drift, 0.00 USD a month",
    ]
    document = audit_document(AUDIT)
    assert (document["unchecked"], document["deviations"][0]["can_throttle"]) == (list(AUDIT.unchecked), True)


def test_cost_adds_what_is_not_simulated_to_capacity() -> None:
    data = DataCosts(
        tables=3,
        storage_gb=1_033.0,
        storage_usd=123.25,
        recovery_gb=110.0,
        recovery_usd=22.0,
        backup_gb=42.0,
        backup_usd=4.2,
        streams=2,
        stream_read_million=0.2,
        unpriced=("eu-west-1", "eu-west-3"),
    )
    judgement = Judgement(account="111122223333", region="us-east-1", table="orders", cost_usd=17.31)
    audit = replace(AUDIT, judgements=(judgement,), deviations=(), unchecked=(), data=data)
    assert list(audit_lines(audit)) == [
        "cost now: 167 USD a month: capacity of 1 table 17.31; not simulated: storage 123 (1,033.0 GB), point-in-time "
        "recovery 22.00 (110.0 GB), on-demand backups 4.20 (42.0 GB)",
        "not in it: reads of 2 streams, 0.20 USD a million but by Lambda functions and global tables, which read for "
        "nothing",
        "not in it: storage and backups in eu-west-1, eu-west-3, as the file of prices lacks them",
        "1 table judged, 0 findings, 0.00 USD a month to be saved",
    ]
    cost = audit_document(audit)["cost"]
    # 17.31 + 123.25 + 22 + 4.2
    assert (cost["capacity_usd"], cost["total_usd"], cost["not_simulated"]["recovery_usd"]) == (17.31, 166.76, 22.0)
