"""Commitments in words and as charts of 80 columns."""

from __future__ import annotations

from decimal import Decimal

from highwater.core import Dimension
from highwater_lab.report.commitments import commitment_document, commitment_lines
from highwater_lab.services.commitments import (
    CommitmentAdvice,
    CommitmentOffer,
    CurvePoint,
    ReservedUnits,
    SavingsPlan,
)

PLAN = SavingsPlan(
    hour_usd=Decimal("1.254"),
    saved_usd=Decimal("164.70"),
    saved_if_fallen_usd=Decimal("-31.25"),
    curve=tuple(
        CurvePoint(Decimal(size), Decimal(saved))
        for size, saved in (("0.418", "54.9"), ("1.254", "164.7"), ("2.090", "-210.5"))
    ),
)
RESERVED = ReservedUnits(
    region="ap-southeast-2",
    dimension=Dimension.READ,
    years=3,
    units=1_234_500,
    upfront_usd=Decimal("506638.8"),
    hour_usd=Decimal("22.221"),
    saved_usd=Decimal("102936.7"),
    saved_if_fallen_usd=Decimal("58463.1"),
    break_even_percent=Decimal("22.72"),
    curve=(CurvePoint(Decimal(1_234_500), Decimal("102936.7")), CurvePoint(Decimal(1_300_000), Decimal("98001.2"))),
)
ADVICE = CommitmentAdvice(
    hours=335,
    list_usd=Decimal("915.42"),
    offers=(CommitmentOffer(1, (), PLAN), CommitmentOffer(3, (RESERVED,), PLAN)),
    unpriced={1: ("mars-1", "moon-2")},
)


def test_each_offer_has_its_parts_and_their_curves() -> None:
    lines = list(commitment_lines(ADVICE, "these tables after their best change"))
    assert lines == [
        "Commitments for these tables after their best change, 915 USD a month at list",
        "prices, if every hour of a term is like one of these 335 (14.0 days):",
        "nothing reserved:",
        "  a Database Savings Plan, one year, no upfront: 1.254 USD an hour",
        "    saves 165 USD a month; loses 31.25 if usage falls by a third",
        "    a dollar pays if it is used in 88 % of the hours (requests on demand: 82 %)",
        "        USD/hour                            saves, USD a month",
        "           0.418  ███████████                            54.90",
        "           1.254  ████████████████████████████████         165 ◀",
        "           2.090                                          -210",
        "or reserved for three years:",
        "  together saves 103,101 USD a month; saves 58,432 if usage falls by a third",
        "  1,234,500 read units in ap-southeast-2: 506,639 USD once, 22.2210 an hour",
        "    saves 102,937 USD a month; saves 58,463 if usage falls by a third",
        "    a unit pays if it is provisioned in 22.7 % of the hours or more",
        "           units                            saves, USD a month",
        "       1,234,500  ████████████████████████████████     102,937 ◀",
        "       1,300,000  ██████████████████████████████        98,001",
        "  a Database Savings Plan for the rest, one year, no upfront: 1.254 USD an hour",
        "    saves 165 USD a month; loses 31.25 if usage falls by a third",
        "    a dollar pays if it is used in 88 % of the hours (requests on demand: 82 %)",
        "        USD/hour                            saves, USD a month",
        "           0.418  ███████████                            54.90",
        "           1.254  ████████████████████████████████         165 ◀",
        "           2.090                                          -210",
        "not known: prices of reserved capacity for one year in mars-1, moon-2",
    ]
    assert all(len(line) <= 80 for line in lines)


def test_advice_without_offers_says_why() -> None:
    none = CommitmentAdvice(hours=48, list_usd=Decimal("3.1"), offers=(), unpriced={})
    assert list(commitment_lines(none, "these plans")) == [
        "Commitments for these plans, 3.10 USD a month at list prices, if every hour of a",
        "term is like one of these 48 (2.0 days):",
        "  none is worth it",
    ]
    unknown = CommitmentAdvice(hours=3, list_usd=Decimal(0), offers=(), unpriced={}, problem="it is too short")
    assert list(commitment_lines(unknown, "these plans")) == ["Commitments: not worked out: it is too short"]
    assert commitment_document(unknown) == {
        "problem": "it is too short",
        "hours": 3,
        "list_month_usd": 0.0,
        "offers": [],
        "unpriced": {},
    }


def test_document_has_every_figure() -> None:
    document = commitment_document(ADVICE)
    offer = document["offers"][1]
    assert (offer["years"], offer["saved_month_usd"]) == (3, 103_101.4)
    assert offer["savings_plan"]["break_even_percent"] == {"provisioned": 88.0, "on_demand": 82.0}
    assert offer["savings_plan"]["curve"][2] == {"hour_usd": 2.09, "saved_month_usd": -210.5}
    assert offer["reserved"][0]["units"] == 1_234_500
    assert document["unpriced"] == {"1": ["mars-1", "moon-2"]}
