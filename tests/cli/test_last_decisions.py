"""Somebody who may not read the scaler's log still learns the rest."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from highwater.aws import decisions
from highwater.cli import situation


def test_log_that_may_not_be_read_is_told_by_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    make: Any = boto3.client
    logs = make("logs", region_name="us-east-1", aws_access_key_id="none", aws_secret_access_key="none")
    monkeypatch.setattr(decisions, "client", lambda: logs)
    with Stubber(logs) as stubber:
        stubber.add_client_error("describe_log_groups", "AccessDeniedException", "not you")
        told = situation._told("orders", datetime(2027, 3, 4, tzinfo=UTC))
    assert told == ({}, "AccessDeniedException")
    logs.close()
