"""Which commitments are worth it, as lines with charts for the terminal and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from textwrap import wrap
from typing import Any, Final

from highwater.core import Dimension
from highwater_lab.report.app import usd
from highwater_lab.services.commitments import (
    CommitmentAdvice,
    CommitmentOffer,
    CurvePoint,
    ReservedUnits,
    SavingsPlan,
)
from highwater_lab.services.prices import PLAN_ON_DEMAND, PLAN_PROVISIONED

_COLUMNS: Final = 80
_BAR_CHARACTERS: Final = 32


def commitment_lines(advice: CommitmentAdvice, of_what: str) -> Iterator[str]:
    """Yield what is worth it for each term, with what each size saves as bars; a line is 80 characters or shorter.

    Args:
        advice: The advice.
        of_what: Whose capacity it is for, such as `the advised plans`.
    """
    if advice.problem:
        yield f"Commitments: not worked out: {advice.problem}"
        return
    yield from wrap(
        f"Commitments for {of_what}, {usd(float(advice.list_usd))} USD a month at list prices, if every hour of a term "
        f"is like one of these {advice.hours:,} ({advice.hours / 24:.1f} days):",
        _COLUMNS,
    )
    if not advice.offers:
        yield "  none is worth it"
    for number, offer in enumerate(advice.offers):
        yield from _offer(offer, "" if number == 0 else "or ")
    for years, regions in advice.unpriced.items():
        yield f"not known: prices of reserved capacity for {_term(years)} in {', '.join(regions)}"


def _offer(offer: CommitmentOffer, other: str) -> Iterator[str]:
    what = f"reserved for {_term(offer.years)}" if offer.reservations else "nothing reserved"
    yield f"{other}{what}:"
    if len(offer.reservations) + (offer.plan is not None) > 1:
        yield f"  together {_saved(offer.saved_usd, offer.saved_if_fallen_usd)}"
    for each in offer.reservations:
        yield f"  {each.units:,} {each.dimension} units in {each.region}: {_payment(each)}"
        yield f"    {_saved(each.saved_usd, each.saved_if_fallen_usd)}"
        yield f"    a unit pays if it is provisioned in {each.break_even_percent:.1f} % of the hours or more"
        yield from _chart(each.curve, Decimal(each.units), "units", 0)
    if offer.plan is not None:
        yield from _plan(offer.plan, bool(offer.reservations))


def _plan(plan: SavingsPlan, is_for_rest: bool) -> Iterator[str]:
    rest = " for the rest" if is_for_rest else ""
    yield f"  a Database Savings Plan{rest}, one year, no upfront: {plan.hour_usd:,} USD an hour"
    yield f"    {_saved(plan.saved_usd, plan.saved_if_fallen_usd)}"
    needed = f"{_percent(PLAN_PROVISIONED)} of the hours (requests on demand: {_percent(PLAN_ON_DEMAND)})"
    yield f"    a dollar pays if it is used in {needed}"
    yield from _chart(plan.curve, plan.hour_usd, "USD/hour", 3)


def _percent(share: Decimal) -> str:
    return f"{100 * share:.0f} %"


def _term(years: int) -> str:
    return "one year" if years == 1 else "three years"


def _payment(each: ReservedUnits) -> str:
    return f"{usd(float(each.upfront_usd))} USD once, {each.hour_usd:,.4f} an hour"


def _saved(saved: Decimal, if_fallen: Decimal) -> str:
    fallen = f"{'saves' if if_fallen >= 0 else 'loses'} {usd(abs(float(if_fallen)))}"
    return f"saves {usd(float(saved))} USD a month; {fallen} if usage falls by a third"


def _chart(curve: Sequence[CurvePoint], best: Decimal, heading: str, digits: int) -> Iterator[str]:
    """Yield a line for each size with a bar as long as what it saves; what costs more than it saves has none."""
    top = max(point.saved_usd for point in curve)
    yield f"    {heading:>12}  {'saves, USD a month':>{_BAR_CHARACTERS + 12}}"
    for point in curve:
        length = max(0, round(_BAR_CHARACTERS * point.saved_usd / top)) if top > 0 else 0
        mark = " ◀" if point.size == best else ""
        amount = usd(float(point.saved_usd))
        yield f"    {point.size:>12,.{digits}f}  {'█' * length:<{_BAR_CHARACTERS}} {amount:>11}{mark}"


def commitment_document(advice: CommitmentAdvice) -> dict[str, Any]:
    """Return the advice as JSON-ready values."""
    return {
        "problem": advice.problem or None,
        "hours": advice.hours,
        "list_month_usd": _round(advice.list_usd),
        "offers": [
            {
                "years": offer.years,
                "saved_month_usd": _round(offer.saved_usd),
                "saved_if_fallen_month_usd": _round(offer.saved_if_fallen_usd),
                "reserved": [_reservation(each) for each in offer.reservations],
                "savings_plan": None if offer.plan is None else _plan_document(offer.plan),
            }
            for offer in advice.offers
        ],
        "unpriced": {str(years): list(regions) for years, regions in advice.unpriced.items()},
    }


def _reservation(each: ReservedUnits) -> dict[str, Any]:
    return {
        "region": each.region,
        "dimension": str(Dimension(each.dimension)),
        "units": each.units,
        "upfront_usd": _round(each.upfront_usd),
        "hour_usd": float(each.hour_usd),
        "saved_month_usd": _round(each.saved_usd),
        "saved_if_fallen_month_usd": _round(each.saved_if_fallen_usd),
        "break_even_percent": _round(each.break_even_percent),
        "curve": [{"units": int(point.size), "saved_month_usd": _round(point.saved_usd)} for point in each.curve],
    }


def _plan_document(plan: SavingsPlan) -> dict[str, Any]:
    return {
        "hour_usd": float(plan.hour_usd),
        "saved_month_usd": _round(plan.saved_usd),
        "saved_if_fallen_month_usd": _round(plan.saved_if_fallen_usd),
        "break_even_percent": {
            "provisioned": float(100 * PLAN_PROVISIONED),
            "on_demand": float(100 * PLAN_ON_DEMAND),
        },
        "curve": [{"hour_usd": float(point.size), "saved_month_usd": _round(point.saved_usd)} for point in plan.curve],
    }


def _round(amount: Decimal) -> float:
    return float(round(amount, 2))
