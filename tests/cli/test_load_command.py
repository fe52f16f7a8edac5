"""`highwater load` as a command, against a local cloud: what it puts, what it rejects, where it goes on."""

from __future__ import annotations

import gzip
import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard

from highwater_lab.local import LocalCloud
from tests.cli.paced_stage import Stage
from tests.command import Command

pytestmark = [pytest.mark.cloud, pytest.mark.xdist_group("scan")]
_WIDE = "x" * 2_600


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("load")
    with LocalCloud(log=folder / "server.log", has_instant_updates=True) as cloud:
        yield Stage(cloud, Command(folder, cloud.environment()))


def typed(count: int, fill: str = "") -> str:
    lines = (
        {"Item": {"pk": {"S": f"order-{n:05}"}, "n": {"N": str(n)}, "b": {"B": "AP8="}, "x": {"S": fill}}}
        for n in range(count)
    )
    return "".join(f"{json.dumps(line)}\n" for line in lines)


def test_what_a_scan_wrote_can_be_loaded_into_another_table(stage: Stage, tmp_path: Path) -> None:
    for table in ("first", "second"):
        stage.make(table)
    path, written = tmp_path / "orders.jsonl", tmp_path / "written.jsonl.zst"
    path.write_text(typed(900))
    assert stage.run("load", "first", "--write", "2000", "--from", str(path)) == (
        0,
        "",
        "900 items put, 900.0 write units consumed\n",
    )
    assert stage.run("scan", "first", "--read", "2000", "--to", str(written))[0] == 0
    status, said, _ = stage.run("load", "second", "--write", "2000", "--from", str(written), "--json")
    assert (status, json.loads(said)) == (0, {"items": 900, "units": 900.0, "rejected": 0})
    assert stage.items("second") == stage.items("first")
    assert stage.items("first")[7] == {
        "pk": {"S": "order-00007"},
        "n": {"N": "7"},
        "b": {"B": b"\x00\xff"},
        "x": {"S": ""},
    }
    assert sorted(each.name for each in tmp_path.iterdir()) == ["orders.jsonl", "written.jsonl.zst"]


def test_shadow_waits_for_nothing_and_says_how_much_longer_it_would_have_taken(stage: Stage, tmp_path: Path) -> None:
    stage.make("shadowed")
    path = tmp_path / "orders.jsonl"
    path.write_text(typed(300))
    shadow = ("load", "shadowed", "--write", "2", "--budget", "nightly", "--shadow", "--from", str(path))
    status, _, told = stage.run(*shadow)
    found = re.fullmatch(
        r"300 items put, 300\.0 write units consumed; a shadow: within the rate it would have taken ([\d.]+) seconds "
        r"more\n",
        told,
    )
    assert status == 0
    assert found is not None, told
    # 300 units at two a second, without the time of the shadow itself
    assert 90 <= float(found.group(1)) <= 150
    status, said, _ = stage.run(*shadow, "--json")
    document = json.loads(said)
    assert (status, document["items"]) == (0, 300)
    assert 90 <= document["seconds_behind"] <= 150


def test_objects_csv_and_exports_are_read(stage: Stage, tmp_path: Path) -> None:
    for table in ("plain", "rows", "exported"):
        stage.make(table)
    plain = '{"pk": "a", "total": 12.50, "tags": ["x", {"deep": true}], "none": null}\n\n{"pk": "b"}\n'
    assert stage.run("load", "plain", "--write", "50", "--from", "-", given=plain)[0] == 0
    assert stage.items("plain") == [
        {
            "pk": {"S": "a"},
            "total": {"N": "12.5"},
            "tags": {"L": [{"S": "x"}, {"M": {"deep": {"BOOL": True}}}]},
            "none": {"NULL": True},
        },
        {"pk": {"S": "b"}},
    ]
    rows, long = tmp_path / "orders.csv.gz", "z" * 200_000
    # as spreadsheets write it, with a byte order mark
    rows.write_bytes(gzip.compress(f'\ufeffpk,total,note\na,7.25,"two\nlines"\nb,,\nc,,{long}\n'.encode()))
    assert stage.run("load", "rows", "--write", "50", "--from", str(rows), "--number", "total")[0] == 0
    assert stage.items("rows") == [
        {"pk": {"S": "a"}, "total": {"N": "7.25"}, "note": {"S": "two\nlines"}},
        {"pk": {"S": "b"}},
        {"pk": {"S": "c"}, "note": {"S": long}},
    ]
    data = tmp_path / "export" / "data"
    data.mkdir(parents=True)
    for name, lines in (("one", typed(3)), ("two", typed(5))):
        (data / f"{name}.json.gz").write_bytes(gzip.compress(lines.encode()))
    assert stage.run("load", "exported", "--write", "50", "--from", str(data.parent))[0] == 0
    assert len(stage.items("exported")) == 5


