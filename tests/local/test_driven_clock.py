"""A cloud whose clock is driven: it stands still until it is stepped, and everything happens at its own time."""

from __future__ import annotations

import json
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.config import Config

from highwater_lab.local import CloudError, LocalCloud
from highwater_lab.local.control import ACCOUNT
from highwater_lab.local.lockstep import SeatClock
from tests.local.world import create_function, create_tables, keyed, told, units

# the one module of `make test` that talks to a local cloud
pytestmark = [pytest.mark.quick, pytest.mark.xdist_group("driven clock")]
STARTS_AT = datetime(2026, 3, 2, 7, 59, 30, tzinfo=UTC)
CLOUD = {"starts_at": STARTS_AT, "has_instant_updates": False}
# tells what a function sees of the time, before and after it sleeps
HANDLER = """
import asyncio, builtins, datetime, time
LOADED = time.time()

def handler(event, context):
    if "fails" in event:
        print("failed at", time.time())
        raise getattr(builtins, event.get("raises", "ValueError"))(*filter(None, [event["fails"]]))
    began, passed, left = time.time(), time.monotonic(), context.get_remaining_time_in_millis()
    time.sleep(event.get("sleeps", 0))
    until = time.monotonic_ns() + event.get("nanoseconds", 0)
    while (rest := until - time.monotonic_ns()) > 0:
        time.sleep(rest / 10**9)
    asyncio.run(asyncio.sleep(0.001))
    print("ran from", began, "to", time.time())
    return {
        "loaded": LOADED,
        "began": began,
        "ended": datetime.datetime.now(datetime.timezone.utc).timestamp(),
        "passed": time.monotonic() - passed,
        "left": [left, context.get_remaining_time_in_millis()],
    }
"""


@pytest.fixture(scope="module", autouse=True)
def _function(cloud: LocalCloud) -> None:
    create_function(cloud.client("lambda"), "tells", HANDLER, Timeout=90)
    # its log group is there from its first run on
    _invoke(cloud)


@pytest.fixture(autouse=True)
def _begins_with_a_second(cloud: LocalCloud) -> None:
    """Times are compared as floats, whichever tests moved the clock before."""
    cloud.step(timedelta(microseconds=-cloud.status().now.microsecond % 1_000_000))


def _invoke(cloud: LocalCloud, *, waits: bool = True, **event: Any) -> Any:
    answer = cloud.client("lambda").invoke(
        FunctionName="tells",
        InvocationType="RequestResponse" if waits else "Event",
        Payload=json.dumps(event).encode(),
    )
    return json.loads(answer["Payload"].read() or b"null")


def _lines(cloud: LocalCloud, text: str) -> list[str]:
    """What the function printed that begins with *text*, oldest first."""
    events = cloud.client("logs").filter_log_events(logGroupName="/aws/lambda/tells")["events"]
    return [event["message"].strip() for event in events if event["message"].startswith(text)]


def _now(cloud: LocalCloud) -> float:
    return cloud.status().now.timestamp()


def test_clock_stands_still_until_it_is_stepped_by_whole_and_by_fractions_of_seconds(cloud: LocalCloud) -> None:
    before = cloud.status()
    assert before.speed == 0
    assert cloud.status().now == before.now
    assert cloud.step(7).now == before.now + timedelta(seconds=7)
    assert cloud.step(timedelta(milliseconds=250)).now == before.now + timedelta(seconds=7.25)
    assert cloud.step(0).now == before.now + timedelta(seconds=7.25)


def test_cloud_begins_at_the_time_given_and_otherwise_at_a_monday() -> None:
    with LocalCloud(clock="driven") as one:
        assert one.status().now == datetime(2026, 1, 5, tzinfo=UTC)
        made = one.client("dynamodb").create_table(TableName="orders", **keyed("pk"), BillingMode="PAY_PER_REQUEST")
        assert made["TableDescription"]["CreationDateTime"] == datetime(2026, 1, 5, tzinfo=UTC)


def test_function_sees_the_cloud_s_time_and_its_sleep_moves_the_clock_for_who_waits_for_it(cloud: LocalCloud) -> None:
    before = _now(cloud)
    told = _invoke(cloud, sleeps=12.5)
    assert (told["began"], told["ended"]) == (before, before + 12.5)
    assert told["loaded"] <= before
    assert told["passed"] == pytest.approx(12.5)
    assert told["left"] == [90_000, 77_500]
    assert _now(cloud) == before + 12.5
    cloud.step(47.5)


def test_function_that_sleeps_until_a_time_between_two_microseconds_gets_there(cloud: LocalCloud) -> None:
    before = cloud.status().now
    _invoke(cloud, nanoseconds=1_234)
    assert cloud.status().now == before + timedelta(microseconds=2)


