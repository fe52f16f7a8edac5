"""The client against a server on loopback: signed requests, answers lost or refused, how a coordinator is found."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

import highwater
from highwater import BoostAnswer, BoostNotReadyError, BoostRefusedError, CoordinatorUnavailableError
from highwater.client import task
from highwater.client.boost import Boost
from highwater.client.coordinator import URL_VARIABLE, CoordinatorClient
from tests.client.scripted import listening
from tests.ports import free_port

BILLED = "each billed at its highest capacity, until some 17 minutes after the end, when auto scaling has lowered it"
STATE = {
    "is_ready": True,
    "targets": [{"target": "table write", "wanted": 112, "floor": 112, "provisioned": 112, "is_ready": True}],
    "notes": [],
}
BEGUN: dict[str, Any] = {
    "id": "nightly-1",
    "table": "orders",
    "outcome": "part",
    "start": "2027-03-04T02:00:00+00:00",
    "end": "2027-03-04T02:30:00+00:00",
    "billed_hours": 2,
    "targets": [
        {
            "target": "table write",
            "asked": 8_000,
            "units": 6_000,
            "limits": [{"code": "ceiling", "sentence": "the plan's ceiling leaves 6,000 units/s"}],
            "usd_per_hour": 3.9,
        }
    ],
    "notes": ["scaling rests"],
}


@dataclass
class Server:
    """A coordinator that answers what it is told to.

    Attributes:
        answers: Status and body of the next answers; the last one is given again and again. A status of 0 drops the
            connection.
        asked: The requests, with their headers.
    """

    answers: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    asked: list[tuple[dict[str, Any], Mapping[str, str]]] = field(default_factory=list)
    url: str = ""

    def serve(self, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes] | None:
        self.asked.append((json.loads(body), headers))
        status, document = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return (status, json.dumps(document).encode()) if status else None


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    told = Server()
    monkeypatch.delenv(URL_VARIABLE, raising=False)
    with listening(told.serve) as url:
        told.url = f"{url}/"
        yield told


def _session(key: str | None = "AKIDEXAMPLE") -> boto3.Session:
    return boto3.Session(aws_access_key_id=key, aws_secret_access_key=key, region_name="eu-central-1")


def _client(server: Server) -> CoordinatorClient:
    return CoordinatorClient(coordinator=server.url, session=_session(), pause=lambda _: None)


def _boost(server: Server, **more: Any) -> Boost:
    made = highwater.boost("orders", write=8_000, minutes=30, coordinator=server.url, session=_session(), **more)
    made.client.pause = lambda _: None
    return made


def test_request_is_signed_for_lambda_in_the_callers_region(server: Server) -> None:
    server.answers = [(200, {"fine": 1})]
    assert _client(server).send("begin", id="x", index=None, write=7) == {"fine": 1}
    ((body, headers),) = server.asked
    assert body == {"do": "begin", "id": "x", "write": 7}
    assert "/eu-central-1/lambda/aws4_request, SignedHeaders=" in headers["authorization"]


@pytest.mark.parametrize("lost", [(0, {}), (503, {"error": "x"}), (429, {}), (502, {})])
def test_request_is_sent_again_with_the_same_id_where_its_answer_is_lost(
    server: Server, lost: tuple[int, dict[str, Any]]
) -> None:
    server.answers = [lost, lost, (200, BEGUN)]
    assert _boost(server).begin().outcome == "part"
    assert len({body["id"] for body, _ in server.asked}) == 1
    assert len(server.asked) == 3


def test_coordinator_that_never_answers_is_said_to(server: Server) -> None:
    server.answers = [(503, {"error": "the lease table does not answer"})]
    pauses: list[float] = []
    client = CoordinatorClient(coordinator=server.url, session=_session(), pause=pauses.append)
    with pytest.raises(CoordinatorUnavailableError) as unavailable:
        client.send("list", table="orders")
    assert str(unavailable.value) == (
        f"the coordinator at {server.url} does not answer: the lease table does not answer"
    )
    assert len(server.asked) == 6
    assert all(longest / 2 <= pause <= longest for pause, longest in zip(pauses, (1, 2, 4, 8, 16), strict=True))


def test_jobs_that_start_together_do_not_ask_again_together(server: Server) -> None:
    server.answers = [(503, {"error": "the lease table does not answer"})]
    pauses: list[float] = []
    client = CoordinatorClient(coordinator=server.url, session=_session(), pause=pauses.append, attempts=2)
    for _ in range(5):
        with pytest.raises(CoordinatorUnavailableError):
            client.send("list", table="orders")
    assert len(set(pauses)) == 5


def test_refusal_is_not_sent_again(server: Server) -> None:
    server.answers = [(403, {"error": "role/x may not boost orders"})]
    with pytest.raises(BoostRefusedError, match=r"^role/x may not boost orders$") as refused:
        _boost(server).begin()
    assert refused.value.status == 403
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "text",
    [
        "Forbidden",
        "Forbidden. For troubleshooting Function URL authorization issues, see: "
        "https://docs.aws.amazon.com/lambda/latest/dg/urls-auth.html",
    ],
)
def test_caller_that_lambda_turns_away_is_told_what_it_lacks(server: Server, text: str) -> None:
    server.answers = [(403, {"Message": text})]
    with pytest.raises(BoostRefusedError) as refused:
        _client(server).send("list", table="orders")
    assert str(refused.value) == (
        f"the caller may not send requests to {server.url}; give it grant_boost in the CDK app, and deploy"
    )
    server.answers = [(403, {"Message": text})]
    with pytest.raises(BoostRefusedError) as refused:
        _client(server).wake("orders")
    assert str(refused.value) == (
        f"the caller may not send requests to {server.url}; give it grant_pulse in the CDK app, and deploy"
    )


def test_boost_that_gets_nothing_is_refused_with_what_limits_it(server: Server) -> None:
    target = BEGUN["targets"][0] | {"units": 0, "usd_per_hour": 0.0}
    server.answers = [(200, BEGUN | {"outcome": "refused", "targets": [target], "notes": []})]
    with pytest.raises(BoostRefusedError) as refused:
        _boost(server).begin()
    assert str(refused.value) == (
        "orders, table write: nothing of 8,000 until 2027-03-04 02:30:00 UTC; the plan's ceiling leaves 6,000 units/s"
    )


def _target(name: str, units: int, asked: int, *limits: str) -> dict[str, object]:
    sentences = [{"code": "ceiling", "sentence": limit} for limit in limits]
    return {"target": name, "asked": asked, "units": units, "limits": sentences, "usd_per_hour": 0.0}


def test_refusal_names_the_targets_of_one_cause_together(server: Server) -> None:
    full, smaller = "the plan's ceiling of 400 units/s leaves 0 units/s", "the plan's ceiling of 90 units/s leaves 0"
    targets = [
        _target("table write", 0, 8_000, full),
        _target("index 'by-day' write", 0, 8_000, full),
        _target("index 'by-place' write", 0, 90, smaller),
        _target("index 'by-state' write", 0, 4_000, full),
    ]
    server.answers = [(200, BEGUN | {"outcome": "refused", "targets": targets, "notes": []})]
    with pytest.raises(BoostRefusedError) as refused:
        _boost(server).begin()
    assert str(refused.value) == (
        "orders, table write, index 'by-day' write, index 'by-state' write: nothing of 8,000 and 4,000 until "
        f"2027-03-04 02:30:00 UTC; {full}; orders, index 'by-place' write: nothing of 90 until 2027-03-04 02:30:00 "
        f"UTC; {smaller}"
    )


def test_targets_with_one_answer_and_one_remark_are_in_one_sentence(server: Server) -> None:
    rests = "scaling is suspended, so no floor is set; highwater resume orders"
    targets = [
        _target("table write", 8_000, 8_000),
        _target("index 'by-day' write", 8_000, 8_000),
        _target("index 'by-place' write", 4_000, 4_000),
    ]
    notes = [f"table write: {rests}", f"index 'by-day' write: {rests}", "scaling rests", "scaling rests"]
    server.answers = [(200, BEGUN | {"outcome": "whole", "targets": targets, "notes": notes})]
    assert _boost(server).begin().lines() == [
        "orders, table write, index 'by-day' write: 8,000 units/s until 2027-03-04 02:30:00 UTC",
        "orders, index 'by-place' write: 4,000 units/s until 2027-03-04 02:30:00 UTC",
        f"table write, index 'by-day' write: {rests}",
        "scaling rests",
    ]


def test_answer_in_sentences(server: Server) -> None:
    server.answers = [(200, BEGUN)]
    assert _boost(server).begin().lines() == [
        "orders, table write: 6,000 units/s of 8,000 until 2027-03-04 02:30:00 UTC",
        "  the plan's ceiling leaves 6,000 units/s",
        f"about 7.80 USD: 2 hours at 3.90 USD, {BILLED}",
        "scaling rests",
    ]


def test_answer_without_a_known_price_says_unit_hours(server: Server) -> None:
    targets = [BEGUN["targets"][0] | {"usd_per_hour": None}]
    server.answers = [(200, BEGUN | {"targets": targets, "billed_hours": 1})]
    answer = _boost(server).begin()
    assert (answer.usd, answer.lines()[2]) == (None, f"6,000 unit hours: 1 hour at 6,000 units/s, {BILLED}")


def test_block_begins_waits_and_releases(server: Server) -> None:
    server.answers = [(200, BEGUN), (200, STATE), (200, {"released": True})]
    with _boost(server, reason="load") as boost:
        assert isinstance(boost.answer, BoostAnswer)
        assert [body["do"] for body, _ in server.asked] == ["begin", "status"]
    assert [body["do"] for body, _ in server.asked] == ["begin", "status", "release"]
    begun = server.asked[0][0]
    assert {name: begun[name] for name in ("table", "minutes", "write", "hold", "reason", "is_all_or_nothing")} == {
        "table": "orders",
        "minutes": 30,
        "write": 8_000,
        "hold": "lease",
        "reason": "load",
        "is_all_or_nothing": False,
    }


def test_capacity_that_does_not_come_is_given_back_and_told(server: Server) -> None:
    late = {**STATE, "is_ready": False, "notes": ["table write: scaling is suspended"]}
    server.answers = [(200, BEGUN), (200, late), (200, {"released": True})]
    boost = _boost(server, timeout=timedelta(seconds=1))
    with pytest.raises(BoostNotReadyError) as missed:
        boost.__enter__()
    assert str(missed.value) == (
        "orders: the capacity has not come in 0:00:01: table write 112 of 112; table write: scaling is suspended"
    )
    assert [body["do"] for body, _ in server.asked] == ["begin", "status", "release"]


def test_blocks_own_error_counts_where_the_release_fails(server: Server) -> None:
    server.answers = [(200, BEGUN), (200, STATE), (410, {"error": "over"})]

    def job() -> None:
        with _boost(server):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        job()


class _Ssm:
    """Parameters of Systems Manager by their names; *refuses* all calls if it is told to."""

    class exceptions:
        class ParameterNotFound(Exception):
            """As boto3 has it."""

    def __init__(self, parameters: dict[str, str], *, refuses: bool = False) -> None:
        self.parameters = parameters
        self.refuses = refuses

    def client(self, service: str, **_: Any) -> _Ssm:
        assert service == "ssm"
        return self

    def get_parameter(self, **request: str) -> Any:
        if request["Name"] not in self.parameters:
            raise self.exceptions.ParameterNotFound
        return {"Parameter": {"Value": self.parameters[request["Name"]]}}

    def get_paginator(self, _: str) -> _Ssm:
        return self

    def paginate(self, **request: str) -> Any:
        if self.refuses:
            raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "GetParametersByPath")
        assert request == {"Path": "/highwater/coordinators"}
        return [{"Parameters": [{"Name": name, "Value": value} for name, value in self.parameters.items()]}]


ONE, TWO = {"/highwater/coordinators/Shop-1": "https://one/"}, {"/highwater/coordinators/Shop-2": "https://two/"}


@pytest.mark.parametrize(
    ("coordinator", "parameters", "found"),
    [(None, ONE, "https://one/"), ("Shop-2", ONE | TWO, "https://two/"), ("https://x/", {}, "https://x/")],
)
def test_coordinator_is_found_by_its_parameter(
    coordinator: str | None, parameters: dict[str, str], found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(URL_VARIABLE, raising=False)
    assert CoordinatorClient(coordinator=coordinator, session=_Ssm(parameters)).url == found
    monkeypatch.setenv(URL_VARIABLE, "https://mine/")
    expected = "https://mine/" if coordinator is None else found
    assert CoordinatorClient(coordinator=coordinator, session=_Ssm(parameters)).url == expected


@pytest.mark.parametrize(
    ("coordinator", "session", "message"),
    [
        (
            None,
            _Ssm({}),
            "there is no coordinator in this account and region; deploy a BoostCoordinator, or give its region",
        ),
        (None, _Ssm(ONE | TWO), "there are several coordinators; give one of their names: Shop-1, Shop-2"),
        ("Shop-3", _Ssm(ONE), "there is no coordinator 'Shop-3' in this account and region"),
        (
            None,
            _Ssm({}, refuses=True),
            "the parameters below /highwater/coordinators/ cannot be read: An error occurred "
            "(AccessDeniedException) when calling the GetParametersByPath operation: no",
        ),
    ],
)
def test_coordinator_that_is_not_found_is_said_to(
    coordinator: str | None, session: _Ssm, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(URL_VARIABLE, raising=False)
    with pytest.raises(CoordinatorUnavailableError) as missing:
        _ = CoordinatorClient(coordinator=coordinator, session=session).url
    assert str(missing.value) == message


@pytest.fixture
def called(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """A server that the function of a `BoostTask` finds and signs for by its environment."""
    given = {"ACCESS_KEY_ID": "id", "SECRET_ACCESS_KEY": "secret", "DEFAULT_REGION": "eu-west-1"}
    for name, value in {URL_VARIABLE: server.url, **{f"AWS_{name}": value for name, value in given.items()}}.items():
        monkeypatch.setenv(name, value)
    return server


@pytest.mark.parametrize(
    ("redrives", "begun", "released"),
    [(None, "one", ["one"]), (0, "one", ["one"]), (2, "one-2", ["one", "one-1", "one-2"])],
)
def test_each_redrive_of_an_execution_has_a_boost_of_its_own_and_a_release_ends_them_all(
    called: Server, redrives: int | None, begun: str, released: list[str]
) -> None:
    step = {"table": "orders", "id": "one", "redrives": redrives}
    called.answers = [(200, BEGUN), (200, STATE), (200, {})]
    task.handler({"do": "begin", "minutes": 5, "write": 7, "retries": 0, **step}, None)
    asked = called.asked[0][0]
    assert (asked["id"], asked["write"]) == (begun, 7)
    assert not asked.keys() & {"redrives", "retries"}
    called.asked.clear()
    assert task.handler({"do": "release", **step}, None) == {"id": begun, "table": "orders"}
    assert [(each["do"], each["id"]) for each, _ in called.asked] == [("release", id) for id in released]


def test_step_that_is_repeated_asks_only_whether_the_capacity_is_there(called: Server) -> None:
    step = {"do": "begin", "minutes": 5, "write": 7, "table": "orders", "id": "one", "redrives": 0}
    unready = (200, {**STATE, "is_ready": False})
    called.answers = [(200, BEGUN), unready, unready, (410, {"error": "never was"}), (200, BEGUN), (200, STATE)]
    for retries in (0, 1):
        with pytest.raises(BoostNotReadyError, match=r"^orders: table write 112 of 112$"):
            task.handler({**step, "retries": retries}, None)
    answer = {"id": "one", "table": "orders", "units": {"table write": 112}}
    # the request of the first try was lost
    assert task.handler({**step, "retries": 2}, None) == answer
    assert [each["do"] for each, _ in called.asked] == ["begin", "status", "status", "status", "begin", "status"]


def test_step_whose_state_is_refused_begins_nothing(called: Server) -> None:
    called.answers = [(403, {"error": "loader may not boost orders"})]
    with pytest.raises(BoostRefusedError, match=r"^loader may not boost orders$"):
        task.handler({"do": "begin", "minutes": 5, "write": 7, "table": "orders", "id": "one", "retries": 1}, None)
    assert [each["do"] for each, _ in called.asked] == ["status"]


def test_release_that_is_refused_is_told_and_does_not_fail_the_execution(called: Server) -> None:
    called.answers = [(403, {"error": "loader may not boost orders"})]
    given = task.handler({"do": "release", "table": "orders", "id": "one", "redrives": 0}, None)
    assert given == {"id": "one", "table": "orders", "not_released": "loader may not boost orders"}


def _without_a_way(server: Server, monkeypatch: pytest.MonkeyPatch) -> CoordinatorClient:
    """A client for a URL at which nothing listens, and whose EventBridge is the server."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_EVENTBRIDGE", server.url)
    monkeypatch.setenv("HIGHWATER_PULSES", "pulses")
    monkeypatch.setenv(URL_VARIABLE, f"http://127.0.0.1:{free_port()}/")
    return CoordinatorClient(session=_session(), pause=lambda _: None, attempts=1)


