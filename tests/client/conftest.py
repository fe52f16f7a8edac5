"""A scripted DynamoDB behind HTTP, and a session for it."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import boto3
import pytest

from tests.client.scripted import DynamoDB, listening


@pytest.fixture
def dynamodb(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[DynamoDB, boto3.Session, str]]:
    made = DynamoDB()
    # boto3 waits for a random time before it sends a request again
    monkeypatch.setattr("botocore.endpoint.time", SimpleNamespace(sleep=lambda _seconds: None))
    with listening(lambda body, _: made.serve(body)) as url:
        session = boto3.Session(aws_access_key_id="A", aws_secret_access_key="B", region_name="eu-central-1")
        yield made, session, url
