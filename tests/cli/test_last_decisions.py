"""Somebody who may not read the scaler's log still learns the rest."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import boto3
from botocore.stub import Stubber

from highwater.cli.situation import logged_decisions


def test_log_that_may_not_be_read_is_named_by_its_error() -> None:
    make: Any = boto3.client
    logs = make("logs", region_name="us-east-1", aws_access_key_id="none", aws_secret_access_key="none")
    with Stubber(logs) as stubber:
        stubber.add_client_error("describe_log_groups", "AccessDeniedException", "not you")
        found = logged_decisions(logs, "orders", datetime(2027, 3, 4, tzinfo=UTC))
    assert found == ({}, "AccessDeniedException")
    logs.close()
