"""Which sessions and clients are accepted, and that a table's name alone does not say which table it is."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import boto3
import botocore.session
import pytest

import highwater
from highwater import CoordinatorClient, Delete, Meter, Pacing
from highwater.client.hooks import Counts
from highwater.client.sessions import Place, account_of, session_apart
from highwater.core import Dimension
from tests.client.scripted import CONSUMED, ITEM, DynamoDB
from tests.client.virtual_clock import Clock

WRITE, DAY = Dimension.WRITE, timedelta(days=1)
BOTH = "a boto3.Session or a DynamoDB client of boto3"
Stage = tuple[DynamoDB, boto3.Session, str]


def _session(region: str = "eu-central-1") -> boto3.Session:
    return boto3.Session(aws_access_key_id="A", aws_secret_access_key="B", region_name=region)


class AsynchronousSession:
    """As aioboto3's session says where it comes from."""

    events = None
    client = staticmethod(lambda *_: None)


AsynchronousSession.__module__ = "aioboto3.session"


class AsynchronousEmitter:
    """As aiobotocore's clients have it."""


AsynchronousEmitter.__module__ = "aiobotocore.hooks"


class AsynchronousClient:
    """A client that is only recognized by its hooks."""

    meta = SimpleNamespace(events=AsynchronousEmitter())


HERE = f"{__name__}.AsynchronousClient"
WRONG: list[tuple[Callable[[], Any], str, str]] = [
    (lambda: "orders", "str", "tables are named by keyword"),
    (lambda: 7, "int", "pass the session that makes the clients"),
    (
        lambda: _session().client("s3"),
        "a client of s3",
        'make one with session.client("dynamodb")',
    ),
    (
        lambda: _session().resource("dynamodb"),
        "boto3.resources.factory.dynamodb.ServiceResource",
        "pass its client, resource.meta.client",
    ),
    (
        lambda: botocore.session.Session(),
        "botocore.session.Session",
        "pass boto3.Session(botocore_session=...)",
    ),
]


@pytest.mark.parametrize(("make", "got", "fix"), WRONG)
def test_what_is_neither_a_session_nor_a_client_of_dynamodb_is_refused(
    make: Callable[[], Any], got: str, fix: str
) -> None:
    pacing, meter = Pacing(), Meter(Counts())
    calls: dict[str, Callable[[Any], Any]] = {
        "pulse: session_or_client": highwater.pulse,
        "pace: session_or_client": lambda given: highwater.pace(given, write=5),
        "Pacing.install: session_or_client": pacing.install,
        "Meter.install: session_or_client": meter.install,
    }
    for what, call in calls.items():
        with pytest.raises(TypeError) as refused:
            call(make())
        assert str(refused.value) == f"{what}: got {got}, allowed: {BOTH}; {fix}"


@pytest.mark.parametrize(
    ("given", "got"), [(AsynchronousSession(), "aioboto3.session.AsynchronousSession"), (AsynchronousClient(), HERE)]
)
def test_asynchronous_sessions_and_clients_are_refused(given: Any, got: str) -> None:
    calls: dict[str, Callable[[], Any]] = {
        "pulse": lambda: highwater.pulse(given),
        "pace": lambda: highwater.pace(given, write=5),
    }
    for what, call in calls.items():
        with pytest.raises(TypeError) as refused:
            call()
        assert str(refused.value) == (
            f"{what}: session_or_client: got {got}, which is asynchronous, allowed: {BOTH}; "
            "use boto3 for these requests"
        )


@pytest.mark.parametrize(
    ("what", "call"),
    [
        ("read_units_for_scan: session", lambda given: highwater.read_units_for_scan("orders", DAY, session=given)),
        ("boost: session", lambda given: highwater.boost("orders", write=5, minutes=5, session=given)),
        ("pulse: session", lambda given: highwater.pulse(_session(), session=given)),
        ("session", lambda given: CoordinatorClient(session=given)),
        ("session", lambda given: highwater.scan("orders", read=5, session=given)),
        ("session", lambda given: highwater.transform("orders", lambda _: None, read=5, write=5, session=given)),
        ("session", lambda given: highwater.write("orders", [Delete({"pk": "a"})], write=5, session=given)),
    ],
)
def test_what_takes_a_session_takes_no_client_and_nothing_asynchronous(what: str, call: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError) as refused:
        list(call(_session().client("dynamodb")))
    assert str(refused.value) == (
        f"{what}: got a client of dynamodb, allowed: a boto3.Session; leave it out for the default one"
    )
    with pytest.raises(TypeError) as refused:
        list(call(AsynchronousSession()))
    assert str(refused.value) == (
        f"{what}: got aioboto3.session.AsynchronousSession, which is asynchronous, allowed: a boto3.Session; "
        "use boto3 for these requests"
    )


AWS, LOCAL = "https://dynamodb.eu-central-1.amazonaws.com", "http://localhost:8000"


