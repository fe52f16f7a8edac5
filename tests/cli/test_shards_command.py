"""`highwater shards`: the keys of a trace that need shards, and traces that cannot be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from highwater.core import Dimension
from highwater.core.findings import shown
from highwater.shards.key_log import KeyLine
from tests.command import Command, refused

FORM = "timestamp,key,units, such as 2026-12-01T12:00:00Z,TENANT#1,1; or one key a line, with --seconds"


def _trace(folder: Path, *lines: str) -> str:
    path = folder / "trace.csv"
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)


LINES = (
    "timestamp,key,units",
    "2026-12-01T12:00:01Z,TENANT#1,900",
    "2026-12-01T12:00:00Z,TENANT#1,2500",
    "2026-12-01T14:00:00.5+02:00,TENANT#1,2500.5",
    "1796126400,TENANT#2,600",
    '1796126400.9,"a,b",12',
)


NOTE = (
    "  several shards may be in one partition until DynamoDB splits it; where these minutes matter, take twice as many"
)


def test_busiest_second_of_each_key_says_how_many_shards_it_needs(command: Command, tmp_path: Path) -> None:
    done = command("shards", "orders", "--trace", _trace(tmp_path, *LINES))
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines() == [
        "orders: 2 of 3 keys need shards for their writes (1,000 units/s less 50 % each)",
        "  TENANT#1: 11 shards, for 5,000 units/s at 2026-12-01T12:00:00Z",
        "  TENANT#2: 2 shards, for 600 units/s at 2026-12-01T12:00:00Z",
        NOTE,
    ]


def test_reads_have_more_room_and_headroom_is_yours(command: Command, tmp_path: Path) -> None:
    done = command("shards", "orders", "--trace", _trace(tmp_path, *LINES), "--reads", "--headroom", "10", "--json")
    assert (done.returncode, done.stderr) == (1, "")
    assert json.loads(done.stdout) == {
        "table": "orders",
        "dimension": "read",
        "partition_units": 3_000,
        "headroom_percent": 10,
        "keys_seen": 3,
        "keys": [{"key": "TENANT#1", "units_per_second": 5_000.5, "at": "2026-12-01T12:00:00Z", "shards": 2}],
    }


def test_keys_without_times_have_a_mean(command: Command) -> None:
    given = "TENANT#1\n" * 2_000 + "a,b\n" * 3
    done = command("shards", "orders", "--trace", "-", "--seconds", "2", given=given)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines() == [
        "orders: 1 of 2 keys needs shards for their writes (1,000 units/s less 50 % each)",
        "  TENANT#1: 2 shards, for 1,000 units/s on average",
        NOTE,
    ]


def test_calm_trace_is_no_finding(command: Command, tmp_path: Path) -> None:
    done = command("shards", "orders", "--trace", _trace(tmp_path, "1796126400,TENANT#2,400", "1796126400,b,2"))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "orders: none of 2 keys needs shards for its writes (1,000 units/s less 50 % each); the busiest is TENANT#2 "
        "with 400\n"
    )
    empty = command("shards", "orders", "--trace", "-", given="\n")
    assert empty.stdout == "orders: none of 0 keys needs shards for its writes (1,000 units/s less 50 % each)\n"


def test_many_keys_are_shown_in_part(command: Command) -> None:
    given = "".join(f"1796126400,k{number:02d},{900 - number}\n" for number in range(52))
    lines = command("shards", "orders", "--trace", "-", given=given).stdout.splitlines()
    assert len(lines) == 53
    assert lines[-2:] == ["  and 2 more; all of them: --json", NOTE]


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("TENANT#1", "TENANT#1"),
        ("1796126400,TENANT#1", "1796126400,TENANT#1"),
        ("noon,TENANT#1,1", "noon"),
        ("nan,TENANT#1,1", "nan"),
        ("1796126400,TENANT#1,many", "many"),
        ("1796126400,TENANT#1,-1", "-1"),
        ("1796126400,TENANT#1,inf", "inf"),
        ("1796126400000,TENANT#1,1", "1796126400000"),
    ],
)
def test_line_that_cannot_be_read_is_named(command: Command, line: str, wrong: str) -> None:
    done = command("shards", "orders", "--trace", "-", given=f"1796126400,TENANT#1,1\n{line}\n")
    assert refused(done) == f"highwater: trace -, line 2: got {wrong!r}, allowed: {FORM}"


def test_trace_is_asked_for(command: Command) -> None:
    assert refused(command("shards", "orders", "--trace", "none.csv")) == (
        "highwater shards: Invalid value for '--trace': File 'none.csv' does not exist."
    )


REPORT = {
    "KeyLabels": ["pk"],
    "AggregationStatistic": "Sum",
    "AggregateValue": 75_000.0,
    "Contributors": [
        {
            "Keys": ["TENANT#1"],
            "ApproximateAggregateValue": 74_400.0,
            "Datapoints": [
                {"Timestamp": "2026-12-01T12:00:00+00:00", "ApproximateValue": 14_400.0},
                {"Timestamp": "2026-12-01T12:01:00+00:00", "ApproximateValue": 60_000.0},
            ],
        },
        {
            "Keys": ["TENANT#2"],
            "ApproximateAggregateValue": 600.0,
            "Datapoints": [{"Timestamp": 1796126400, "ApproximateValue": 600.0}],
        },
        {"Keys": ["TENANT#3"], "ApproximateAggregateValue": 0.0, "Datapoints": []},
    ],
}


def test_throttled_keys_of_a_report_come_on_top_of_what_a_partition_serves(command: Command, tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text(json.dumps(REPORT))
    done = command("shards", "orders", "--report", "report.json", "--units", "1.5")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines() == [
        "orders: 2 of 2 keys need shards for their writes (1,000 units/s less 50 % each)",
        # 1,000 and 1,000 times 1.5; 1,000 and 10 times 1.5
        "  TENANT#1: 5 shards, for 2,500 units/s at 2026-12-01T12:01:00Z",
        "  TENANT#2: 3 shards, for 1,015 units/s at 2026-12-01T12:00:00Z",
        NOTE,
    ]


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "7",
        "{",
        '{"Contributors": [{"Keys": ["a"], "Datapoints": [{"Timestamp": "noon", "ApproximateValue": 1}]}]}',
        '{"Contributors": [{"Keys": ["a"], "Datapoints": [{"Timestamp": 9, "ApproximateValue": -1}]}]}',
    ],
)
def test_report_of_another_form_is_refused(command: Command, tmp_path: Path, text: str) -> None:
    (tmp_path / "report.json").write_text(text)
    said = refused(command("shards", "orders", "--report", "report.json"))
    assert said == (
        f"highwater: report report.json: got {shown(text)}, allowed: JSON of `aws cloudwatch get-insight-rule-report`: "
        "Contributors with Keys and Datapoints"
    )


def _logged(minute: int, key_hash: str, units: float, throttled: int = 0, **more: Any) -> str:
    line: dict[str, Any] = {
        "dimension": Dimension.WRITE,
        "secret": "5ec4e7ab",
        "region": "eu-central-1",
        "table": "orders",
    } | more
    numbers = {"units": units, "units_error": 3.5, "table_units": 90_000.0}
    counts = {"throttled": throttled, "key_range_throttled": throttled // 2}
    return KeyLine(minute=f"2026-12-01T12:{minute:02}:00Z", key_hash=key_hash, **line | numbers | counts).text()


LOGGED = [
    # two processes in one minute, of which one was throttled
    _logged(0, "3fa94d0c11de6a52", 48_000.0),
    _logged(0, "3fa94d0c11de6a52", 12_000.0, 6_000),
    _logged(1, "3fa94d0c11de6a52", 30_000.0),
    _logged(1, "77b0c2a9e1f40d38", 600.0),
    # in another region, with partitions of its own
    _logged(0, "3fa94d0c11de6a52", 60_000.0, region="eu-west-1"),
    _logged(0, "3fa94d0c11de6a52", 900_000.0, dimension=Dimension.READ),
    _logged(0, "3fa94d0c11de6a52", 900_000.0, table="carts"),
]


@pytest.mark.parametrize(
    "log",
    [
        "".join(f"[INFO]\t2026-12-01T12:02:00.123Z\t5c1e\t{line}\t\n" for line in ("START", *LOGGED)),
        "".join(f"{line}\n" for line in LOGGED),
        "".join(json.dumps({"level": "INFO", "message": line, "logger": "highwater.keys"}) + "\n" for line in LOGGED),
        json.dumps({"events": [{"timestamp": 1796126520123, "message": f"{line}\n"} for line in LOGGED]}, indent=4),
        json.dumps({"events": [{"timestamp": 1796126520123, "message": "".join(f"{line}\n" for line in LOGGED)}]}),
        json.dumps([json.loads(line) for line in LOGGED]),
    ],
    ids=[
        "lambda as text",
        "plain",
        "lambda as JSON",
        "aws logs filter-log-events",
        "several lines an event",
        "objects",
    ],
)
def test_lines_of_all_processes_are_added_up_by_minute(command: Command, log: str) -> None:
    done = command("shards", "orders", "--log", "-", "--units", "2", given=log)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines() == [
        "orders: 1 of 2 keys needs shards for their writes (1,000 units/s less 50 % each)",
        # 60,000 units and 6,000 throttled requests of two units, by 60 seconds
        "  3fa94d0c11de6a52: 3 shards, for 1,200 units/s at 2026-12-01T12:00:00Z",
        NOTE,
    ]


def test_log_of_a_calm_table_is_no_finding(command: Command) -> None:
    done = command("shards", "users", "--log", "-", "--json", given="\n".join(LOGGED))
    assert (done.returncode, done.stderr) == (0, "")
    assert {name: json.loads(done.stdout)[name] for name in ("keys_seen", "keys", "secrets")} == {
        "keys_seen": 0,
        "keys": [],
        "secrets": 0,
    }


def test_hashes_with_several_secrets_are_not_added_up_and_keys_by_name_are(command: Command) -> None:
    log = [
        _logged(0, "3fa94d0c11de6a52", 48_000.0),
        _logged(0, "d01e77aa52c3bb90", 48_060.0, secret="0a1b2c3d"),
        *(_logged(0, "", units, key="TENANT#1", secret="") for units in (60_000.0, 60_060.0)),
    ]
    done = command("shards", "orders", "--log", "-", given="\n".join(log))
    assert done.stdout.splitlines() == [
        "orders: 3 of 3 keys need shards for their writes (1,000 units/s less 50 % each)",
        "  TENANT#1: 5 shards, for 2,001 units/s at 2026-12-01T12:00:00Z",
        "  d01e77aa52c3bb90: 2 shards, for 801 units/s at 2026-12-01T12:00:00Z",
        "  3fa94d0c11de6a52: 2 shards, for 800 units/s at 2026-12-01T12:00:00Z",
        NOTE,
        "  the hashes are made with 2 secrets, and a key has another hash with each: its units are not added up; give "
        "all processes one, count_keys(..., secret=...)",
    ]


@pytest.mark.parametrize(
    "log",
    [
        "",
        "hot-key\n",
        LOGGED[0][:-9],
        LOGGED[0].replace("48000.0", "NaN"),
        LOGGED[0].replace("48000.0", "-1"),
        LOGGED[0].replace("48000.0", "1e400"),
        LOGGED[0].replace("48000.0", "9" * 400),
        LOGGED[0].replace('"write"', '"scan"'),
        LOGGED[0].replace("12:00:00Z", "noon"),
        LOGGED[0].replace('"units"', '"unit"'),
    ],
)
def test_log_without_lines_of_keys_is_refused(command: Command, log: str) -> None:
    assert refused(command("shards", "orders", "--log", "-", given=log)) == (
        "highwater: log -: got no line of the logger highwater.keys, allowed: lines that highwater.shards.count_keys "
        "has logged, such as the answer of `aws logs filter-log-events`; set that logger's level to INFO"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give the requests with exactly one of --trace FILE, --report FILE and --log FILE"),
        (
            ("--trace", "-", "--report", "-"),
            "give the requests with exactly one of --trace FILE, --report FILE and --log FILE",
        ),
        (
            ("--trace", "-", "--units", "2"),
            "--units is of --report and --log, as a trace has the units of each request; remove it",
        ),
        (("--report", "-", "--seconds", "2"), "--seconds is of --trace, as reports and logs have times; remove it"),
    ],
)
def test_options_of_the_other_source_are_refused(command: Command, arguments: tuple[str, ...], message: str) -> None:
    assert refused(command("shards", "orders", *arguments)) == f"highwater shards: {message}"
