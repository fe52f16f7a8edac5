"""`highwater explain`, `status`, `pause` and `resume` against the local cloud, run as commands."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from highwater.core import Capacity, Dimension, Plan, Window
from highwater.core.names import TargetName, plan_parameter
from tests.command import Command
from tests.handlers.stage import Stage
from tests.memory_aws.stage import MINUTE, PLAN

pytestmark = pytest.mark.xdist_group("cloud-scaler")


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]


def test_explain_tells_plan_relief_demand_and_what_comes_next(stage: Stage, highwater: Command) -> None:
    window = Window.daily("nightly", start="03:10", end="04:00", timezone="UTC", write_min=333)
    table = stage.table(Plan(read=PLAN.read, write=PLAN.write, windows=(window,)))
    now = stage.now()
    noon = now.replace(hour=12, minute=0, second=0)
    stage.cloud.advance(noon - now)
    stage.write(table, 30)
    stage.cloud.advance(4 * MINUTE - timedelta(seconds=30))
    stage.register(TargetName(table, None, Dimension.WRITE), 88, 400)
    done = highwater("explain", table)
    assert (done.returncode, done.stderr) == (0, "")
    lines = _lines(done.stdout)
    write = lines[lines.index(f"{table}, table write") :]
    assert write[1].startswith("  provisioned: 88 units/s at ")
    assert write[2:6] == [
        "  used: 49 units/s, 56 % of it; no requests were throttled in the last hour",
        "  the plan asks for a floor of 12 and a ceiling of 400",
        "  the live floor is 88, 76 of it relief; the live ceiling 400",
        "  high-water mark: 88 units/s, below the 333 of the plan: deploy again",
    ]
    assert write[6] == ("  demand asks for 70: peak of 49 units/s in the last 7 minutes at 70 %, headroom after 1 jump")
    assert "  the scaler's next run sets 70 instead of 88" in write
    assert write[-2] == "  decreases today: 0, 4 left at any time, then one an hour"
    assert write[-1].startswith("  next change by the plan: ")
    assert write[-1].endswith(" 03:05 UTC: floor 333, ceiling 400")
    assert stage.bounds(table) == (88, 400), "it changes nothing"


def test_explain_shows_the_last_decisions_from_the_log(stage: Stage, highwater: Command) -> None:
    table = stage.table()
    logs = stage.client("logs")
    group = {"logGroupName": "/highwater/scaler/Shop-Scaler", "logStreamName": "one"}
    logs.create_log_group(logGroupName=group["logGroupName"])
    logs.create_log_stream(**group)
    at = int(stage.now().timestamp() * 1000) - 3_600_000

    def told(name: str, target: str, current: int, granted: int, **more: Any) -> str:
        decision = {"table": name, "target": target, "current": current, "granted": granted, "reason": "peak of 40"}
        decision |= more
        return json.dumps({"level": "INFO", "message": "decision", "decision": decision})

    limits = [{"code": "boost", "before": 1, "after": 1_900, "sentence": "boosts of 1,899 units/s"}]
    messages = [
        "START RequestId: 1",
        told(table, "table write", 11, 12),
        told("others", "table write", 13, 14),
        told(table, "table write", 15, 16),
        '{"message": "decision"}',
        told(table, "table write", 17, 17),
        told(table, "table write", 17, 1_900, wanted=1, limits=limits),
        told(table, "table read", 21, 22),
    ]
    logs.put_log_events(
        **group, logEvents=[{"timestamp": at + 1000 * n, "message": text} for n, text in enumerate(messages)]
    )
    lines = _lines(highwater("explain", table).stdout)
    decided = [line.split(" UTC: ")[1] for line in lines if line.startswith("  decided at ")]
    assert decided == [
        "21 to 22, peak of 40",
        "15 to 16, peak of 40",
        "kept at 17, peak of 40",
        "17 to 1,900, boosts of 1,899 units/s; otherwise 1: peak of 40",
    ]
    document = json.loads(highwater("explain", table, "--json").stdout)
    assert [each["granted"] for each in document[1]["last_decisions"]] == [16, 17, 1_900]
    assert document[1]["last_decisions"][2]["limits"] == [
        {"before": 1, "after": 1_900, "sentence": "boosts of 1,899 units/s"}
    ]
    logs.delete_log_group(logGroupName=group["logGroupName"])


def test_explain_names_the_windows_that_are_open_and_no_others_of_the_same_floor(
    stage: Stage, highwater: Command
) -> None:
    begun = stage.now() - 20 * MINUTE
    windows = tuple(
        Window.once(
            name,
            start=f"{at:%Y-%m-%dT%H:%M}",
            end=f"{at + 60 * MINUTE:%Y-%m-%dT%H:%M}",
            timezone="UTC",
            write_min=floor,
        )
        for name, at, floor in (("load", begun, 333), ("sale", begun, 50), ("later", begun + 2880 * MINUTE, 333))
    )
    table = stage.table(Plan(read=PLAN.read, write=PLAN.write, windows=windows))
    line = "  the plan asks for a floor of 333 and a ceiling of 400, by window load, sale"
    assert line in _lines(highwater("explain", table).stdout)


def test_capacity_that_auto_scaling_could_not_set_is_told_with_its_reason(stage: Stage, highwater: Command) -> None:
    table = stage.table()
    stage.register(TargetName(table, None, Dimension.WRITE), 45_000, 50_000)
    why = (
        "UTC: Failed to set write capacity units to 45000. Reason: The requested WriteCapacityUnits, 45000, is above "
        "the per table maximum for the account in us-east-1. Per table maximum: 40000."
    )
    could_not = "auto scaling could not set the capacity at "
    explained = " ".join(highwater("explain", table).stdout.split())
    assert re.search(f"the live ceiling 50,000 {could_not}[-0-9: ]+{re.escape(why)} high-water mark", explained)
    listed = " ".join(highwater("status").stdout.split())
    capacity = f"{table}: 7 RCU, 12 of 45,000 WCU by demand"
    assert re.search(f"{capacity}; table write: {could_not}[-0-9: ]+{re.escape(why)};", listed)
    told = {each["target"]: each["failure"] for each in json.loads(highwater("status", "--json").stdout)}
    assert (told["table read"], told["table write"][-len(why) :]) == ("", why)


def test_status_lists_every_target_and_says_it_to_machines(stage: Stage, highwater: Command) -> None:
    one, other = sorted([stage.table(), stage.table()])
    stage.register(TargetName(other, None, Dimension.READ), 25, 900)
    done = highwater("status")
    assert done.returncode == 0, done.stderr
    lines = _lines(done.stdout)
    assert lines[:4] == [
        f"{one}: 7 RCU and 12 WCU; nothing throttled in the last hour",
        f"{other}: 25 RCU by demand, 12 WCU; nothing throttled in the last hour",
        "",
        "Scaler scaler",
    ]
    assert lines[5].split() == [
        *("table", "target", "now", "used", "floor", "relief", "ceiling", "throttled", "lowered")
    ], "no change is to come, so there is no column for it"
    assert [line.split() for line in lines[6:] if "orders-" in line] == [
        [one, "table", "read", "7", "0%", "7", "900", "0", "0"],
        [one, "table", "write", "12", "0%", "12", "400", "0", "0"],
        [other, "table", "read", "25", "0%", "25", "18", "900", "0", "0"],
        [other, "table", "write", "12", "0%", "12", "400", "0", "0"],
    ]
    told = json.loads(highwater("status", "--json").stdout)
    assert [(each["table"], each["target"], each["relief"]) for each in told][2] == (other, "table read", 18)


def test_paused_table_is_shown_so_and_resumed(stage: Stage, highwater: Command) -> None:
    table = stage.table()
    done = highwater("pause", table)
    assert (done.returncode, done.stdout) == (0, f"{table}: 2 targets paused\n")
    assert f"  paused: scaling is suspended; resume it with: highwater resume {table}" in _lines(
        highwater("explain", table).stdout
    )
    rows = [line.split() for line in highwater("status").stdout.splitlines() if table in line]
    assert " ".join(rows[0]) == f"{table}: 7 RCU and 12 WCU; paused; nothing throttled in the last hour"
    assert rows[1:] == [
        [table, "table", "read", "7", "0%", "7", "paused", "900", "0", "0"],
        [table, "table", "write", "12", "0%", "12", "paused", "400", "0", "0"],
    ]
    done = highwater("resume", table, "--json")
    assert json.loads(done.stdout) == {
        "table": table,
        "paused": False,
        "targets": [f"table/{table} read", f"table/{table} write"],
    }
    assert "paused" not in highwater("explain", table).stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("explain", "nowhere"),
            "highwater: no scaler manages a table 'nowhere' in this region; list the managed tables with: highwater "
            "status, or give --region\n",
        ),
        (
            ("pause", "nowhere"),
            "highwater: table 'nowhere' has no scalable target in this region; deploy the table first, or give its "
            "region with --region\n",
        ),
        (("resume",), "highwater resume: Missing argument 'TABLE'.\n"),
    ],
)
def test_misuse_is_one_line(highwater: Command, arguments: tuple[str, ...], message: str) -> None:
    done = highwater(*arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", message)


def test_misspelt_table_is_told_which_is_meant(stage: Stage, highwater: Command) -> None:
    table = stage.table()
    for name in ("explain", "pulses"):
        assert highwater(name, f"{table}s").stderr.endswith(f", or give --region; did you mean {table}?\n"), name
    assert highwater("pause", f"{table}s").stderr.endswith(f" with --region; did you mean {table}?\n")


def test_region_that_is_not_set_is_one_line(command: Command) -> None:
    done = command("pause", "orders")
    assert (done.returncode, done.stderr) == (
        2,
        "highwater: no region is set; give --region, or set AWS_REGION\n",
    )


def test_status_without_any_plan_says_so(highwater: Command) -> None:
    assert highwater("status").stdout == "no scaler manages a table in this region\n"


def test_table_that_tags_choose_is_listed_and_explained_with_its_indexes(stage: Stage, highwater: Command) -> None:
    table = stage.table(plan=None)
    stage.add_index(table, "by-day")
    stage.tag(table, managed="floor", read_min="7", read_max="900", write_min="21", write_max="500")
    stage.register(TargetName(table, "by-day", Dimension.WRITE), 4, 400)
    done = highwater("status")
    assert (done.returncode, done.stderr) == (0, "")
    rows = [line.split()[:-5] for line in done.stdout.splitlines() if table in line]
    assert rows[1:] == [
        [table, "table", "read", "7"],
        [table, "table", "write", "12"],
        [table, "index", "'by-day'", "read", "3"],
        [table, "index", "'by-day'", "write", "4"],
    ]
    assert "Tables chosen by tags" in done.stdout
    lines = _lines(highwater("explain", table).stdout)
    assert "  the scaler's next run sets 21 instead of 4" in lines


def test_table_of_another_region_is_paused_as_explain_names_it(stage: Stage, highwater: Command) -> None:
    dublin = stage.elsewhere("eu-west-1")
    table = dublin.table()
    label = f"eu-west-1/{table}"
    assert f"{label}, table write" in _lines(highwater("explain", label).stdout)
    done = highwater("pause", label)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{label}: 2 targets paused\n", "")
    assert f"  paused: scaling is suspended; resume it with: highwater resume {label}" in _lines(
        highwater("explain", label).stdout
    )
    assert highwater("resume", table, "--region", "eu-west-1").stdout == f"{table}: 2 targets resumed\n"
    dublin.forget()


def test_direct_table_cannot_be_paused_and_is_told_what_to_do(stage: Stage, highwater: Command) -> None:
    table = stage.table(mode="direct")
    done = highwater("pause", table)
    assert (done.returncode, done.stderr) == (
        2,
        f"highwater: table '{table}' is in DIRECT mode, which has no scalable target to suspend; set dry_run=True on "
        "its scaler, or remove the call of add_direct_table, and deploy\n",
    )


@pytest.mark.parametrize("columns", [80, 79, 74])
def test_status_has_a_line_for_each_target_on_a_narrow_terminal(stage: Stage, highwater: Command, columns: int) -> None:
    """26: 80 columns, and bounds of seven digits; names are cut before numbers and times."""
    window = Window.daily("nightly", start="03:10", end="04:00", timezone="UTC", write_min=3_333_333)
    big = Capacity.autoscaled(min_capacity=1_234_567, max_capacity=4_000_000)
    plan = Plan(read=big, write=big, windows=(window,), table_quota_units=5_000_000)
    table = stage.table(plan)
    stage.register(TargetName(table, None, Dimension.WRITE), 3_000_000, 4_000_000)
    done = highwater("status", COLUMNS=str(columns))
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line for line in _lines(done.stdout) if line]
    assert max(map(len, lines)) <= columns
    assert len([line for line in lines if line.startswith(" orde")]) == 2
    write, left_out = lines[-2].split(), lines[-1]
    assert left_out == "left out for width: lowered, throttled" + (", used" if columns < 80 else "")
    assert write[-1] == "03:05"
    assert [each for each in write if "," in each] == ["3,000,000", "1,765,433", "4,000,000"]


@pytest.mark.parametrize(
    ("hour", "expected"),
    [
        (12, " 21:35 UTC (03:05 in Asia/Kolkata): floor 333, ceiling 400"),
        (22, " 22:30 UTC (04:00 in Asia/Kolkata, 07:30 in Asia/Tokyo): floor 222, ceiling 400"),
        (23, " 23:45 UTC (08:45 in Asia/Tokyo): floor 12, ceiling 400"),
    ],
)
def test_explain_tells_a_change_in_the_zones_of_the_windows_that_open_or_close_then(
    stage: Stage, highwater: Command, hour: int, expected: str
) -> None:
    """26: who declared a window thinks in its zone; two of these have no summer time."""
    now = stage.cloud.status().now
    stage.cloud.advance((now + 1440 * MINUTE).replace(hour=hour, minute=0, second=0) - now)
    windows = (
        Window.daily("nightly", start="03:10", end="04:00", timezone="Asia/Kolkata", write_min=333),
        Window.daily("early", start="07:35", end="08:45", timezone="Asia/Tokyo", write_min=222),
        Window.daily("late", start="18:00", end="18:30", timezone="UTC", write_min=111),
    )
    table = stage.table(Plan(read=PLAN.read, write=PLAN.write, windows=windows))
    if hour == 12:
        # the window in UTC comes first, and a time in UTC is not told twice
        assert _lines(highwater("explain", table).stdout)[-1].endswith(" 17:55 UTC: floor 111, ceiling 400")
        stage.cloud.advance(420 * MINUTE)
    assert _lines(highwater("explain", table).stdout)[-1].endswith(expected)


def test_floor_that_was_left_when_a_table_was_paused_is_no_relief(stage: Stage, highwater: Command) -> None:
    """26: nothing holds it for demand."""
    table = stage.table()
    stage.register(TargetName(table, None, Dimension.WRITE), 88, 400)
    highwater("pause", table)
    assert "  the live floor is 88; the live ceiling 400" in _lines(highwater("explain", table).stdout)


def test_region_of_the_environment_counts_in_either_variable(stage: Stage, highwater: Command) -> None:
    """26: boto3 itself does not know AWS_REGION."""
    dublin = stage.elsewhere("eu-west-1")
    table = dublin.table(plan=None)
    dublin.register(TargetName(table, None, Dimension.WRITE), 12, 400)
    done = highwater("pause", table, AWS_REGION="eu-west-1")
    assert (done.returncode, done.stdout) == (0, f"{table}: 1 targets paused\n")
    assert highwater("resume", table, "--region", "us-east-1", AWS_REGION="eu-west-1").returncode == 2
    dublin.forget()


def test_profile_is_used_before_credentials_of_the_environment(
    stage: Stage, highwater: Command, tmp_path: Path
) -> None:
    """26."""
    config = tmp_path / "config"
    config.write_text("[profile shop]\nregion = eu-west-1\naws_access_key_id = a\naws_secret_access_key = b\n")
    table = stage.table()
    variables: dict[str, Any] = {"AWS_CONFIG_FILE": str(config), "AWS_REGION": None, "AWS_DEFAULT_REGION": None}
    done = highwater("explain", table, "--profile", "shop", **variables)
    assert done.returncode == 2, "the profile's region has no such table"
    done = highwater("explain", table, "--profile", "shop", "--region", "us-east-1", **variables)
    assert (done.returncode, done.stderr) == (0, "")
    done = highwater("explain", table, "--profile", "shoop", **variables)
    assert (done.returncode, done.stderr) == (
        2,
        "highwater explain: Invalid value for '--profile': no profile 'shoop' in your AWS configuration; list them "
        "with: aws configure list-profiles\n",
    )


def test_missing_table_is_shown_with_all_others_and_is_a_finding(stage: Stage, highwater: Command) -> None:
    there, gone = sorted([stage.table(), stage.table()])
    stage.client("dynamodb").delete_table(TableName=gone)
    done = highwater("status")
    assert (done.returncode, done.stderr) == (1, "")
    lines = _lines(done.stdout)
    assert lines[:2] == [
        f"{there}: 7 RCU and 12 WCU; nothing throttled in the last hour",
        f"{gone}: no such table in us-east-1, but scaler scaler manages it; deploy its stack again, or remove it from "
        "the scaler",
    ]
    assert [line.split() for line in lines[3:] if gone in line] == [[gone, "no", "such", "table", "in", "us-east-1"]]
    assert [line.split()[1:3] for line in lines[3:] if there in line] == [["table", "read"], ["table", "write"]]
    done = highwater("status", "--json")
    told = json.loads(done.stdout)
    assert (done.returncode, [each["table"] for each in told]) == (1, [there, there, gone])
    assert told[2] == {
        "table": gone,
        "region": "us-east-1",
        "scaler": "scaler",
        "problem": "no such table in us-east-1",
    }
    done = highwater("explain", gone)
    assert (done.returncode, done.stdout, done.stderr) == (1, lines[1] + "\n", "")
    stage.made.remove(gone)
    stage.client("ssm").delete_parameter(Name=plan_parameter("scaler", gone))


def test_index_that_no_plan_has_is_shown_as_not_managed(stage: Stage, highwater: Command) -> None:
    table = stage.table()
    stage.add_index(table, "by-date")
    line = f"index by-date of {table} is not managed: its capacity is 3 RCU and 4 WCU; name it in indexes="
    assert _lines(highwater("explain", table).stdout)[-1] == line
    done = highwater("status")
    assert (done.returncode, done.stderr) == (0, "")
    lines = _lines(done.stdout)
    assert lines[1] == line
    assert [each.split() for each in lines if "'by-date'" in each] == [
        [table, "index", "'by-date'", "read", "3", "none"],
        [table, "index", "'by-date'", "write", "4", "none"],
    ]
    assert json.loads(highwater("status", "--json").stdout)[2] == {
        "table": table,
        "region": "us-east-1",
        "scaler": "scaler",
        "target": "index 'by-date'",
        "provisioned": {"read": 3, "write": 4},
        "problem": line,
    }


def test_status_has_its_full_width_in_a_pipe(stage: Stage, highwater: Command) -> None:
    names = [f"a-window-with-a-rather-long-name-{number}" for number in range(4)]
    begun = stage.now() - 20 * MINUTE
    start, end = f"{begun:%Y-%m-%dT%H:%M}", f"{begun + 60 * MINUTE:%Y-%m-%dT%H:%M}"
    windows = tuple(Window.once(name, start=start, end=end, timezone="UTC", write_min=333) for name in names)
    table = stage.table(Plan(read=PLAN.read, write=PLAN.write, windows=windows))
    lines = _lines(highwater("status", COLUMNS=None).stdout)
    assert lines[0].startswith(f"{table}: 7 RCU, 12 WCU below the 333 of window {', '.join(names)} until ")
    assert [line for line in lines if line][-1].endswith(", ".join(names))