@pytest.mark.parametrize(
    ("table", "is_here"),
    [
        ("orders", True),
        ("arn:aws:dynamodb:eu-central-1:123456789012:table/orders", True),
        ("arn:aws:dynamodb:eu-west-1:123456789012:table/orders", False),
        ("arn:aws:dynamodb:eu-central-1:999999999999:table/orders", False),
    ],
)
def test_table_is_known_by_the_region_and_account_of_its_arn(table: str, is_here: bool) -> None:
    assert Place("eu-central-1", AWS, "123456789012").has(table) is is_here
    # an account that is not known may be the one
    assert Place("eu-central-1", AWS).has(table) is (is_here or "999" in table)


@pytest.mark.parametrize(
    ("own", "url", "is_reached"),
    [
        (AWS, "https://123456789012.ddb.eu-central-1.amazonaws.com/", True),
        (AWS, "https://vpce-1.dynamodb.eu-central-1.vpce.amazonaws.com/", True),
        (AWS, "https://dynamodb.eu-central-1.api.aws/", True),
        (AWS, f"{LOCAL}/", False),
        (AWS, "https://amazonaws.com.example/", False),
        (LOCAL, f"{LOCAL}/", True),
        (LOCAL, "http://localhost:8001/", False),
        (LOCAL, f"{AWS}/", False),
    ],
)
def test_requests_go_to_the_same_place_by_the_same_endpoint_or_by_aws_own(own: str, url: str, is_reached: bool) -> None:
    assert Place("eu-central-1", own).is_reached_by(url) is is_reached


def test_meter_counts_the_tables_of_its_region_account_and_endpoint_alone(dynamodb: Stage) -> None:
    server, session, url = dynamodb
    counts = Counts()
    place = Place("eu-central-1", url, "123456789012")
    Meter(counts, place=place, clock=lambda: 70.0).install(session)
    arns = [f"arn:aws:dynamodb:{at}:table/orders" for at in ("eu-west-1:123456789012", "eu-central-1:999999999999")]
    elsewhere = session.client("dynamodb", endpoint_url=url, region_name="eu-west-1")
    beside = session.client("dynamodb", endpoint_url=url.replace("127.0.0.1", "localhost"))
    here = session.client("dynamodb", endpoint_url=url)
    elsewhere.put_item(TableName="orders", Item=ITEM)
    for arn in arns:
        here.put_item(TableName=arn, Item=ITEM)
    assert all("ReturnConsumedCapacity" not in asked for asked in server.asked)
    assert "ConsumedCapacity" not in beside.put_item(TableName="orders", Item=ITEM)
    assert counts.tables() == []
    consumed = [CONSUMED | {"TableName": arn} for arn in (*arns, "orders")]
    server.answers = [(200, {"ConsumedCapacity": consumed, "UnprocessedItems": {arns[0]: [{}, {}]}})]
    put: Any = [{"PutRequest": {"Item": ITEM}}]
    here.batch_write_item(RequestItems=dict.fromkeys([*arns, "orders"], put))
    assert counts.take("orders") == {(7, (None, WRITE), False): 4.5, (7, ("by_status", WRITE), False): 2.5}
    for each in (elsewhere, beside, here):
        each.close()


def test_table_of_another_region_has_a_budget_of_its_own(dynamodb: Stage) -> None:
    server, session, url = dynamodb
    clock = Clock()
    pacer = clock.pacer()
    highwater.pace(session, write=5, table="orders", indexes={"by_status": 2}, pacer=pacer)
    server.answers = [(200, {"ConsumedCapacity": {"TableName": "orders", "CapacityUnits": 5.0}})]
    here, there = (session.client("dynamodb", endpoint_url=url, region_name=each) for each in (None, "eu-west-1"))
    for client in (here, there, here, there):
        client.put_item(TableName="orders", Item=ITEM)
    # the second of each waits for the first, of which the first wait lets a second pass
    assert clock.waited == [1.0]
    assert [pacer.rate(name, None, WRITE) for name in ("orders", "eu-west-1/orders")] == [5.0, 5.0]
    assert pacer.rate("eu-west-1/orders", "by_status", WRITE) == 2.0
    pacer.limit("eu-west-1/orders", WRITE, 9)
    assert [pacer.rate(name, None, WRITE) for name in ("orders", "eu-west-1/orders")] == [5.0, 9.0]
    for each in (here, there):
        each.close()


def test_session_apart_has_the_credentials_and_the_region_and_no_hooks() -> None:
    given = _session()
    given.events.register("highwater-test.dynamodb", lambda **_: pytest.fail("a hook of the caller's"))
    apart = session_apart(given.profile_name, given.region_name, given.get_credentials())
    assert apart.get_credentials() is given.get_credentials()
    assert apart.region_name == "eu-central-1"
    client = apart.client("dynamodb")
    assert client.meta.region_name == "eu-central-1"
    client.meta.events.emit("highwater-test.dynamodb.PutItem")
    client.close()


def test_account_is_that_of_the_credentials_where_they_tell_it() -> None:
    with_account = boto3.Session("A", "B", region_name="eu-central-1", aws_account_id="123456789012")
    assert account_of(with_account.get_credentials()) == "123456789012"
    assert account_of(_session().get_credentials()) is None
    assert account_of(None) is None