def test_items_that_dynamodb_does_not_take_are_named_with_their_lines(stage: Stage, tmp_path: Path) -> None:
    stage.make("strict")
    path, rejects = tmp_path / "orders.jsonl", tmp_path / "rejects.jsonl"
    large = json.dumps({"pk": "large", "x": "y" * 409_600})
    path.write_text(
        f'{{"pk": "a"}}\n{{"pk": \n[5]\n{{"key": "no pk"}}\n{large}\n{{"Item": {{"pk": "c"}}}}\n{{"pk": "b"}}\n'
    )
    status, _, told = stage.run("load", "strict", "--write", "500", "--from", str(path))
    assert (status, told) == (
        1,
        "highwater load: orders.jsonl, line 2: the line is no JSON; give --rejects to go on without such items; go on "
        "with --resume\n",
    )
    arguments = ("load", "strict", "--write", "500", "--from", str(path), "--rejects", str(rejects), "--resume")
    status, _, told = stage.run(*arguments)
    assert status == 1
    assert told == f"2 items put, 2.0 write units consumed\n5 items rejected, with the reasons in {rejects}\n"
    found = [json.loads(line) for line in rejects.read_text().splitlines()]
    assert [each["at"] for each in found] == [f"orders.jsonl, line {number}" for number in (2, 3, 4, 5, 6)]
    assert [found[number]["why"] for number in (0, 1, 3, 4)] == [
        "the line is no JSON",
        "the line is no JSON object",
        "the item has 409,608 bytes; allowed: 409,600 (400 KB)",
        'a value is not in DynamoDB\'s form, such as {"S": "text"}',
    ]
    assert "pk" in found[2]["why"]
    assert found[3]["line"] == large
    assert [item["pk"]["S"] for item in stage.items("strict")] == ["a", "b"]


