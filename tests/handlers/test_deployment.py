"""The handler end to end, with a server on loopback in CloudFormation's place."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from highwater.aws import tables
from highwater.core import Capacity, Plan, Window
from highwater.core.units import Units
from highwater.handlers.deploy import handler as deployment
from highwater.handlers.deploy import response as cloudformation
from highwater.handlers.deploy.waiting import Patience
from tests.handlers.serving import KilledError, marks_event
from tests.memory_aws.bench import Bench
from tests.memory_aws.deploys import custom_resource_event
from tests.memory_aws.wire import at, refusal

TOO_LONG = 4096
PLAN = Plan(
    read=Capacity.autoscaled(min_capacity=5, max_capacity=500),
    write=Capacity.autoscaled(min_capacity=7, max_capacity=700),
    windows=(Window.daily("night", start="02:00", end="02:00", timezone="UTC", write_min=140, lead=timedelta(0)),),
).to_json()


@dataclass
class CloudFormation:
    """What came to the response URL."""

    port: int
    answers: list[dict[str, Any]] = field(default_factory=list)
    raw: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)
    status: int = 200

    @property
    def answer(self) -> tuple[str, str]:
        """The status and the reason of the only answer."""
        (told,) = self.answers
        return told["Status"], told["Reason"]

    @property
    def url(self) -> str:
        """A response URL as presigned ones look."""
        return f"http://127.0.0.1:{self.port}/arn%3Aaws?X-Amz-Signature=ab%2Fcd"


def _serve(event: dict[str, Any], bench: Bench | None = None, seconds: float = 900.0, **edges: Any) -> None:
    """Serve one event, over the wires of a bench."""
    reached = bench or Bench()
    clients: dict[str, Any] = {
        "dynamodb": lambda _: reached.wired_dynamodb,
        "autoscaling": lambda _: reached.wired_autoscaling,
        "stacks": lambda: reached.stacks,
    }
    deployment.Deployment(**(clients | edges)).serve(event, Patience(lambda: seconds, lambda _: None))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[CloudFormation]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            heard.raw.append((self.command, self.path, dict(self.headers.items()), body))
            heard.answers.append(json.loads(body))
            self.send_response(heard.status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        heard = CloudFormation(server.server_address[1])
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield heard
        server.shutdown()
        thread.join()


def _event(
    server: CloudFormation, request: str, properties: dict[str, Any], kind: str = deployment.FLOORS_TYPE
) -> dict[str, Any]:
    event = custom_resource_event(kind, request, {"ServiceToken": "arn"} | properties, logical_id="OrdersFloors")
    return event | {"ResponseURL": server.url}


_GOES_ON = {"HighwaterAnswered": True, "HighwaterProgress": {"raising_invocations": 1}}


def _marks_event(server: CloudFormation, request: str, table: str) -> dict[str, Any]:
    return marks_event(request, table, {None: Units(400, 90)}) | {"ResponseURL": server.url}


def test_handler_when_floors_are_asserted_answers_success_once(bench: Bench, server: CloudFormation) -> None:
    table = bench.make_table()
    bench.register(table, (5, 500), (7, 700))
    event = _event(server, "Create", {"TableName": table, "Plan": PLAN})
    _serve(event, bench=bench)
    (told,) = server.answers
    assert told.pop("Reason").endswith(" UTC: table write to 140..700")
    assert told == {
        "Status": "SUCCESS",
        "PhysicalResourceId": "OrdersFloors",
        "StackId": event["StackId"],
        "RequestId": event["RequestId"],
        "LogicalResourceId": "OrdersFloors",
    }
    method, path, headers, _ = server.raw[0]
    assert (method, path) == ("PUT", "/arn%3Aaws?X-Amz-Signature=ab%2Fcd"), "a presigned URL is taken to the letter"
    assert headers.get("Content-Type", "") == "", "CloudFormation signs its URLs for an empty content type"


def test_handler_when_marks_are_raised_answers_success_once(bench: Bench, server: CloudFormation) -> None:
    table = bench.make_table(Units(5, 7))
    _serve(_marks_event(server, "Create", table), bench=bench)
    assert server.answer == ("SUCCESS", "raised the table to 400 RCU and 90 WCU")
    assert bench.marks(table) == {None: Units(400, 90)}
    assert bench.capacities(table) == {None: Units(5, 7)}


@pytest.mark.parametrize("request_type", ["Update", "Delete"])
def test_handler_when_the_resource_has_an_id_keeps_it(bench: Bench, server: CloudFormation, request_type: str) -> None:
    event = _marks_event(server, request_type, bench.make_table())
    _serve(event | {"PhysicalResourceId": "given-before"}, bench=bench)
    assert server.answers[0]["PhysicalResourceId"] == "given-before"


def test_handler_when_it_fails_keeps_the_id(server: CloudFormation) -> None:
    event = _marks_event(server, "Update", "no-such-table")
    _serve(event | {"PhysicalResourceId": "given-before"})
    assert server.answer == ("FAILED", "table no-such-table does not exist; deploy again when it does")
    kept = server.answers[0]["PhysicalResourceId"]
    assert kept == "given-before", "a new id would make CloudFormation delete the old one"


@pytest.mark.parametrize(
    ("properties", "kind", "reason"),
    [
        pytest.param(
            {"TableName": "orders", "Plan": '{"version": 2}'},
            deployment.FLOORS_TYPE,
            "plan has version 2, this code reads 1; deploy both again",
            id="plan",
        ),
        pytest.param(
            {},
            "Custom::Other",
            "unknown resource type 'Custom::Other'; deploy the stack with one version of cdk-highwater",
            id="type",
        ),
    ],
)
def test_handler_when_plan_or_type_is_unknown_answers_what_to_do(
    server: CloudFormation, properties: dict[str, Any], kind: str, reason: str
) -> None:
    _serve(_event(server, "Create", properties, kind))
    assert server.answer == ("FAILED", reason)


def test_handler_when_an_error_has_no_text_answers_its_kind(server: CloudFormation) -> None:
    def fail(_region: str | None) -> Any:
        raise RuntimeError

    event = _marks_event(server, "Create", "orders")
    _serve(event, dynamodb=fail)
    assert server.answers[0]["Reason"] == "RuntimeError"


_UNREADABLE = "the plan cannot be read, so nothing is changed: "


@pytest.mark.parametrize(
    ("kind", "plan", "reason"),
    [
        (deployment.AFTERMATH_TYPE, PLAN, "the table does not exist any more"),
        (deployment.SCALED_TYPE, PLAN, "the table does not exist any more"),
        (
            deployment.SCALED_TYPE,
            '{"version":2}',
            f"{_UNREADABLE}ValueError: plan has version 2, this code reads 1; deploy both again",
        ),
        (deployment.SCALED_TYPE, "[]", f"{_UNREADABLE}AttributeError: 'list' object has no attribute 'get'"),
        (deployment.SCALED_TYPE, "[" * 300 + "]" * 300, f"{_UNREADABLE}DocumentError: is nested too deeply"),
    ],
    ids=["no-table", "no-scaled-table", "version", "list", "deep"],
)
def test_handler_when_deleted_never_fails_for_what_is_gone_or_cannot_be_read(
    server: CloudFormation, kind: str, plan: str, reason: str
) -> None:
    """4 and 20: a Delete that fails keeps the whole stack."""
    _serve(_event(server, "Delete", {"TableName": "gone", "Plan": plan}, kind))
    assert server.answer == ("SUCCESS", reason)


@pytest.mark.parametrize(
    "text",
    ["x" * 9000, "é" * 9000, "\U0001f4a7" * 9000, '"\\' * 4500, "\x00\n" * 4500],
    ids=["ascii", "accents", "emoji", "quotes", "control"],
)
def test_answer_when_the_reason_is_long_stays_below_the_limit(server: CloudFormation, text: str) -> None:
    event = _event(server, "Create", {}) | {"PhysicalResourceId": "p" * 1024, "StackId": "s" * 300}
    cloudformation.answer(event, cloudformation.failure(text))
    body = server.raw[0][3]
    assert len(body) <= TOO_LONG, f"{len(body)} bytes: CloudFormation refuses it, and the stack hangs for an hour"
    assert text.startswith(server.answers[0]["Reason"].rstrip("….")), "cut between characters"
    assert len(server.answers[0]["Reason"]) >= 150, "long enough to be read"


def test_answer_when_the_reason_is_short_is_told_whole(server: CloudFormation) -> None:
    text = "An error occurred (LimitExceededException): " + "Subscriber limit exceeded. " * 20
    cloudformation.answer(_event(server, "Create", {}), cloudformation.failure(text))
    assert server.answers[0]["Reason"] == text


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("http://cloudformation.invalid/x?sig=1", id="http"),
        pytest.param("file:///etc/passwd?sig=1", id="file"),
        pytest.param("ftp://127.0.0.1/x?sig=1", id="ftp"),
        pytest.param("http://localhost.other.invalid/x?sig=1", id="name-that-begins-with-localhost"),
        pytest.param("http://127.0.0.1.other.invalid/x?sig=1", id="name-that-begins-with-loopback"),
        pytest.param("http://localhost@other.invalid/x?sig=1", id="localhost-as-user"),
        pytest.param("httpsx://other.invalid/x?sig=1", id="no-such-scheme"),
    ],
)
def test_answer_when_the_url_is_neither_https_nor_loopback_is_refused(server: CloudFormation, url: str) -> None:
    event = _event(server, "Create", {}) | {"ResponseURL": url}
    with pytest.raises(ValueError, match="not an https address") as refused:
        cloudformation.answer(event, cloudformation.success("done"))
    assert "sig=1" not in str(refused.value), "the signature is a secret"
    assert server.answers == []


def test_handler_when_the_url_is_refused_fails_loudly(server: CloudFormation) -> None:
    event = _event(server, "Delete", {}) | {"ResponseURL": "file:///etc/passwd"}
    with pytest.raises(ValueError, match=r"^refusing to answer at file://None: not an https address$"):
        _serve(event)


def test_handler_when_the_answer_is_not_taken_fails_so_that_lambda_tries_again(
    server: CloudFormation,
) -> None:
    server.status = 503
    event = _event(server, "Delete", {"TableName": "gone", "Plan": PLAN})
    with pytest.raises(OSError, match="503"):
        _serve(event)
    assert server.answer[0] == "SUCCESS"


@pytest.mark.parametrize("standing", [True, False], ids=["raised", "table-gone"])
def test_handler_when_answered_before_answers_nothing(bench: Bench, server: CloudFormation, standing: bool) -> None:
    """What is left are the marks of indexes that were being built, whatever becomes of them."""
    table = bench.make_table(Units(5, 7)) if standing else "no-such-table"
    _serve(_marks_event(server, "Create", table) | _GOES_ON, bench=bench)
    assert server.answers == []
    if standing:
        assert bench.marks(table) == {None: Units(400, 90)}


def test_handler_that_fails_after_the_answer_raises_so_that_lambda_retries(
    bench: Bench, server: CloudFormation
) -> None:
    event = _marks_event(server, "Create", bench.make_table())
    bench.wire.fault = refusal("AccessDeniedException", "not authorized")
    with pytest.raises(tables.TableRefusedError, match=r"^not authorized$"):
        _serve(event | _GOES_ON, bench=bench, seconds=20.0)
    assert server.answers == []


def test_handler_when_time_is_up_invokes_itself_and_does_not_answer_yet(bench: Bench, server: CloudFormation) -> None:
    invoked: list[tuple[str, dict[str, Any]]] = []
    table = bench.make_table(Units(5, 7))
    bench.wire.fault = at(1, refusal("ResourceInUseException", "in use"), "UpdateTable")
    event = _marks_event(server, "Create", table)
    _serve(event, seconds=20.0, bench=bench, invoke=lambda function, again: invoked.append((function, again)))
    assert server.answers == []
    ((function, again),) = invoked
    assert function == "HighwaterDeployment"
    assert again == event | {
        "HighwaterProgress": {"raising_invocations": 1, "awaiting_invocations": 0}
        | {part: [] for part in ("raised", "building", "blocking", "awaited")}
    }
    _serve(again, bench=bench)
    assert server.answer == ("SUCCESS", "raised the table to 400 RCU and 90 WCU")
    assert bench.capacities(table) == {None: Units(5, 7)}


def test_handler_when_the_process_ends_does_not_answer(bench: Bench, server: CloudFormation) -> None:
    def killed(_call: Any) -> Any:
        raise KilledError

    bench.wire.fault = killed
    event = _marks_event(server, "Create", bench.make_table())
    with pytest.raises(KilledError):
        _serve(event, bench=bench)
    assert server.answers == [], "Lambda repeats the event, which then answers"


def test_table_that_was_replaced_changes_the_physical_id(bench: Bench, server: CloudFormation) -> None:
    """CloudFormation then has what was done for the old table undone, once nothing can be rolled back any more."""
    event = _marks_event(server, "Update", bench.make_table(Units(500, 140)))
    table = event["ResourceProperties"]["TableName"]
    _serve(event | {"OldResourceProperties": event["ResourceProperties"] | {"TableName": "orders-before"}}, bench=bench)
    _serve(event | {"OldResourceProperties": event["ResourceProperties"]}, bench=bench)
    replaced_, same = server.answers
    assert replaced_["PhysicalResourceId"] == f"Marks-{table}"
    assert same["PhysicalResourceId"] == "Marks"


def test_deletion_of_marks_does_not_fail_when_the_permission_went_before(bench: Bench, server: CloudFormation) -> None:
    """4: the policy names the table that took the place of this one."""
    bench.wire.fault = refusal("AccessDeniedException", "not authorized to perform: dynamodb:DescribeTable")
    event = _marks_event(server, "Delete", bench.make_table())
    _serve(event, bench=bench, seconds=20.0)
    reason = "the marks are left as they are: not authorized to perform: dynamodb:DescribeTable"
    assert server.answer == ("SUCCESS", reason)