def test_function_that_sleeps_past_its_timeout_ends_at_it(cloud: LocalCloud) -> None:
    before = _now(cloud)
    assert _invoke(cloud, sleeps=91) == {
        "errorMessage": "Task timed out after 90.00 seconds",
        "errorType": "Sandbox.Timedout",
    }
    assert _now(cloud) == before + 90


def test_function_in_the_background_goes_on_as_the_clock_is_stepped(cloud: LocalCloud) -> None:
    begun = _now(cloud)
    _invoke(cloud, waits=False, sleeps=20)
    cloud.step(0)
    assert _now(cloud) == begun, "nobody waits for it"
    cloud.step(19)
    line = f"ran from {begun} to {begun + 20}"
    assert line not in _lines(cloud, "ran")
    cloud.step(1)
    assert line in _lines(cloud, "ran")


def test_error_of_a_function_has_the_type_of_its_exception(cloud: LocalCloud) -> None:
    assert _invoke(cloud, fails="as asked") == {"errorMessage": "as asked", "errorType": "ValueError"}
    assert _invoke(cloud, fails="two\nlines") == {"errorMessage": "two\nlines", "errorType": "ValueError"}
    untold = {"errorMessage": "", "errorType": "ZeroDivisionError"}
    assert _invoke(cloud, fails="", raises="ZeroDivisionError") == untold


def test_function_that_fails_in_the_background_is_tried_again_after_one_and_after_two_minutes(
    cloud: LocalCloud,
) -> None:
    begun, before = _now(cloud), len(_lines(cloud, "failed"))
    _invoke(cloud, waits=False, fails="as asked")
    cloud.step(600)
    assert _lines(cloud, "failed")[before:] == [f"failed at {begun + seconds}" for seconds in (0, 60, 180)]


def test_schedules_run_at_their_own_minutes_on_the_way(cloud: LocalCloud) -> None:
    to_the_hour = 3600 - _now(cloud) % 3600
    cloud.step(to_the_hour + 30)
    scheduler = cloud.client("scheduler")
    scheduler.create_schedule(
        Name="quarters",
        ScheduleExpression="cron(0/15 * * * ? *)",
        FlexibleTimeWindow={"Mode": "OFF"},
        Target={
            "Arn": f"arn:aws:lambda:us-east-1:{ACCOUNT}:function:tells",
            "RoleArn": f"arn:aws:iam::{ACCOUNT}:role/tells",
            "Input": json.dumps({"sleeps": 3}),
        },
    )
    hour = _now(cloud) // 3600 * 3600
    before = len(_lines(cloud, "ran"))
    cloud.step(3600)
    assert _lines(cloud, "ran")[before:] == [
        f"ran from {hour + minute * 60} to {hour + minute * 60 + 3}" for minute in (15, 30, 45, 60)
    ]
    scheduler.delete_schedule(Name="quarters")


def test_jobs_work_one_at_a_time_in_the_order_of_their_moments(cloud: LocalCloud) -> None:
    begun = _now(cloud)
    told: list[tuple[str, float]] = []

    def sleeper(name: str, seconds: float) -> Any:
        def job(clock: SeatClock) -> str:
            for _ in range(2):
                told.append((name, clock.time() - begun))
                time.sleep(seconds)
            return name

        return job

    assert cloud.play(sleeper("slow", 3), sleeper("quick", 1.5), sleeper("even", 3)) == ["slow", "quick", "even"]
    assert told == [("slow", 0), ("quick", 0), ("even", 0), ("quick", 1.5), ("slow", 3), ("even", 3)]
    assert _now(cloud) == begun + 6


def test_pauses_of_an_sdk_s_retries_are_in_the_cloud_s_time(cloud: LocalCloud) -> None:
    dynamodb = cloud.client("dynamodb", Config(retries={"mode": "standard", "total_max_attempts": 12}))
    create_tables(dynamodb, units(1, 1), small=["pk"])
    cloud.step(60)
    begun = _now(cloud)

    def writer(clock: SeatClock) -> float:
        for number in range(305):
            dynamodb.put_item(TableName="small", Item={"pk": {"S": str(number)}})
        return clock.time() - begun

    (took,) = cloud.play(writer)
    # the bucket of 300 units is empty after as many items; those after it wait for a second each
    assert 4 <= took < 40
    assert _now(cloud) == begun + took


def test_job_that_fails_lets_the_others_end_and_its_error_comes_out(cloud: LocalCloud) -> None:
    ended: list[float] = []

    def fails(_: SeatClock) -> None:
        raise KeyError("as asked")

    def ends(clock: SeatClock) -> None:
        clock.sleep(5)
        ended.append(clock.time())

    with pytest.raises(KeyError, match="as asked"):
        cloud.play(fails, ends)
    assert ended == [_now(cloud)]
    assert cloud.play() == []