def test_plan_says_what_the_load_then_consumes(stage: Stage, tmp_path: Path) -> None:
    stage.cloud.client("dynamodb").create_table(
        TableName="planned",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "n", "KeyType": "RANGE"}],
        AttributeDefinitions=[
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "n", "AttributeType": "N"},
            {"AttributeName": "state", "AttributeType": "S"},
        ],
        ProvisionedThroughput={"ReadCapacityUnits": 900, "WriteCapacityUnits": 901},
        LocalSecondaryIndexes=[
            {
                "IndexName": "by_state",
                "KeySchema": [
                    {"AttributeName": "pk", "KeyType": "HASH"},
                    {"AttributeName": "state", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
        ],
        GlobalSecondaryIndexes=[
            {
                "IndexName": name,
                "KeySchema": [{"AttributeName": "state", "KeyType": "HASH"}],
                "Projection": projection,
                "ProvisionedThroughput": {"ReadCapacityUnits": 902, "WriteCapacityUnits": 903},
            }
            for name, projection in (
                ("all", {"ProjectionType": "ALL"}),
                ("some", {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["half"]}),
            )
        ],
    )
    path = tmp_path / "orders.jsonl"
    # 3 units in the table; a third has the indexes' key: 1 more for the local one, 3 in one index, 2 in the other
    lines = [{"pk": f"a{n}", "n": n, "half": "x" * 1_300, "x": "y" * 1_300} for n in range(120)]
    path.write_text(
        "".join(json.dumps(line | ({"state": "new"} if n % 3 == 0 else {})) + "\n" for n, line in enumerate(lines))
    )
    arguments = ("load", "planned", "--write", "130", "--from", str(path))
    status, said, told = stage.run(*arguments, "--dry-run")
    assert (status, told) == (0, "")
    assert said == (
        "planned: 120 items, 313,907 bytes\n"
        "write units: 400 of the table, for items that are not there yet\n"
        "write units of index all: 120\n"
        "write units of index some: 80\n"
        "time at 130 units/s: 0:00:04 or more\n"
        "worth less than 0.001 USD of provisioned capacity, which the table pays for anyway, unless it is raised for "
        "the load\n"
    ), "no native way reads plain objects"
    document = json.loads(stage.run(*arguments, "--dry-run", "--json")[1])
    assert (document["units"], document["index_units"]) == (600, {"all": 120, "some": 80})
    assert stage.items("planned") == []
    status, said, _ = stage.run("load", "planned", "--write", "900", "--from", str(path), "--json")
    assert (status, json.loads(said)) == (0, {"items": 120, "units": 600.0, "rejected": 0})


def test_plan_names_the_native_ways_that_fit_the_file_the_table_and_the_rate(stage: Stage, tmp_path: Path) -> None:
    stage.make("native")
    typed, columns = tmp_path / "typed.jsonl", tmp_path / "columns.csv"
    typed.write_text('{"Item": {"pk": {"S": "a"}}}\n{"Item": {"pk": {"S": "b"}}}\n')
    columns.write_text("pk,n\na,1\n")

    def ways(source: Path, *options: str, write: str = "1200") -> list[str]:
        done = stage.run("load", "native", "--write", write, "--from", str(source), "--dry-run", *options)
        assert done[0] == 0
        return [line for line in done[1].splitlines() if "aws dynamodb" in line]

    new = "the table is empty: an import from S3, which makes a new table, consumes no capacity: aws dynamodb "
    bulk = (
        "DynamoDB can write such a file from S3 itself, at a rate that you limit: aws dynamodb start-bulk-put-items "
        "--max-write-request-units 1200"
    )
    assert ways(typed) == [f"{new}import-table --input-format DYNAMODB_JSON", bulk]
    assert ways(typed, write="1023") == [f"{new}import-table --input-format DYNAMODB_JSON"]
    assert ways(columns) == [f"{new}import-table --input-format CSV"]
    assert ways(columns, "--number", "n") == []
    assert stage.run("load", "native", "--write", "1200", "--from", str(typed))[0] == 0
    assert ways(typed) == [bulk]
    assert ways(columns) == []


def test_plan_names_what_dynamodb_would_not_take(stage: Stage, tmp_path: Path) -> None:
    stage.make("unplanned")
    path = tmp_path / "orders.jsonl"
    large = json.dumps({"pk": "large", "x": "y" * 409_600})
    path.write_text(f'{{"pk": "a"}}\n[5]\n{{"key": "no pk"}}\n{large}\n' + "nothing\n" * 9)
    status, said, told = stage.run("load", "unplanned", "--write", "500", "--from", str(path), "--dry-run")
    assert status == 1
    assert said.startswith("unplanned: 1 items, 3 bytes\nwrite units: 1 of the table")
    assert told.splitlines() == [
        "orders.jsonl, line 2: would be rejected: the line is no JSON object",
        "orders.jsonl, line 3: would be rejected: the item has no pk, a key of the table",
        "orders.jsonl, line 4: would be rejected: the item has 409,608 bytes; allowed: 409,600 (400 KB)",
        *(f"orders.jsonl, line {number}: would be rejected: the line is no JSON" for number in range(5, 12)),
        "2 more items would be rejected",
    ]
    assert stage.items("unplanned") == []
    assert not path.with_name("orders.jsonl.load").exists()


def test_items_that_are_not_in_dynamodbs_form_are_rejected_and_the_rest_is_put(stage: Stage, tmp_path: Path) -> None:
    stage.make("formless")
    path, rejects = tmp_path / "orders.jsonl", tmp_path / "rejects.jsonl"
    lines = [
        '{"pk": "a", "n": 1e400}',
        '{"Item": {"pk": {"S": null}}}',
        '{"Item": {"pk": {"S": "b"}, "n": {"X": "1"}}}',
        '{"Item": {"pk": {"N": "many"}}}',
        *(
            '{"Item": {"pk": {"S": "c"}, "deep": ' + '{"L": [' * levels + '{"S": "core"}' + "]}" * levels + "}}"
            for levels in (41, 200, 400, 2_000)
        ),
        '{"pk": "d"}',
    ]
    path.write_text("\n".join(lines))
    arguments = ("load", "formless", "--write", "500", "--from", str(path), "--rejects", str(rejects))
    status, _, told = stage.run(*arguments)
    assert (status, told) == (
        1,
        f"1 items put, 1.0 write units consumed\n8 items rejected, with the reasons in {rejects}\n",
    )
    found = [json.loads(line) for line in rejects.read_text().splitlines()]
    assert [each["at"] for each in found] == [f"orders.jsonl, line {number}" for number in range(1, 9)]
    assert found[0]["why"] == "a number has more than 38 digits, or is beyond 1E+126 or below 1E-130"
    assert found[1]["why"].startswith("Parameter validation failed: Invalid type for parameter")
    assert found[2]["why"].startswith("Parameter validation failed: Unknown parameter")
    assert {each["why"] for each in found[4:]} == {"the item is nested too deeply; allowed: 32 levels"}
    assert [item["pk"]["S"] for item in stage.items("formless")] == ["d"]


def test_load_that_is_killed_goes_on_and_misses_nothing(stage: Stage, tmp_path: Path) -> None:
    stage.make("killed")
    path, place = tmp_path / "orders.jsonl.zst", tmp_path / "orders.jsonl.zst.load"
    path.write_bytes(zstandard.ZstdCompressor().compress(typed(2_500, _WIDE).encode()))
    # three units an item: blocks of 500 items
    with stage.command.start("load", "killed", "--write", "100", "--from", str(path)) as running:
        while not place.exists() or json.loads(place.read_text())["done"] == 0:
            assert running.poll() is None
        running.send_signal(signal.SIGKILL)
    done = json.loads(place.read_text())["done"]
    assert 0 < done < 2_500
    status, _, told = stage.run("load", "killed", "--write", "4000", "--from", str(path))
    assert (status, told) == (
        2,
        f"highwater load: {place}: an earlier load stopped here; go on with --resume, or delete it to begin anew\n",
    )
    status, said, _ = stage.run("load", "killed", "--write", "4000", "--from", str(path), "--resume", "--json")
    assert (status, json.loads(said)) == (0, {"items": 2_500, "units": 3.0 * (2_500 - done), "rejected": 0})
    assert len(stage.items("killed")) == 2_500
    assert not place.exists()


def test_load_of_a_file_that_has_changed_is_not_resumed(stage: Stage, tmp_path: Path) -> None:
    stage.make("changed")
    path, place = tmp_path / "orders.jsonl", tmp_path / "orders.jsonl.load"
    # blocks of a hundred items; the last line is no item
    path.write_text(typed(150, _WIDE) + '{"pk": 1e9999999999999999999}\n')
    status, _, told = stage.run("load", "changed", "--write", "60", "--from", str(path))
    assert status == 1
    assert told.startswith(
        "highwater load: orders.jsonl, line 151: the line has a number that DynamoDB cannot represent;"
    )
    done = json.loads(place.read_text())["done"]
    assert 0 < done <= 150
    whole = path.read_text().splitlines(keepends=True)
    path.write_text("".join(['{"pk": "new"}\n', *whole[:-1]]))
    status, _, told = stage.run("load", "changed", "--write", "4000", "--from", str(path), "--resume")
    why = f"is of other actions: the first {done} are not those that are through; give the same ones, or another file"
    assert (status, told) == (1, f"highwater load: checkpoint {place}: {why}; go on with --resume\n")
    # the line that was wrong may be mended
    path.write_text("".join([*whole[:-1], '{"pk": "mended"}\n']))
    assert stage.run("load", "changed", "--write", "4000", "--from", str(path), "--resume")[0] == 0
    assert len(stage.items("changed")) == 151


def test_load_that_is_interrupted_ends_between_two_blocks(stage: Stage, tmp_path: Path) -> None:
    stage.make("stopped")
    path, place = tmp_path / "orders.jsonl", tmp_path / "orders.jsonl.load"
    path.write_text(typed(2_500, _WIDE))
    with stage.command.start("load", "stopped", "--write", "300", "--from", str(path)) as running:
        while not place.exists() or json.loads(place.read_text())["done"] == 0:
            assert running.poll() is None
        running.send_signal(signal.SIGTERM)
        _, told = running.communicate(timeout=120)
    assert (running.returncode, told) == (143, "highwater load: interrupted; go on with --resume\n")
    done = json.loads(place.read_text())["done"]
    assert len(stage.items("stopped")) == done < 2_500
    assert stage.run("load", "stopped", "--write", "4000", "--from", str(path), "--resume")[0] == 0
    assert len(stage.items("stopped")) == 2_500


def test_misuse_is_told_in_a_line(stage: Stage, tmp_path: Path) -> None:
    stage.make("misused", units=5)
    rows, binary, empty = tmp_path / "a.csv", tmp_path / "a.jsonl", tmp_path / "empty"
    rows.write_text("pk,n\na,1\n")
    binary.write_bytes(b"\xff\xfe\x00")
    empty.mkdir()
    twice, broken = tmp_path / "twice.csv", tmp_path / "broken.csv"
    twice.write_text("pk,n,n\na,1,2\n")
    broken.write_text('"pk"x,n\na,1\n')
    missing = tmp_path / "missing.jsonl"
    for arguments, told in (
        (("others", "--from", str(rows)), "write: there is no table 'others' in us-east-1; give its name and region"),
        (("misused", "--from", str(missing)), f"{missing}: cannot be read: No such file or directory"),
        (("misused", "--from", str(binary)), f"{binary}: is no text in UTF-8"),
        (
            ("misused", "--from", str(empty)),
            f"{empty}: has no data/*.json.gz, as an export of DynamoDB has; give a file, or such a folder",
        ),
        (
            ("misused", "--from", str(twice)),
            "twice.csv: has column n more than once; give each column its own name",
        ),
        (("misused", "--from", str(broken)), "broken.csv, line 1: is no CSV: ',' expected after '\"'"),
        (("misused", "--from", str(rows), "--number", "m"), "a.csv: has no column m; its columns: pk, n"),
        (("misused", "--from", "-", "--resume"), "--resume goes on with a file; standard input cannot be read again"),
    ):
        assert stage.run("load", *arguments, "--write", "5") == (2, "", f"highwater load: {told}\n")
        for place in tmp_path.glob("*.load"):
            place.unlink()
    assert stage.run("load", "misused", "--write", "0", "--from", str(rows))[::2] == (
        2,
        "highwater load: write rate: got 0, allowed: 0.001 or more units per second\n",
    )
    assert stage.run("load", "misused", "--write", "5x", "--from", str(rows))[::2] == (
        2,
        "highwater load: Invalid value for '--write': '5x' is no rate; write units per second, such as 200, or a share "
        "such as 30%\n",
    )
    assert stage.items("misused") == []


def test_budget_is_kept_where_the_table_has_less(stage: Stage, tmp_path: Path) -> None:
    """The table throttles at five units a second after its burst; nothing is lost."""
    stage.make("small", units=5)
    path = tmp_path / "orders.jsonl"
    path.write_text(typed(400, _WIDE))
    stage.cloud.run_at(20)
    try:
        status, said, told = stage.run("load", "small", "--write", "400", "--from", str(path), "--json")
    finally:
        stage.cloud.run_at(1)
    assert (status, json.loads(said)["items"]) == (0, 400), told
    assert len(stage.items("small")) == 400