def test_scaler_is_woken_by_an_event_where_there_is_no_way_to_the_url(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = _without_a_way(server, monkeypatch)
    server.answers = [(200, {"FailedEntryCount": 0, "Entries": [{"EventId": "1"}]})]
    client.wake("orders")
    client.wake("carts")
    for (body, headers), table in zip(server.asked, ("orders", "carts"), strict=True):
        (entry,) = body["Entries"]
        assert (entry["Source"], entry["DetailType"]) == ("highwater.pulse", f"Highwater Pulse {table}")
        assert json.loads(entry["Detail"]) == {"pulses": "pulses", "table": table}
        assert headers["x-amz-target"] == "AWSEvents.PutEvents"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (
            (400, {"__type": "AccessDeniedException", "message": "not authorized"}),
            "An error occurred (AccessDeniedException) when calling the PutEvents operation (reached max retries: "
            "0): not authorized",
        ),
        ((200, {"FailedEntryCount": 1, "Entries": [{"ErrorMessage": "too many"}]}), "too many"),
    ],
)
def test_event_that_is_not_taken_is_said_and_the_url_is_tried_again(
    server: Server, monkeypatch: pytest.MonkeyPatch, answer: tuple[int, dict[str, Any]], why: str
) -> None:
    client = _without_a_way(server, monkeypatch)
    server.answers = [answer]
    with pytest.raises(CoordinatorUnavailableError) as unavailable:
        client.wake("orders")
    assert str(unavailable.value) == f"the coordinator's URL cannot be reached, and no event can be put: {why}"
    client.url = server.url
    server.answers = [(200, {})]
    client.wake("orders")
    assert server.asked[-1][0] == {"do": "pulse", "table": "orders"}


def test_coordinator_that_answers_late_or_with_an_error_is_asked_by_no_event(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_EVENTBRIDGE", "http://127.0.0.1:9/")
    client = CoordinatorClient(coordinator=server.url, session=_session(), attempts=1)
    for lost in ((503, {"error": "busy"}), (0, {})):
        server.answers = [lost]
        with pytest.raises(CoordinatorUnavailableError, match="does not answer"):
            client.wake("orders")
