"""The local cloud's process: where it listens, its clock in answers, its commands, its end."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import boto3
import pytest

from highwater_lab.local import CloudError, LocalCloud
from highwater_lab.local.process import HeldPort
from tests.local.world import World, client, create_function, refused, told, unique, wording, world_of

_LOOPBACK = {"0100007F", "00000000000000000000000001000000"}


def _ask(
    cloud: LocalCloud, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
) -> tuple[int, bytes]:
    request = urllib.request.Request(f"http://127.0.0.1:{cloud.port}{path}", data=body, headers=headers or {})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - http, as above
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def _listeners(pid: int) -> set[tuple[str, int]]:
    """Local address (as the kernel writes it) and port of every listening socket of a process."""
    inodes = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        link = str(descriptor.readlink()) if descriptor.is_symlink() else ""
        if link.startswith("socket:["):
            inodes.add(link[8:-1])
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                address, port = fields[1].split(":")
                found.add((address, int(port, 16)))
    return found


def _session(leader: int) -> set[int]:
    """The living processes of that session."""
    found = set()
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                state, _, _, session = (process / "stat").read_text().rpartition(")")[2].split()[:4]
            except OSError:
                continue
            if int(session) == leader and state not in "ZX":
                found.add(int(process.name))
    return found


def _await_the_end_of(leader: int) -> None:
    """Return when no process of that session is left; the test's time limit ends a wait that is in vain."""
    while _session(leader):
        pass


def test_server_listens_on_loopback_only(cloud: LocalCloud) -> None:
    listeners = _listeners(cloud.status().pid)
    assert cloud.port in {port for _, port in listeners}
    assert {address for address, _ in listeners} <= _LOOPBACK, "the cloud takes any credentials: nobody else may ask"


def test_date_of_answers_after_an_advance_is_the_clouds_time(cloud: LocalCloud, world: World) -> None:
    cloud.advance(timedelta(days=11, hours=3))
    for answer in (
        world.dynamodb.list_tables(),
        world.autoscaling.describe_scalable_targets(ServiceNamespace="dynamodb"),
    ):
        date = parsedate_to_datetime(answer["ResponseMetadata"]["HTTPHeaders"]["date"])
        assert abs(date - cloud.status().now) <= timedelta(seconds=2)


def test_date_of_a_refusal_after_an_advance_is_the_clouds_time(cloud: LocalCloud, world: World) -> None:
    cloud.advance(timedelta(hours=5))
    for call in (
        lambda: world.dynamodb.describe_table(TableName=unique("none")),
        lambda: world.register(f"table/{unique('none')}", 3, 9),
    ):
        with pytest.raises(world.dynamodb.exceptions.ClientError) as caught:
            call()
        date = parsedate_to_datetime(caught.value.response["ResponseMetadata"]["HTTPHeaders"]["date"])
        assert abs(date - cloud.status().now) <= timedelta(seconds=2)


def test_clock_moves_by_just_what_is_asked_and_runs_on(cloud: LocalCloud) -> None:
    before = cloud.status().now
    after = cloud.advance(timedelta(days=2, seconds=17)).now
    assert timedelta(0) <= after - before - timedelta(days=2, seconds=17) <= timedelta(seconds=2)
    assert cloud.advance(timedelta(0)).now >= after


def test_status_counts_what_is_there(cloud: LocalCloud, world: World) -> None:
    assert (cloud.status().tables, cloud.status().scalable_targets, cloud.status().scheduled_actions) == (0, 0, 0)
    tables = [world.table(5, 6) for _ in range(3)]
    for table in tables[:2]:
        world.register(f"table/{table}", 4, 9)
    world.put_action(f"table/{tables[0]}", "later", "cron(0 9 * * ? *)", 5)
    assert (cloud.status().tables, cloud.status().scalable_targets, cloud.status().scheduled_actions) == (3, 2, 1)


