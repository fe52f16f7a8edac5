"""Laws in stories that chance rarely tells: each needs several things to come together."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from highwater.core import Bounds
from tests.sequences.declared import compose, without_scaler
from tests.sequences.story import Sequences, function_id

_TURNS_FOR_REPAIR = 3
_TEN_MINUTES = 10 * 60
# A deploy that changes both tables sets floors and marks after so many operations, or fewer.
_OPERATIONS = 24
# CloudFormation sets capacity to the units of the template, in the deploy and back in its rollback.
_RESETS = [
    ("nightly", "units"),
    ("units", "nightly"),
    ("fixed", "fixed-units"),
    ("fixed-units", "fixed"),
    ("indexed", "indexed-units"),
    # an index that goes is made again by the rollback, and takes hours to build
    ("indexed", "units"),
    ("fixed", "on-demand"),
    ("scaled-fixed", "on-demand"),
    ("on-demand", "fixed"),
]
_OPERATIONS_OF_A_RESET = 14


@pytest.fixture
def story(monkeypatch: pytest.MonkeyPatch) -> Sequences:
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", f"arn:aws:any:us-east-1:000000000000:{function_id()}")
    begun = Sequences()
    begun.begin(hour=0)
    return begun


@pytest.mark.parametrize("fails_at", range(_OPERATIONS))
@pytest.mark.parametrize("joins", ["held", "held-higher"])
def test_join_of_a_scaler_that_fails_is_taken_back(story: Sequences, joins: str, fails_at: int) -> None:
    """In a window, a scaler at work has already seen the plan of a table that it is not to have after all."""
    story.deploy("calm", "scaled", None, 0)
    story.wait_until_open([joins])
    story.deploy(joins, "scaled", fails_at, 61)


@pytest.mark.parametrize("fails_at", range(_OPERATIONS))
def test_rollback_in_a_window_leaves_its_floor(story: Sequences, fails_at: int) -> None:
    """It registers changed targets with base floors again, perhaps without a word to what sets the floors."""
    story.deploy("nightly", "nightly", None, 0)
    story.wait_until_open(["nightly"])
    story.deploy("higher", "higher", fails_at, 0)


@pytest.mark.parametrize("fails_at", range(_OPERATIONS_OF_A_RESET))
@pytest.mark.parametrize(("before", "after"), _RESETS)
def test_deploy_that_resets_tables_leaves_them_at_their_floors(
    story: Sequences, before: str, after: str, fails_at: int
) -> None:
    """Also where it fails at a resource that comes before the floors, so that the rollback would not tell them."""
    story.deploy(before, before, None, 0)
    story.deploy(after, after, fails_at, 0)


def test_exchange_of_a_table_whose_capacity_has_other_ids_leaves_its_floors(story: Sequences) -> None:
    """Its targets are registered already, so it fails, and what is new goes; the table had been reset before."""
    story.deploy("nightly", "nightly", None, 0)
    before = story.capacity()
    calm = story.synthesized("calm")
    assert calm is not None
    template = compose(story.synthesized("units"), story.synthesized("nightly"), calm)
    exchanged = json.loads(json.dumps(template).replace("OrdersCapacity", "OrdersExchanged"))
    assert "already exists" in str(story.stack.deploy(exchanged))
    story.turn()
    story.check_kept(before)
    story.check()


@pytest.mark.parametrize("is_open", [True, False])
@pytest.mark.parametrize("declared", ["indexed", "scaled-indexed"])
def test_what_waits_for_an_index_is_raised_when_it_is_built(story: Sequences, declared: str, is_open: bool) -> None:
    """In a window the index waits for its floor, which is as high as its mark; otherwise for its mark alone."""
    story.deploy("nightly", "nightly", None, 0)
    if is_open:
        story.wait_until_open([declared])
    story.deploy(declared, declared, None, 0)


def test_scaler_repairs_capacity_that_auto_scaling_could_not_raise(story: Sequences) -> None:
    """The window raises reads and writes, and DynamoDB changes one of them at a time."""
    story.deploy("held-higher", "held-higher", None, 0)
    story.wait_until_open(["held-higher"])
    for _ in range(_TURNS_FOR_REPAIR):
        story.account.advance(_TEN_MINUTES)
        story.turn()
    story.check_repairs(timedelta(0))


@pytest.mark.parametrize("is_open", [True, False])
def test_scaler_that_goes_without_its_tables_leaves_floors_as_planned(story: Sequences, is_open: bool) -> None:
    """It had raised floors for traffic; in a window those of the plan are higher than the base floors."""
    story.deploy("scaled", "scaled", None, 0)
    if is_open:
        story.wait_until_open(["scaled"])
    targets = story.account.autoscaling.targets
    for name, target in targets.items():
        story.account.autoscaling.register(name, Bounds(target.bounds.min + 50, target.bounds.max), story.account.now)
    scaled = story.synthesized("scaled")
    assert scaled is not None
    assert story.stack.deploy(without_scaler(compose(scaled, scaled, scaled))) is None
    assert story.account.scaler is None
    story.check()
