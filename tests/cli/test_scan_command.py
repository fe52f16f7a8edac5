"""`highwater scan` as a command, against a local cloud: what it writes, where it goes on, what it says."""

from __future__ import annotations

import json
import re
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from highwater.core.pacing.segments import scan_units
from highwater_lab.local import LocalCloud
from tests.cli.paced_stage import Stage, read_items
from tests.command import Command

pytestmark = [pytest.mark.cloud, pytest.mark.xdist_group("scan")]
ITEMS = 3_000
# three quarters of a kilobyte: about 2.3 MB, 290 read units
_FILL = "x" * 700


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("scan")
    with LocalCloud(log=folder / "server.log", has_instant_updates=True) as cloud:
        stage = Stage(cloud, Command(folder, cloud.environment()))
        stage.make("orders")
        dynamodb = cloud.client("dynamodb")
        for start in range(0, ITEMS, 25):
            items = [
                {
                    "pk": {"S": f"order-{number:05}"},
                    "n": {"N": str(number)},
                    "fill": {"S": _FILL},
                    "b": {"B": b"\x00\xff"},
                }
                for number in range(start, start + 25)
            ]
            left = dynamodb.batch_write_item(RequestItems={"orders": [{"PutRequest": {"Item": i}} for i in items]})
            assert left["UnprocessedItems"] == {}
        dynamodb.close()
        yield stage


def keys(path: Path) -> list[str]:
    return sorted(item["pk"]["S"] for item in read_items(path))


ALL = [f"order-{number:05}" for number in range(ITEMS)]