@pytest.mark.parametrize(
    ("body", "got"),
    [
        pytest.param(b'{"seconds": -1}', "-1", id="negative"),
        pytest.param(b'{"seconds": "5"}', "'5'", id="text"),
        pytest.param(b'{"seconds": 1.5}', "1.5", id="a-fraction"),
        pytest.param(b'{"seconds": null}', "None", id="null"),
        pytest.param(b"{}", "None", id="left-out"),
        pytest.param(b'{"seconds": true}', "True", id="a-truth-value"),
    ],
)
def test_advance_by_what_is_no_whole_number_is_refused_in_one_line(cloud: LocalCloud, body: bytes, got: str) -> None:
    status, answer = _ask(cloud, "/_highwater/advance", body)
    assert status == 400
    assert json.loads(answer) == {"message": f"seconds must be a whole number from 0 to 316224000, got {got}"}


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"five", id="no-json"),
        pytest.param(b"[1]", id="a-list"),
        pytest.param(b"\xff\xfe", id="no-text"),
        pytest.param(b'{"seconds": 1000000000000}', id="past-the-end-of-time"),
        pytest.param(b'{"seconds": 1' + b"0" * 400 + b"}", id="past-any-number"),
        pytest.param(b'{"seconds": NaN}', id="not-a-number"),
        pytest.param(b"[" * 100_000, id="nested-too-deeply"),
    ],
)
def test_advance_with_a_bad_body_is_refused_in_one_line_and_the_cloud_goes_on(cloud: LocalCloud, body: bytes) -> None:
    before = cloud.status().now
    status, answer = _ask(cloud, "/_highwater/advance", body)
    assert status == 400
    message = json.loads(answer)["message"]
    assert message
    assert "\n" not in message
    assert cloud.status().now - before < timedelta(minutes=1)


def test_unknown_command_is_refused_with_those_there_are(cloud: LocalCloud) -> None:
    status, answer = _ask(cloud, "/_highwater/retreat", b"{}")
    assert status == 404
    assert json.loads(answer) == {
        "message": "no command 'retreat'; "
        "there are status, advance, speed, time, step, wait, seats, leave and throttles"
    }


def test_advance_without_post_is_refused_without_denying_that_it_exists(cloud: LocalCloud) -> None:
    status, answer = _ask(cloud, "/_highwater/advance")
    assert status in (404, 405)
    assert "no command 'advance'" not in json.loads(answer)["message"]


def test_refused_advance_is_told_to_the_caller_as_the_cloud_said_it(cloud: LocalCloud) -> None:
    with pytest.raises(CloudError, match="seconds must be a whole number from 0 to 316224000, got -5"):
        cloud.advance(timedelta(seconds=-5))


@pytest.mark.parametrize("body", [b"x", b"[]", b"3", b'"text"'], ids=["no-json", "list", "number", "text"])
def test_auto_scaling_request_that_is_no_object_is_refused(cloud: LocalCloud, body: bytes) -> None:
    headers = {"X-Amz-Target": "AnyScaleFrontendService.DescribeScalableTargets"}
    status, answer = _ask(cloud, "/", body, headers)
    assert status == 400
    assert json.loads(answer)["__type"] == "SerializationException"


def test_unknown_auto_scaling_operation_is_refused(cloud: LocalCloud) -> None:
    status, answer = _ask(cloud, "/", b"{}", {"X-Amz-Target": "AnyScaleFrontendService.Reboot"})
    assert status == 400
    assert json.loads(answer) == {"__type": "UnknownOperationException", "message": "Unknown operation: Reboot"}


@pytest.mark.parametrize("schedule", ["rate(999999999 days)", "cron(0 9 0W * ? *)", "at(9999-12-31T23:59:59)"])
def test_hostile_schedule_never_stops_the_clock(schedule: str) -> None:
    with LocalCloud() as own:
        world = world_of(own)
        table = world.table(5, 6)
        world.register(f"table/{table}", 4, 90)
        try:
            world.put_action(f"table/{table}", "hostile", schedule, 7)
        except world.autoscaling.exceptions.ValidationException:
            return
        world.put_action(f"table/{table}", "kind", "rate(5 minutes)", 33)
        own.advance(timedelta(minutes=6))
        assert world.capacity(table) == (33, 6), "one bad action must not stop all others"


def test_process_at_the_end_is_gone_with_its_children(tmp_path: Path) -> None:
    with LocalCloud(log=tmp_path / "server.log") as own:
        lambdas = client(own, "lambda")
        code = "def handler(event, context):\n    return {'got': event['number']}\n"
        create_function(lambdas, "echo", code, Runtime="python3.13")
        answer = lambdas.invoke(FunctionName="echo", Payload=b'{"number": 7}')
        with answer["Payload"] as payload:
            assert json.load(payload) == {"got": 7}
        pid, port = own.status().pid, own.port
        assert len(_session(pid)) > 1, "the function's process is one of the cloud's"
    _await_the_end_of(pid)
    with pytest.raises(CloudError, match=f"no local cloud answers at http://localhost:{port}"):
        own.status()
    assert not _is_there(pid)
    log = (tmp_path / "server.log").read_text()
    assert "Traceback" not in log