def test_thread_that_is_no_job_sleeps_in_real_time_meanwhile(cloud: LocalCloud) -> None:
    begun = _now(cloud)

    def job(_: SeatClock) -> None:
        other = threading.Thread(target=time.sleep, args=(0.001,))
        other.start()
        other.join()

    cloud.play(job)
    assert _now(cloud) == begun


def test_clock_that_runs_is_not_stepped_and_a_driven_one_has_no_speed(cloud: LocalCloud) -> None:
    with told(CloudError, "the clock is driven, so it has no speed; move it with step or advance"):
        cloud.run_at(20)
    with LocalCloud() as running:
        with told(CloudError, "the clock runs by itself; use advance, or start the cloud with --clock driven"):
            running.step(1)
        with told(CloudError, "jobs can be played only on a driven clock; start the cloud with clock='driven'"):
            running.play(lambda _: None)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"clock": "still"}, "clock: got 'still', allowed: 'running' or 'driven'"),
        ({"clock": "driven", "speed": 20}, "speed: got 20 for a driven clock, which has none; leave it out"),
        ({"starts_at": STARTS_AT}, "starts_at: got a time for a running clock, which begins now; add clock='driven'"),
        (
            {"clock": "driven", "starts_at": STARTS_AT.replace(tzinfo=None)},
            "starts_at: got 2026-03-02T07:59:30 without a time zone; add tzinfo=UTC",
        ),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments: dict[str, Any], message: str) -> None:
    with told(ValueError, message):
        LocalCloud(**arguments)


def test_message_of_a_queue_is_hidden_for_its_time_of_the_clock(cloud: LocalCloud) -> None:
    sqs = cloud.client("sqs")
    url = sqs.create_queue(QueueName="waits")["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="late")

    def received() -> list[int]:
        found = sqs.receive_message(
            QueueUrl=url, VisibilityTimeout=900, MessageSystemAttributeNames=["SentTimestamp"]
        ).get("Messages", [])
        return [int(each["Attributes"]["SentTimestamp"]) for each in found]

    # SQS cuts off what is less than a millisecond
    sent_ms = pytest.approx(cloud.status().now.timestamp() * 1_000, abs=1)
    assert received() == [sent_ms]
    cloud.step(890)
    assert received() == []
    cloud.step(20)
    assert received() == [sent_ms]
    sqs.delete_queue(QueueUrl=url)


def test_messages_of_topics_rules_and_failed_functions_are_sent_by_the_clock(cloud: LocalCloud) -> None:
    sqs, sns, events, functions = (cloud.client(name) for name in ("sqs", "sns", "events", "lambda"))
    queues = {}
    for name in ("topic", "rule", "letters"):
        url = sqs.create_queue(QueueName=f"from-{name}", Attributes={"MessageRetentionPeriod": "120"})["QueueUrl"]
        queues[name] = (url, f"arn:aws:sqs:us-east-1:{ACCOUNT}:from-{name}")
    topic = sns.create_topic(Name="tells")["TopicArn"]
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=queues["topic"][1])
    events.put_rule(Name="tells", EventPattern=json.dumps({"source": ["app"]}))
    events.put_targets(Rule="tells", Targets=[{"Id": "queue", "Arn": queues["rule"][1]}])
    functions.put_function_event_invoke_config(
        FunctionName="tells",
        MaximumRetryAttempts=0,
        DestinationConfig={"OnFailure": {"Destination": queues["letters"][1]}},
    )

    def sent_at(name: str) -> Any:
        found = sqs.receive_message(
            QueueUrl=queues[name][0], VisibilityTimeout=0, MessageSystemAttributeNames=["SentTimestamp"]
        ).get("Messages", [])
        return [int(each["Attributes"]["SentTimestamp"]) / 1_000 for each in found]

    before = pytest.approx(_now(cloud), abs=0.001)
    sns.publish(TopicArn=topic, Message="begun")
    events.put_events(Entries=[{"Source": "app", "DetailType": "begun", "Detail": "{}"}])
    _invoke(cloud, waits=False, fails="as asked")
    cloud.step(0)  # waits for the function, whose clock stands still too
    assert (sent_at("topic"), sent_at("rule"), sent_at("letters")) == ([before], [before], [before])
    cloud.step(130)
    assert (sent_at("topic"), sent_at("rule"), sent_at("letters")) == ([], [], [])
    functions.delete_function_event_invoke_config(FunctionName="tells")
    sns.delete_topic(TopicArn=topic)
    events.remove_targets(Rule="tells", Ids=["queue"])
    events.delete_rule(Name="tells")
    for url, _arn in queues.values():
        sqs.delete_queue(QueueUrl=url)
