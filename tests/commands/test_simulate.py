"""`highwater simulate` as people and machines use it: what it prints and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from highwater_lab.services.timing import Timing
from tests.command import Command, refused

FILES = Path(__file__).parents[1] / "template" / "files"
HAND = (str(FILES / "by_hand.yaml"), "--parameter", "WriteCeiling=9000")


def test_summary_is_short_and_says_what_to_do(command: Command) -> None:
    done = command("simulate", *HAND, "--scenario", "step", "--compare", "native:50,clairvoyant")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "Orders under step: 240 minutes from Mon 2026-11-02 00:00 UTC, 1,750 units/s on average"
    assert [word for line in lines for word in line.split()[:1]].count("native:50") == 1
    assert any(line.startswith("worst minute: Mon 2026-11-02 01:") for line in lines)
    assert any(line.startswith("cause: index, ") for line in lines)
    assert "raise the capacity, or have auto scaling scale it" in " ".join(lines)
    assert len(lines) < 15


def test_figures_are_whole_in_a_pipe_whatever_the_names_of_policies(command: Command) -> None:
    options = ("simulate", *HAND, "--scenario", "step", "--compare", "highwater-floor-pulse,clairvoyant")
    shown, document = command(*options).stdout, json.loads(command(*options, "--json").stdout)
    assert "\N{HORIZONTAL ELLIPSIS}" not in shown
    for run in document["runs"]:
        assert f" {run['cost_per_month_usd']:,.2f} " in shown


def test_one_of_several_tables_is_chosen_by_the_end_of_its_path(command: Command) -> None:
    assembly = str(FILES.parent / "corpus" / "capacity-in-another-stack" / "assembly")
    done = command("simulate", assembly, "--scenario", "step", "--table", "Visits", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["table"] == "Data/Visits"


def test_target_is_given_its_table(command: Command) -> None:
    template = str(FILES.parent / "corpus" / "table-of-an-import-left-open" / "template.json")
    options = ("simulate", template, "--scenario", "step", "--table", "Orders")
    assert "say which table that is with --target Writes=Shop/Orders" in refused(command(*options))
    done = command(*options, "--target", "Writes=Shop/Orders", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["table"] == "Shop/Orders"


def test_prices_are_those_of_the_stacks_region_and_say_so(command: Command) -> None:
    world = str(FILES.parent / "corpus" / "global-table" / "assembly")
    done = command("simulate", world, "--scenario", "step", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert document["prices_region"] == "eu-west-1"
    text = command("simulate", world, "--scenario", "step", "--price-region", "us-east-2").stdout
    assert f"\nprices of us-east-2, {document['prices_dated']}\n" in text


def _rates() -> str:
    lines = ["Region,Service Code,Usage Type,On-Demand Rate"]
    for number, usage in enumerate(
        ("WriteCapacityUnit-Hrs", "ReadCapacityUnit-Hrs", "WriteRequestUnits", "ReadRequestUnits")
    ):
        lines += [f"eu-north-1,AmazonDynamoDB,EUN1-{kind}{usage},0.000{number + 3}" for kind in ("", "IA-")]
        lines += [f"us-east-1,AmazonDynamoDB,{kind}{usage},0.001" for kind in ("", "IA-")]
    return "\n".join(lines)


def test_prices_are_shown_and_made_from_a_price_list(command: Command, tmp_path: Path) -> None:
    shown = command("prices")
    assert (shown.returncode, shown.stderr) == (0, "")
    rows = [line.split() for line in shown.stdout.splitlines()]
    assert rows[0][:2] == ["prices", "of"]
    assert ["us-east-1", "0.000650", "0.000130", "0.6250", "0.1250", "1.00"] in rows
    (tmp_path / "rates.csv").write_text(_rates())
    made = command("prices", "--from", "rates.csv", "--out", "mine.json")
    assert (made.returncode, made.stderr) == (0, "")
    assert made.stdout.endswith("written: mine.json\n")
    listed = json.loads(command("prices", "--prices", "mine.json", "--json").stdout)
    assert listed["regions"]["eu-north-1"]["standard"]["on_demand_write_million"] == 500
    used = command("simulate", *HAND, "--scenario", "step", "--prices", "mine.json", "--price-region", "eu-north-1")
    assert f"prices of eu-north-1, {listed['dated']}" in used.stdout
    (tmp_path / "loop").symlink_to("loop")
    assert refused(command("prices", "--from", "rates.csv", "--out", "loop")) == (
        "highwater prices: loop: cannot be written: Too many levels of symbolic links"
    )


def test_job_beside_the_traffic_is_rehearsed(command: Command) -> None:
    template = str(FILES.parent / "corpus" / "target-by-a-split-arn" / "template.yaml")
    options = ("simulate", template, "--scenario", "constant", "--mean", "100")
    workers = "write=50 at 00:20  for 30000 units by 6 workers slow"
    job = ("--job", workers, "--job", "read=10% at 2026-11-02T00:30 for 600 units")
    document = json.loads(command(*options, *job, "--json").stdout)
    writes, reads = document["runs"][0]["jobs"]
    assert (writes["name"], writes["start"]) == (
        "write=50 at 00:20 for 30000 units by 6 workers slow, 2026-11-02",
        "2026-11-02T00:20:00+00:00",
    )
    assert writes["units"] == pytest.approx(30_000, abs=50)
    assert (writes["workers"], writes["most_units_in_a_second"], reads["workers"]) == (6, 50, 1)
    assert (reads["name"], reads["start"][-14:]) == (
        "read=10% at 2026-11-02T00:30 for 600 units",
        "00:30:00+00:00",
    )
    said = command(*options, *job).stdout
    assert "job write=50 at 00:20 for 30000 units by 6 workers slow, 2026-11-02: done in 0:" in said


def test_queue_in_front_of_the_table_is_rehearsed(command: Command) -> None:
    template = str(FILES.parent / "corpus" / "target-by-a-split-arn" / "template.yaml")
    options = ("simulate", template, "--scenario", "step", "--mean", "100", "--buffered", "110  within 1h30m")
    done = command(*options, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    buffered, direct = json.loads(done.stdout)["runs"]
    assert (buffered["policy"], direct["policy"], direct["queue"]) == ("declared", "without queue", None)
    assert (buffered["queue"]["units_per_second"], buffered["queue"]["drain_seconds"]) == (110, 5_400)
    assert buffered["cost_per_month_usd"] < direct["cost_per_month_usd"]
    assert "queue at 110 units/s: at most " in command(*options).stdout


def test_shards_of_a_hot_key_are_rehearsed(command: Command) -> None:
    template = str(FILES.parent / "corpus" / "target-by-a-split-arn" / "template.yaml")
    done = command("simulate", template, "--scenario", "constant", "--mean", "1700", "--keys", "hot:100/20")
    assert (done.returncode, done.stderr) == (0, "")
    assert " units throttled by the limit of a partition, 10,080,000 without shards" in " ".join(done.stdout.split())


def test_boost_of_a_job_is_rehearsed(command: Command) -> None:
    template = str(FILES.parent / "corpus" / "target-by-a-split-arn" / "template.yaml")
    options = ("simulate", template, "--scenario", "step", "--mean", "100", "--json")
    without = json.loads(command(*options).stdout)["runs"][0]
    boosts = ("--boost", "write=300 at 00:50 for 1h30m", "--boost", "read=50  in total at 2026-11-02T00:50 for 5m")
    done = command(*options, *boosts)
    assert (done.returncode, done.stderr) == (0, "")
    boosted = json.loads(done.stdout)["runs"][0]
    assert (without["throttled_units"] > 1_000, boosted["throttled_units"]) == (True, 0)
    assert boosted["cost_per_month_usd"] > without["cost_per_month_usd"]


def test_index_that_holds_its_table_back_is_named(command: Command) -> None:
    done = command("simulate", *HAND, "--scenario", "constant", "--json")
    (run,) = json.loads(done.stdout)["runs"]
    assert list(run["throttled_by_cause"]) == ["index"]
    by_target = {(target["index"], target["dimension"]): target for target in run["targets"]}
    assert by_target["by_status", "write"]["highest_provisioned"] == 22
    assert by_target["by_status", "write"]["throttled_units"] > 0


def test_json_is_for_machines(command: Command) -> None:
    done = command(
        "simulate",
        *HAND,
        "--scenario",
        "step",
        "--index-share",
        "by_status=0",
        "--compare",
        "native:70,on-demand",
        "--json",
    )
    document = json.loads(done.stdout)
    assert (document["table"], document["passed"], document["prices_dated"]) == ("Orders", [], "2026-11")
    assert document["traffic"]["minutes"] == 240
    declared, native, on_demand = document["runs"]
    assert [run["policy"] for run in document["runs"]] == ["declared", "native:70", "on-demand"]
    assert declared["demanded_units"] == 1_000 * 180 * 60 + 4_000 * 60 * 60
    assert declared["worst_minute"]["minute"] >= 60
    rise = next(event for event in native["events"] if event["kind"] == "scale-out")
    assert rise["after"] > rise["before"]
    assert on_demand["utilization_percent"] is None


def test_limits_end_with_status_1_and_say_so(command: Command) -> None:
    done = command("simulate", *HAND, "--scenario", "step", "--max-throttled", "0.5", "--max-cost", "100000")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1].endswith("% of the requested units are throttled, the limit is 0.5 %")
    done = command("simulate", *HAND, "--scenario", "step", "--max-throttled", "99.9", "--max-cost", "1", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["passed"] == ["cost"]


def test_queue_that_is_late_ends_with_status_1(command: Command) -> None:
    options = ("simulate", *HAND, "--scenario", "step", "--mean", "100", "--buffered")
    done = command(*options, "110 within 1m", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["passed"] == ["queue"]
    assert command(*options, "110 within 9h").returncode == 0


def test_files_are_written_and_traffic_can_be_used_again(command: Command, tmp_path: Path) -> None:
    common = ("--index-share", "by_status=10")
    done = command(
        "simulate",
        *HAND,
        *common,
        "--scenario",
        "figure-2",
        "--seed",
        "5",
        "--save",
        "t.csv",
        "--html",
        "r.html",
        "--png",
        "r.png",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-3:] == ["written: t.csv", "written: r.html", "written: r.png"]
    assert "<p class='verdict'>As declared, " in (tmp_path / "r.html").read_text()
    first = json.loads(command("simulate", *HAND, *common, "--scenario", "figure-2", "--seed", "5", "--json").stdout)
    again = json.loads(command("simulate", *HAND, *common, "--traffic", "t.csv", "--json").stdout)
    assert again["runs"] == first["runs"]


def test_traffic_is_scaled_moved_and_read_as_reads(command: Command, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("minute_index,units\n" + "".join(f"{n},600\n" for n in range(30)))
    done = command(
        "simulate",
        *HAND,
        "--traffic",
        "t.csv",
        "--as",
        "reads",
        "--scale",
        "3",
        "--start",
        "2026-11-06",
        "--shift",
        "2h",
        "--json",
    )
    document = json.loads(done.stdout)
    assert document["traffic"]["start"] == "2026-11-06T02:00:00+00:00"
    assert document["traffic"]["mean_units_per_second"] == 30
    read = document["runs"][0]["targets"][0]
    assert (read["dimension"], read["consumed_units"] + read["throttled_units"]) == ("read", 30 * 1_800)


def test_seconds_within_minutes_are_drawn_on_request(command: Command, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("minute_index,units\n" + "".join(f"{n},6000\n" for n in range(90)))
    flat, noisy = (
        command("simulate", *HAND, "--traffic", "t.csv", "--compare", "fixed:100", "--json", *more)
        for more in ((), ("--noise", "1.0", "--seed", "7"))
    )
    assert flat.stderr == ""
    assert noisy.stderr == "t: the seconds within minutes are drawn at random: noise 1, seed 7\n"
    units = [json.loads(done.stdout)["traffic"]["mean_units_per_second"] for done in (flat, noisy)]
    assert units == [100, 100]
    throttled = [json.loads(done.stdout)["runs"][1]["targets"][0]["throttled_units"] for done in (flat, noisy)]
    assert throttled[0] == 0


def test_datapoints_come_as_late_as_in_the_benchmarks(command: Command) -> None:
    options = ("simulate", *HAND, "--scenario", "step", "--compare", "native:50", "--json")
    unsaid = json.loads(command(*options).stdout)
    said, later = (
        json.loads(command(*options, "--metric-delay", str(Timing().metric_delay + more)).stdout) for more in (0, 180)
    )
    assert unsaid["runs"] == said["runs"]
    assert unsaid["runs"] != later["runs"]


def test_help_suffices(command: Command) -> None:
    text = command("simulate", "--help").stdout
    for word in (
        "--traffic",
        "--scenario",
        "--table",
        "--compare",
        "--max-throttled",
        "--html",
        "Exit status",
        "native:PERCENT",
    ):
        assert word in text
    assert "\n  highwater simulate cdk.out --scenario step --compare native:50,on-demand,clairvoyant\n" in text