_IDLE = """
import sys
from highwater_lab.local import LocalCloud

with LocalCloud() as own:
    print(own.status().pid, flush=True)
    sys.stdin.read()
"""
# The function of a custom resource waits for the driven clock, which does not move while the caller works.
_DEPLOYS = """
import json, sys
from pathlib import Path
from highwater_lab.local import LocalCloud
from tests.local.world import create_function

began = Path(sys.argv[1])
code = f"import time\\ndef handler(event, _):\\n    open({str(began)!r}, 'x').close()\\n    time.sleep(600)\\n"
with LocalCloud(clock="driven") as own:
    token = create_function(own.client("lambda"), "slow", code, Timeout=900)
    resource = {"Type": "Custom::Slow", "Properties": {"ServiceToken": token}}
    template = json.dumps({"Resources": {"Slow": resource}})
    own.client("cloudformation").create_stack(StackName="slow", TemplateBody=template)
    while not began.exists():
        pass
    print(own.status().pid, flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("script", [pytest.param(_IDLE, id="idle"), pytest.param(_DEPLOYS, id="deploys")])
def test_cloud_whose_caller_is_killed_ends_too_with_the_processes_of_its_functions_and_leaves_no_files(
    tmp_path: Path, number: int, script: str
) -> None:
    """The caller has no chance to end it: the cloud sees that its pipe is broken."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "began")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(scratch)},
    ) as caller:
        assert caller.stdout is not None
        pid = int(caller.stdout.readline())
        caller.send_signal(number)
    _await_the_end_of(pid)
    assert list(scratch.iterdir()) == []


def test_clouds_started_at_once_are_each_their_own() -> None:
    with ThreadPoolExecutor(3) as pool, ExitStack() as open_clouds:
        clouds = list(pool.map(lambda _: open_clouds.enter_context(LocalCloud()), range(3)))
        assert len({cloud.port for cloud in clouds}) == 3
        assert len({cloud.status().pid for cloud in clouds}) == 3


def test_port_that_is_held_is_refused_to_others_before_anything_answers_there() -> None:
    with HeldPort() as held, pytest.raises(CloudError, match=f"^port {held.port} is in use; choose another$"):
        HeldPort(held.port)


def test_ports_held_at_once_are_different() -> None:
    with ExitStack() as holding:
        assert len({holding.enter_context(HeldPort()).port for _ in range(40)}) == 40


def test_logs_carry_the_time_of_the_clouds_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIGHWATER_LOCAL_LOG_LEVEL", "INFO")
    with LocalCloud(log=tmp_path / "server.log") as own:
        own.advance(timedelta(days=11))
        own.client("ssm").put_parameter(Name="/any", Value="7", Type="String")
        now = own.status().now
    line = next(line for line in (tmp_path / "server.log").read_text().splitlines() if "[ssm]" in line)
    logged = datetime.fromisoformat(line[:19]).replace(tzinfo=UTC)
    assert timedelta(0) <= now - logged < timedelta(seconds=30)


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_cloud_when_the_block_raises_ends_too() -> None:
    pids = []

    def fail_halfway() -> None:
        with LocalCloud() as own:
            pids.append(own.status().pid)
            raise RuntimeError("halfway")

    with pytest.raises(RuntimeError, match="halfway"):
        fail_halfway()
    assert not _is_there(pids[0])


def test_second_cloud_on_a_taken_port_says_so_and_leaves_the_first_alone(cloud: LocalCloud, tmp_path: Path) -> None:
    first = cloud.status().pid
    with pytest.raises(CloudError), LocalCloud(port=cloud.port, log=tmp_path / "second.log"):
        pass
    assert cloud.status().pid == first


def test_clouds_side_by_side_share_neither_tables_nor_targets_nor_clock(cloud: LocalCloud, world: World) -> None:
    table = world.table(5, 6)
    world.register(f"table/{table}", 4, 9)
    with LocalCloud() as own:
        other = world_of(own)
        assert other.dynamodb.list_tables()["TableNames"] == []
        assert other.autoscaling.describe_scalable_targets(ServiceNamespace="dynamodb")["ScalableTargets"] == []
        with refused("ObjectNotFoundException", f"No scalable target registered for {wording(f'table/{table}')}"):
            other.put_action(f"table/{table}", "x", "rate(5 minutes)", 5)
        before: datetime = cloud.status().now
        own.advance(timedelta(days=3))
        assert cloud.status().now - before < timedelta(minutes=1)


