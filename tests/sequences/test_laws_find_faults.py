"""The laws find faults: a function that answers one kind of request without doing anything for it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from highwater.handlers.deploy import handler as deployment
from highwater.handlers.deploy.response import success
from tests.memory_aws.account import Account
from tests.memory_aws.tables import Document
from tests.sequences import test_directed_stories as told
from tests.sequences.story import Sequences, function_id

Tell = Callable[[Sequences], None]


def _join(story: Sequences) -> None:
    told.test_join_of_a_scaler_that_fails_is_taken_back(story, "held-higher", 4)


def _index_in_a_window(story: Sequences) -> None:
    told.test_what_waits_for_an_index_is_raised_when_it_is_built(story, "indexed", is_open=True)


def _index(story: Sequences) -> None:
    told.test_what_waits_for_an_index_is_raised_when_it_is_built(story, "indexed", is_open=False)


def _scaler_goes(story: Sequences) -> None:
    told.test_scaler_that_goes_without_its_tables_leaves_floors_as_planned(story, is_open=False)


def _units(story: Sequences) -> None:
    # after the tables, and before what refers to them
    told.test_deploy_that_resets_tables_leaves_them_at_their_floors(story, "nightly", "units", 3)


# The kinds of requests, whether it is what goes on after the answer, the story, and what the law says.
@pytest.mark.parametrize(
    ("kinds", "request_type", "is_answered", "tell", "finding"),
    [
        pytest.param(
            {deployment.AFTERMATH_TYPE},
            "Update",
            True,
            _join,
            "table/OrdersA9B65338-0 read has Bounds(min=90, max=900), not Bounds(min=7, max=900)",
            id="floors-after-a-rollback",
        ),
        pytest.param(
            # after a deploy both see to an index
            {deployment.FLOORS_TYPE, deployment.UNITS_TYPE},
            "Update",
            True,
            _index_in_a_window,
            "OrdersA9B65338-0 index 'by_status' read has 1 units, its floor is 5, indexed",
            id="floor-that-waits-for-an-index",
        ),
        pytest.param(
            {deployment.MARKS_TYPE},
            "Update",
            True,
            _index,
            "OrdersA9B65338-0 by_status has marks ",
            id="mark-that-waits-for-an-index",
        ),
        pytest.param(
            {deployment.UNITS_TYPE},
            "Update",
            True,
            _units,
            "table/OrdersA9B65338-0 read has 1 units, had 7 before, and its floor is 7",
            id="floors-after-a-rollback-to-the-units-of-the-template",
        ),
        pytest.param(
            {deployment.SCALED_TYPE},
            "Delete",
            False,
            _scaler_goes,
            "table/OrdersA9B65338-0 read has Bounds(min=57, max=900), not Bounds(min=7, max=900)",
            id="floors-that-a-scaler-had-raised",
        ),
    ],
)
def test_a_law_finds_a_request_for_which_nothing_is_done(
    kinds: set[str], request_type: str, is_answered: bool, tell: Tell, finding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", f"arn:aws:any:us-east-1:000000000000:{function_id()}")

    class Idle(Account):
        def serve(self, event: Document) -> None:
            asked = event["RequestType"], event.get("HighwaterAnswered", False)
            if event["ResourceType"] not in kinds or asked != (request_type, is_answered):
                super().serve(event)
            elif not is_answered:
                self.answers.append((event, success("done")))

    class Faulty(Sequences):
        account_type = Idle

    story = Faulty()
    story.begin(hour=0)
    with pytest.raises(AssertionError) as found:
        tell(story)
    assert str(found.value).startswith(finding)
