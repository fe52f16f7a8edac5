"""High-water marks: what each rule asks for, and the arithmetic of the charge."""

from __future__ import annotations

from decimal import Decimal

import pytest

from highwater.core import (
    Capacity,
    HighWaterMark,
    IndexCapacity,
    Mark,
    Plan,
    WarmUpCharge,
    Window,
    marks_of,
    warm_up_charge,
)
from highwater.core.prices import prices_or_usual
from tests.core.plans_to_check import DEPLOY_TIME, READ, WRITE

LOAD = Window.daily("load", start="05:00", end="06:00", timezone="UTC", read_min=33, write_min=44, write_max=440)
SALE = Window.once("sale", start="2027-11-26T00:00", end="2027-11-27T00:00", timezone="UTC", write_min=55, read_max=130)
USUAL = prices_or_usual("us-east-1")
BY_DAY = IndexCapacity(index_name="by_day", read=Capacity.fixed(7), windows=(LOAD,))


def marks(mark: HighWaterMark) -> tuple[Mark, ...]:
    return marks_of(Plan(read=READ, write=WRITE, windows=(LOAD, SALE), indexes=(BY_DAY,), mark=mark))


@pytest.mark.parametrize(
    ("mark", "expected"),
    [
        pytest.param(
            HighWaterMark.to_windows(), (Mark(None, 33, 55, 11, 22), Mark("by_day", 33, 44, 7, 22)), id="highest floor"
        ),
        pytest.param(
            HighWaterMark.to_ceiling(),
            (Mark(None, 130, 440, 11, 22), Mark("by_day", 33, 440, 7, 22)),
            id="highest ceiling; fixed capacity goes as high as its floors",
        ),
        pytest.param(
            HighWaterMark.units(read=600, write=700),
            (Mark(None, 600, 700, 11, 22), Mark("by_day", 600, 700, 7, 22)),
            id="units for every resource",
        ),
        pytest.param(
            HighWaterMark.units(write=700),
            (Mark(None, 11, 700, 11, 22), Mark("by_day", 7, 700, 7, 22)),
            id="a dimension left out stays at its base",
        ),
        pytest.param(HighWaterMark.none(), (), id="none"),
    ],
)
def test_marks_follow_the_rule(mark: HighWaterMark, expected: tuple[Mark, ...]) -> None:
    assert marks(mark) == expected


def test_mark_by_default_is_the_highest_floor() -> None:
    assert Plan(read=READ, write=WRITE).mark == HighWaterMark.to_windows()


def test_marks_ask_nothing_of_a_dimension_whose_numbers_are_known_only_at_deploy_time() -> None:
    plan = Plan(
        read=READ, write=Capacity.fixed(DEPLOY_TIME), indexes=(IndexCapacity(index_name="by_day", write=WRITE),)
    )
    assert marks_of(plan) == (Mark(None, 11, 1, 11, 1), Mark("by_day", 11, 22, 11, 22))


@pytest.mark.parametrize(
    ("mark", "charge"),
    [
        pytest.param(Mark(None, 11, 22, 11, 22), None, id="at its base"),
        pytest.param(Mark(None, 12, 22, 11, 22), WarmUpCharge(1, 0, USUAL), id="reads above"),
        pytest.param(Mark(None, 11, 23, 11, 22), WarmUpCharge(0, 1, USUAL), id="writes above"),
        pytest.param(Mark(None, 14, 22, 11, 22), WarmUpCharge(3, 0, USUAL), id="reads far above"),
        pytest.param(Mark(None, 11, 27, 11, 22), WarmUpCharge(0, 5, USUAL), id="writes far above"),
    ],
)
def test_mark_is_above_base_and_charged_when_either_dimension_is(mark: Mark, charge: WarmUpCharge | None) -> None:
    assert mark.is_above_base is (charge is not None)
    assert warm_up_charge((mark,)) == charge


@pytest.mark.parametrize(
    ("charge", "usd", "arithmetic"),
    [
        pytest.param(WarmUpCharge(0, 12_000, USUAL), "7.80", "12,000 WCU x $0.00065 = $7.80", id="writes"),
        pytest.param(WarmUpCharge(40_000, 0, USUAL), "5.20", "40,000 RCU x $0.00013 = $5.20", id="reads"),
        pytest.param(
            WarmUpCharge(1_000, 2_000, USUAL), "1.43", "2,000 WCU x $0.00065 + 1,000 RCU x $0.00013 = $1.43", id="both"
        ),
        pytest.param(
            WarmUpCharge(1_000, 2_000, prices_or_usual("eu-central-1")),
            "1.74",
            "2,000 WCU x $0.000793 + 1,000 RCU x $0.0001586 = $1.74",
            id="22 percent more in eu-central-1",
        ),
        pytest.param(WarmUpCharge(0, 100, USUAL), "0.07", "100 WCU x $0.00065 = $0.07", id="half a cent is rounded up"),
        pytest.param(WarmUpCharge(1, 0, USUAL), "0.00", "1 RCU x $0.00013 = $0.00", id="less than half a cent"),
    ],
)
def test_charge_tells_its_arithmetic(charge: WarmUpCharge, usd: str, arithmetic: str) -> None:
    assert charge.usd == Decimal(usd)
    assert charge.arithmetic == arithmetic


def test_warm_up_charge_adds_what_lies_above_the_bases_of_all_resources() -> None:
    assert warm_up_charge(marks(HighWaterMark.units(read=600, write=700))) == WarmUpCharge(
        (600 - 11) + (600 - 7), (700 - 22) + (700 - 22), USUAL
    )


def test_warm_up_charge_is_at_the_prices_of_the_region() -> None:
    mark = Mark(None, 14, 27, 11, 22)
    assert warm_up_charge((mark,), "eu-central-1") == WarmUpCharge(3, 5, prices_or_usual("eu-central-1"))
    assert warm_up_charge((mark,), "moon-1") == warm_up_charge((mark,)) == WarmUpCharge(3, 5, USUAL)


def test_warm_up_charge_of_marks_at_or_below_their_bases_is_none() -> None:
    assert warm_up_charge((Mark(None, 11, 22, 11, 22), Mark("by_day", 3, 4, 11, 22))) is None
    assert warm_up_charge(()) is None


@pytest.mark.parametrize(
    ("mark", "document"),
    [
        pytest.param(HighWaterMark.to_windows(), {"rule": "windows"}, id="windows"),
        pytest.param(HighWaterMark.to_ceiling(), {"rule": "ceiling"}, id="ceiling"),
        pytest.param(HighWaterMark.units(read=600), {"rule": "units", "read": 600}, id="units"),
        pytest.param(HighWaterMark.none(), {"rule": "none"}, id="none"),
    ],
)
def test_mark_document_is_read_back_as_the_mark(mark: HighWaterMark, document: dict[str, object]) -> None:
    plan = Plan(read=Capacity.fixed(7), write=Capacity.fixed(9), mark=mark)
    assert plan.to_document()["mark"] == document
    assert Plan.from_document(plan.to_document()).mark == mark
    assert mark.is_units == (document["rule"] == "units")
