"""The causes of throttling have DynamoDB's names."""

from __future__ import annotations

from itertools import product

import pytest

from highwater.core import Dimension
from highwater.core.throttles import ThrottleCause, ThrottleReason, find_reason


@pytest.mark.parametrize(
    ("reason", "name"),
    [
        # recorded of live tables
        (ThrottleReason(ThrottleCause.PROVISIONED, Dimension.WRITE, False), "TableWriteProvisionedThroughputExceeded"),
        (ThrottleReason(ThrottleCause.KEY_RANGE, Dimension.WRITE, False), "TableWriteKeyRangeThroughputExceeded"),
        # the others of the Developer Guide
        (ThrottleReason(ThrottleCause.PROVISIONED, Dimension.READ, True), "IndexReadProvisionedThroughputExceeded"),
        (ThrottleReason(ThrottleCause.ACCOUNT, Dimension.READ, False), "TableReadAccountLimitExceeded"),
        (ThrottleReason(ThrottleCause.MAX_ON_DEMAND, Dimension.WRITE, True), "IndexWriteMaxOnDemandThroughputExceeded"),
    ],
)
def test_reasons_have_the_names_of_errors(reason: ThrottleReason, name: str) -> None:
    assert reason.name == name
    assert find_reason(name) == reason


def test_every_reason_is_found_by_its_name_and_no_other_name_is() -> None:
    every = [ThrottleReason(*each) for each in product(ThrottleCause, Dimension, (False, True))]
    assert len({reason.name for reason in every}) == len(every)
    assert [find_reason(reason.name) for reason in every] == every
    assert [find_reason(name) for name in ("", "TableReadProvisionedThroughput", "LeaderElection")] == [None] * 3


def test_causes_have_names_for_metrics_and_for_people() -> None:
    assert {cause: (cause.metric_suffix, cause.label) for cause in ThrottleCause} == {
        ThrottleCause.PROVISIONED: ("ProvisionedThroughputThrottleEvents", "provisioned"),
        ThrottleCause.KEY_RANGE: ("KeyRangeThroughputThrottleEvents", "key range"),
        ThrottleCause.ACCOUNT: ("AccountLimitThrottleEvents", "account"),
        ThrottleCause.MAX_ON_DEMAND: ("MaxOnDemandThroughputThrottleEvents", "max on demand"),
    }