def test_regions_of_one_cloud_share_neither_tables_nor_targets(cloud: LocalCloud, world: World) -> None:
    table = world.table(5, 6)
    world.register(f"table/{table}", 4, 9)
    arguments: dict[str, Any] = cloud.client_arguments() | {"region_name": "eu-west-1"}
    elsewhere: Any = boto3.client("application-autoscaling", **arguments)
    assert elsewhere.describe_scalable_targets(ServiceNamespace="dynamodb")["ScalableTargets"] == []


@pytest.mark.parametrize(
    "target",
    ["DynamoDB_20120810.PutItem", "AnyScaleFrontendService.DescribeScalableTargets", "AmazonSSM.GetParameter"],
)
@pytest.mark.parametrize(
    "body", [b"[]", b"3", b'"x"', b"null", b"[" * 100_000, b'{"a":' * 100_000], ids=lambda body: body[:5].decode()
)
def test_body_that_is_no_object_is_refused_as_aws_does(cloud: LocalCloud, target: str, body: bytes) -> None:
    headers = {"X-Amz-Target": target, "Content-Type": "application/x-amz-json-1.0"}
    status, answer = _ask(cloud, "/", body, headers)
    assert (status, json.loads(answer)) == (
        400,
        {"__type": "SerializationException", "message": "the request is no JSON object"},
    )


@pytest.mark.parametrize("target", ["DynamoDB_20120810.PutItem", "AnyScaleFrontendService.DescribeScalableTargets"])
def test_number_that_python_does_not_read_is_refused_and_no_failure(cloud: LocalCloud, target: str) -> None:
    headers = {"X-Amz-Target": target, "Content-Type": "application/x-amz-json-1.0"}
    status, answer = _ask(cloud, "/", b'{"n":' + b"9" * 5_000 + b"}", headers)
    assert (status, json.loads(answer)["__type"]) == (400, "SerializationException")


def test_compressed_body_that_becomes_larger_than_any_request_has_no_content(cloud: LocalCloud) -> None:
    body = gzip.compress(b'{"TableName":"' + b"x" * 2**26 + b'"}')
    headers = {"X-Amz-Target": "DynamoDB_20120810.PutItem", "Content-Encoding": "gzip"}
    status, answer = _ask(cloud, "/", body, headers | {"Content-Type": "application/x-amz-json-1.0"})
    assert (status, json.loads(answer)["__type"]) == (400, "ValidationException")


@pytest.mark.parametrize("depth", [31, 33, 2_000])
def test_deeply_nested_item_is_no_failure_of_the_cloud(cloud: LocalCloud, depth: int) -> None:
    value = '{"M":{"a":' * depth + '{"S":"x"}' + "}}" * depth
    body = f'{{"TableName":"nowhere","Item":{{"id":{{"S":"1"}},"deep":{value}}}}}'.encode()
    headers = {"X-Amz-Target": "DynamoDB_20120810.PutItem", "Content-Type": "application/x-amz-json-1.0"}
    status, _ = _ask(cloud, "/", body, headers)
    assert status == 400


def test_clock_runs_as_many_times_faster_as_asked_for() -> None:
    with LocalCloud(speed=600) as cloud:
        earliest = time.monotonic()
        begun = cloud.status().now
        latest = time.monotonic()
        while time.monotonic() < latest + 0.5:
            cloud.status()
        # each time is read at some moment of its request, which takes long on a busy machine
        least = time.monotonic() - latest
        ended = cloud.status().now
        most = time.monotonic() - earliest
        assert 600 * least - 1 <= (ended - begun).total_seconds() <= 600 * most + 1
        # and moves ahead from there
        moved = cloud.advance(timedelta(days=1)).now
        assert timedelta(days=1) <= moved - ended < timedelta(days=1, hours=1)


def test_speed_changes_without_a_jump_of_the_clock() -> None:
    with LocalCloud() as cloud:
        real = time.monotonic()
        before = cloud.status()
        faster = cloud.run_at(900)
        most = timedelta(seconds=900 * (time.monotonic() - real) + 1)
        assert (before.speed, faster.speed) == (1, 900)
        assert timedelta(0) <= faster.now - before.now < most
        later = cloud.run_at(1)
        assert later.now >= faster.now
        for speed in (0, 1_001):
            with told(CloudError, f"speed must be a whole number from 1 to 1000, got {speed}"):
                cloud.run_at(speed)
