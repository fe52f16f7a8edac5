"""An audit in words: what is left over or differs, and what could not be read of it."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

from highwater_lab.audit.deviations import Deviation, DeviationKind, PlacedDeviation
from highwater_lab.report.audit import Audit, audit_document, audit_lines
from highwater_lab.services.commitments import CommitmentAdvice

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