@pytest.mark.parametrize("name", ["orders.jsonl", "orders.jsonl.gz", "orders.jsonl.zst"])
def test_table_is_written_item_by_item_and_nothing_is_left_beside_it(stage: Stage, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    status, said, told = stage.run("scan", "orders", "--read", "2000", "--to", str(path))
    assert (status, said) == (0, "")
    assert told.startswith("3,000 items read, ")
    assert keys(path) == ALL
    assert read_items(path)[0]["b"] == {"B": "AP8="}
    assert [each.name for each in tmp_path.iterdir()] == [name]


def test_items_go_to_standard_output_and_the_sum_to_standard_error(stage: Stage) -> None:
    status, said, told = stage.run(
        "scan", "orders", "--read", "2000", "--projection", "pk", "--filter", "n < :n", "--values", '{":n": {"N": "7"}}'
    )
    assert status == 0
    assert sorted(said.splitlines()) == [json.dumps({"Item": {"pk": {"S": f"order-{n:05}"}}}) for n in range(7)]
    assert told.startswith("3,000 items read, ")


def test_shadow_waits_for_nothing_and_says_how_much_longer_it_would_have_taken(stage: Stage, tmp_path: Path) -> None:
    # without a coordinator, a budget that was leased would be an error
    shadow = ("scan", "orders", "--read", "2", "--budget", "nightly", "--shadow")
    status, _, told = stage.run(*shadow)
    found = re.fullmatch(
        r"3,000 items read, ([\d.]+) read units consumed; a shadow: within the rate it would have taken ([\d.]+) "
        r"seconds more\n",
        told,
    )
    assert status == 0
    assert found is not None, told
    units, seconds = (float(each) for each in found.groups())
    # the time of the shadow itself is not among them
    assert units / 2 - 60 <= seconds <= units / 2
    status, said, _ = stage.run(*shadow, "--json", "--to", str(tmp_path / "orders.jsonl"))
    assert status == 0
    assert units / 2 - 60 <= json.loads(said)["seconds_behind"] <= units / 2


def test_scan_that_is_killed_goes_on_and_writes_each_item_once(stage: Stage, tmp_path: Path) -> None:
    path = tmp_path / "orders.jsonl.zst"
    place = tmp_path / "orders.jsonl.zst.checkpoint"
    # slow enough to be killed after its second checkpoint, five seconds after the first
    with stage.command.start("scan", "orders", "--read", "30", "--to", str(path)) as running:
        while not place.exists() or json.loads(place.read_text())["scanned"] == 0:
            assert running.poll() is None
        running.send_signal(signal.SIGKILL)
    kept = json.loads(place.read_text())["scanned"]
    assert 0 < kept < ITEMS
    status, _, told = stage.run("scan", "orders", "--read", "2000", "--to", str(path), "--resume", "--json")
    assert status == 0, told
    assert keys(path) == ALL
    assert [each.name for each in tmp_path.iterdir()] == ["orders.jsonl.zst"]


@pytest.mark.parametrize(("number", "ends"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_scan_that_is_interrupted_says_how_to_go_on(stage: Stage, tmp_path: Path, number: int, ends: int) -> None:
    path = tmp_path / "orders.jsonl"
    with stage.command.start("scan", "orders", "--read", "30", "--to", str(path)) as running:
        while not path.exists() or path.stat().st_size == 0:
            assert running.poll() is None
        running.send_signal(number)
        _, told = running.communicate(timeout=120)
    assert (running.returncode, told) == (ends, "highwater scan: interrupted; go on with --resume\n")
    status, _, told = stage.run("scan", "orders", "--read", "2000", "--to", str(path))
    assert (status, told) == (
        2,
        f"highwater scan: {path}.checkpoint: an earlier scan stopped here; go on with --resume, or delete it to begin "
        "anew\n",
    )
    status, _, told = stage.run("scan", "orders", "--read", "2000", "--to", str(path), "--resume", "--consistent")
    assert (status, told) == (
        2,
        f"highwater scan: checkpoint {path}.checkpoint: is of a scan with another consistency; give the same "
        "arguments, or another file to begin anew\n",
    )
    assert stage.run("scan", "orders", "--read", "2000", "--to", str(path), "--resume")[0] == 0
    assert keys(path) == ALL


def test_table_that_is_deleted_in_the_middle_ends_the_scan_in_a_line(stage: Stage, tmp_path: Path) -> None:
    stage.make("leaving")
    dynamodb = stage.cloud.client("dynamodb")
    for first in range(0, 200, 25):
        items = [{"pk": {"S": f"order-{number}"}, "x": {"S": "y" * 9_000}} for number in range(first, first + 25)]
        dynamodb.batch_write_item(RequestItems={"leaving": [{"PutRequest": {"Item": item}} for item in items]})
    path = tmp_path / "leaving.jsonl"
    with stage.command.start("scan", "leaving", "--read", "10", "--to", str(path)) as running:
        while not path.exists() or path.stat().st_size == 0:
            assert running.poll() is None
        dynamodb.delete_table(TableName="leaving")
        _, told = running.communicate(timeout=120)
    dynamodb.close()
    assert running.returncode == 1
    assert told.startswith(
        "highwater scan: scan of leaving stopped: An error occurred (ResourceNotFoundException) when "
    )
    assert told.endswith("; go on with --resume\n")
    assert told.count("\n") == 1


def test_disk_that_is_full_loses_nothing(stage: Stage, tmp_path: Path) -> None:
    path = tmp_path / "orders.jsonl"

    def small_disk() -> None:
        # a write beyond it fails as on a full disk, once the signal is ignored
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))

    arguments = ("scan", "orders", "--read", "2000", "--to", str(path))
    with stage.command.start(*arguments, preexec_fn=small_disk) as running:
        _, told = running.communicate(timeout=300)
    assert (running.returncode, told) == (
        1,
        f"highwater scan: {path}: cannot be written: File too large; go on with --resume\n",
    )
    assert stage.run("scan", "orders", "--read", "2000", "--to", str(path), "--resume")[0] == 0
    assert keys(path) == ALL


def test_plan_says_what_it_takes_before_it_begins(stage: Stage) -> None:
    status, said, _ = stage.run("scan", "orders", "--read", "25", "--dry-run", "--json")
    plan = json.loads(said)
    assert status == 0
    assert (plan["table"], plan["items"], plan["segments"]) == ("orders", ITEMS, 4)
    assert plan["units"] == scan_units(plan["size_bytes"], is_consistent=False, page_milliunits=6_250, segments=4)
    assert plan["seconds"] == -(-plan["units"] // 25)
    status, said, _ = stage.run("scan", "orders", "--read", "25", "--dry-run")
    lines = said.splitlines()
    assert lines[0] == f"orders: 3,000 items, {plan['size_bytes']:,} bytes, as DynamoDB counted in the last six hours"
    assert lines[1] == f"read units: {plan['units']:,}, in 4 segments"
    assert lines[3] == (
        "worth less than 0.001 USD of provisioned capacity, which the table pays for anyway, unless it is raised for "
        "the scan"
    )
    assert lines[4] == (
        "to read everything without a filter, an export to S3 consumes no capacity: aws dynamodb "
        "export-table-to-point-in-time (it needs point-in-time recovery)"
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("others", "--read", "5"), "scan: there is no table 'others' in us-east-1; give its name and region"),
        (("orders", "--read", "0"), "read rate: got 0, allowed: 0.001 or more units per second"),
        (
            ("orders", "--read", "x%"),
            "read rate: got 'x%', allowed: units per second, or a share of the provisioned "
            "capacity from '1%' to '100%'",
        ),
        (
            ("orders", "--read", "5", "--start", "fast"),
            "Invalid value for '--start': 'fast' is not one of 'full', 'slow', 'boosted'.",
        ),
        (("orders", "--read", "5", "--resume"), "--resume goes on with a file; give --to too"),
        (("orders", "--read", "5", "--names", "[]"), "--names: got '[]', allowed: a JSON object"),
        (
            ("orders", "--read", "5", "--index", "by_day"),
            "scan: table 'orders' has no index 'by_day'; its indexes: none",
        ),
        (
            ("orders", "--read", "5", "--to", "/proc/none/orders"),
            "checkpoint /proc/none/orders.checkpoint: cannot be written: No such file or directory",
        ),
    ],
)
def test_misuse_is_told_in_a_line(stage: Stage, arguments: tuple[str, ...], told: str) -> None:
    assert stage.run("scan", *arguments) == (2, "", f"highwater scan: {told}\n")


def test_file_that_is_there_is_not_overwritten(stage: Stage, tmp_path: Path) -> None:
    path = tmp_path / "orders.jsonl"
    path.write_text("mine")
    assert stage.run("scan", "orders", "--read", "5", "--to", str(path))[::2] == (
        2,
        f"highwater scan: {path}: is there already; give another file, or delete it\n",
    )
    assert path.read_text() == "mine"
