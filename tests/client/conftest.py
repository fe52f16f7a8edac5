"""A scripted DynamoDB behind HTTP, and a session for it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

import boto3
import pytest

from tests.client.scripted import DynamoDB


@pytest.fixture
def dynamodb(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[DynamoDB, boto3.Session, str]]:
    made = DynamoDB()
    # boto3 waits for a random time before it sends a request again
    monkeypatch.setattr("botocore.endpoint.time", SimpleNamespace(sleep=lambda _seconds: None))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            status, body = made.serve(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(status)
            self.send_header("content-type", "application/x-amz-json-1.0")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        session = boto3.Session(aws_access_key_id="A", aws_secret_access_key="B", region_name="eu-central-1")
        yield made, session, f"http://127.0.0.1:{listening.server_port}"
        listening.shutdown()
        thread.join()
