"""The way back from a deploy that added an index and failed: the index is deleted, and the rollback goes on."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from acceptance.parts.indexes import _index_status, _mend
from acceptance.tables import INDEX
from highwater.core import HighwaterError
from tests.acceptance.fake_place import AT, FakePlace, refusal, stage_of

BUILT = timedelta(minutes=9)


@dataclass
class _Account:
    """DynamoDB and CloudFormation of an account whose deploy failed while an index was built."""

    place: FakePlace
    status: str
    has_index: bool = True
    deleted_at: datetime | None = None
    continued: list[str] = field(default_factory=list)
    refuses: bool = False

    def describe_table(self, TableName: str) -> dict[str, Any]:
        assert TableName == "orders"
        if self.deleted_at is not None and self.place.at >= self.deleted_at + timedelta(minutes=1):
            self.has_index = False
        state = "DELETING" if self.deleted_at else "ACTIVE" if self.place.at >= AT + BUILT else "CREATING"
        found = [{"IndexName": INDEX, "IndexStatus": state}]
        return {"Table": {"GlobalSecondaryIndexes": found} if self.has_index else {}}

    def update_table(self, TableName: str, GlobalSecondaryIndexUpdates: list[Any]) -> None:
        assert (TableName, GlobalSecondaryIndexUpdates) == ("orders", [{"Delete": {"IndexName": INDEX}}])
        assert self.place.at >= AT + BUILT
        if self.refuses:
            raise refusal("ResourceInUseException", "no", "UpdateTable")
        self.deleted_at = self.place.at

    def describe_stacks(self, StackName: str) -> dict[str, Any]:
        assert StackName.endswith("-FailedIndex")
        return {"Stacks": [{"StackStatus": self.status}]}

    def continue_update_rollback(self, StackName: str) -> None:
        assert self.status == "UPDATE_ROLLBACK_FAILED"
        assert not self.has_index
        self.continued.append(StackName)
        self.status = "UPDATE_ROLLBACK_COMPLETE"


def _account(status: str, **more: Any) -> _Account:
    place = FakePlace()
    account = _Account(place, status, **more)
    place.clients |= {"dynamodb": account, "cloudformation": account}
    return account


@pytest.mark.parametrize(
    ("status", "continued"),
    [("UPDATE_ROLLBACK_FAILED", 1), ("UPDATE_ROLLBACK_COMPLETE", 0)],
    ids=["stuck", "index-left"],
)
def test_index_is_deleted_once_it_is_built_and_a_rollback_that_stopped_goes_on(
    status: str, continued: int, tmp_path: Path
) -> None:
    account = _account(status)
    stage = stage_of(account.place, tmp_path)
    assert _index_status(stage, "orders") == "CREATING"
    # nine minutes until it is built, and one until it is gone
    assert _mend(stage, "orders") == 600
    assert _index_status(stage, "orders") == "none"
    assert len(account.continued) == continued
    assert all(check.holds for check in stage.report.checks)


def test_nothing_is_mended_where_nothing_is_left(tmp_path: Path) -> None:
    account = _account("UPDATE_ROLLBACK_COMPLETE", has_index=False)
    assert _mend(stage_of(account.place, tmp_path), "orders") == 0
    assert (account.deleted_at, account.continued) == (None, [])


def test_index_that_cannot_be_deleted_is_said_with_the_commands(tmp_path: Path) -> None:
    account = _account("UPDATE_ROLLBACK_FAILED", refuses=True)
    stage = stage_of(account.place, tmp_path)
    with pytest.raises(HighwaterError) as failed:
        _mend(stage, "orders")
    stack = stage.cdk.full_name("FailedIndex")
    assert str(failed.value) == (
        f"stack {stack} is UPDATE_ROLLBACK_FAILED and index by-visitor of orders is ACTIVE after 19 minutes: "
        "ResourceInUseException: no; mend it with: "
        "aws dynamodb update-table --region eu-west-1 --table-name orders --global-secondary-index-updates "
        """'[{"Delete":{"IndexName":"by-visitor"}}]'; """
        f"aws cloudformation continue-update-rollback --region eu-west-1 --stack-name {stack}; "
        f"aws cloudformation delete-stack --region eu-west-1 --stack-name {stack}"
    )
