"""`highwater simulate` and `recommend` in careless and hostile hands: nothing is lost, one line says why."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.command import SCRIPT, Command, refused

TRAFFIC = "timestamp,writes\n" + "".join(f"2026-11-02T10:{minute:02}:00Z,{60 + minute}.5\n" for minute in range(20))
TEMPLATE = """\
Resources:
  Orders:
    Type: AWS::DynamoDB::Table
    Properties:
      ProvisionedThroughput: {ReadCapacityUnits: 5, WriteCapacityUnits: 6}
"""
NO_JOB = " is no job; write it like 'write=2000 at 02:00 for 7200000 units slow'"
ONE_TRAFFIC = "give the traffic with exactly one of --traffic FILE, --scenario NAME and --live-table NAME"


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    (tmp_path / "in.csv").write_text(TRAFFIC)
    (tmp_path / "t.yaml").write_text(TEMPLATE)
    (tmp_path / "page.html").write_text("<html>")
    (tmp_path / "link.csv").symlink_to("in.csv")
    (tmp_path / "loop").symlink_to("loop")
    os.link(tmp_path / "in.csv", tmp_path / "hard.csv")
    os.mkfifo(tmp_path / "pipe.csv")
    return tmp_path


def _is_refused(command: Command, line: str, message: str) -> None:
    arguments = shlex.split(line)
    assert refused(command(*arguments)) == f"highwater {arguments[0]}: {message}"
    assert (command.folder / "in.csv").read_text() == TRAFFIC
    assert (command.folder / "t.yaml").read_text() == TEMPLATE


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--html in.csv", "--html and --traffic are the same file, in.csv; give another file"),
        ("--html t.yaml", "--html and TEMPLATE are the same file, t.yaml; give another file"),
        ("--save in.csv", "--save and --traffic are the same file, in.csv; give another file"),
        ("--png link.csv", "--png and --traffic are the same file, link.csv; give another file"),
        ("--save hard.csv", "--save and --traffic are the same file, hard.csv; give another file"),
        ("--html x --png x", "--png and --html are the same file, x; give another file"),
        ("--png .", "--png '.' is a folder; give the name of a file"),
        ("--html none/x.html", "none/x.html: cannot be written: No such file or directory"),
        ("--html in.csv/x.html", "in.csv/x.html: cannot be written: Not a directory"),
        ("--html loop", "loop: cannot be written: Too many levels of symbolic links"),
        ("--png loop", "loop: cannot be written: Too many levels of symbolic links"),
        ("--save loop", "loop: cannot be written: Too many levels of symbolic links"),
        ("--save /dev/full", "/dev/full: cannot be written: it is not a regular file"),
        ("--max-throttled nan", "Invalid value for '--max-throttled': 'nan' is not a finite number"),
        ("--max-cost inf", "Invalid value for '--max-cost': 'inf' is not a finite number"),
        ("--mean nan", "Invalid value for '--mean': 'nan' is not a finite number"),
        ("--scale 0", "the scale must be above 0, got 0"),
        ("--scale 1e-9", "traffic in has no requests after scaling, so there is nothing to simulate"),
        ("--mean 1e7", "in: bin 10 has 6.04286e+08 writes after scaling, allowed: 0 to 10,000,000 units per second"),
        (
            "--start 9999-12-31",
            "in: the traffic begins at 9999-12-31T00:00:00+00:00; it must lie between 1970 and 2200",
        ),
        pytest.param(
            f"--compare native:{'7' * 5_000}",
            f"policy 'native:{'7' * 5_000}': expected a target utilization in percent from 20 to 90, got "
            "'77777777777777777777'",
            id="number of 5,000 digits",
        ),
        ("--parameter 'a\nb=1'", "--parameter a b: the templates have no such parameter; they have none"),
        ("--parameter Stage", "Invalid value for '--parameter': 'Stage' does not have the form NAME=VALUE"),
        ("--target Writes", "Invalid value for '--target': 'Writes' does not have the form LOGICAL_ID=TABLE"),
        ("--table Carts", "there is no table 'Carts'; the tables are Orders"),
        (
            "--keys hot:200",
            "Invalid value for '--keys': 'hot:200': the hot key's share must be between 1 and 100 percent, got 200",
        ),
        (
            "--keys hot:40/0",
            "Invalid value for '--keys': 'hot:40/0': a hot key has from 1 to 1,000 shards, got 0",
        ),
        (
            "--keys warm",
            "Invalid value for '--keys': 'warm' is not a key distribution; give uniform, "
            "zipf[:EXPONENT], hot:PERCENT[/SHARDS] or rolling",
        ),
        (
            "--index-share by_status=much",
            "--index-share: 'much' is not a percentage; give a whole number from 0 to 10,000",
        ),
        *(
            (f"--job '{job}'", f"Invalid value for '--job': '{job}'{why}")
            for job, why in [
                ("write=50 at noon for 5 units", NO_JOB),
                ("write=0 at 02:00 for 5 units", NO_JOB),
                ("write=50 at 02:00 for 5 units by 0 workers", NO_JOB),
                ("write=50 at 25:00 for 5 units", NO_JOB),
                (
                    "by_status.write=5 at 02:00 for 5 units",
                    ": an index is written to by way of its table; leave the index out",
                ),
                ("read=101% at 02:00 for 5 units", ": a share is from 1% to 100%, and cannot be boosted"),
                ("read=50% at 02:00 for 5 units boosted", ": a share is from 1% to 100%, and cannot be boosted"),
            ]
        ),
        *(
            (
                f"--buffered '{queue}'",
                f"Invalid value for '--buffered': '{queue}' is no queue; write it like '500 within 6h', or '500' for "
                "half a day",
            )
            for queue in ("0", "5.5", "500 in 6h", "")
        ),
        (
            "--buffered '500 within 14d'",
            "Invalid value for '--buffered': '500 within 14d': SQS deletes messages after 14 days; give up to 13d",
        ),
        *(
            (
                f"--boost '{boost}'",
                f"Invalid value for '--boost': '{boost}' is no boost; write it like 'write=8000 at 02:00 for 30m'",
            )
            for boost in (
                "write=7000",
                "write=0x1 at 02:00 for 5m",
                "write=5 at 02:00-05:00 for 5m",
                "write=5 at 24:00 for 5m",
                "at 02:00",
                "",
            )
        ),
    ],
)
@pytest.mark.usefixtures("inputs")
def test_option_of_simulate_that_cannot_be_is_told_and_loses_nothing(
    command: Command, options: str, message: str
) -> None:
    _is_refused(command, f"simulate t.yaml --traffic in.csv {options}", message)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "simulate nowhere --scenario step",
            "nowhere: does not exist; give a cdk.out folder (made by cdk synth) or a template file",
        ),
        ("simulate t.yaml", ONE_TRAFFIC),
        ("simulate t.yaml --scenario step --traffic x.csv", ONE_TRAFFIC),
        ("recommend --traffic in.csv --live-table orders", ONE_TRAFFIC),
        (
            "simulate t.yaml --traffic x.csv",
            "x.csv: cannot be read: No such file or directory; give a CSV, JSON or Parquet file",
        ),
        (
            "simulate t.yaml --traffic pipe.csv",
            "pipe.csv: cannot be read: it is not a regular file; give a CSV, JSON or Parquet file",
        ),
        (
            "simulate t.yaml --traffic /dev/zero",
            "/dev/zero: cannot be read: it is not a regular file; give a CSV, JSON or Parquet file",
        ),
        (
            "simulate t.yaml --live-table orders",
            "table 'orders': no region is set; give --region, or set AWS_REGION",
        ),
        (
            "simulate t.yaml --scenario step --days 3",
            "--days is of --live-table; remove it beside --scenario",
        ),
        (
            "recommend --traffic in.csv --region eu-west-1",
            "--region is of --live-table; remove it beside --traffic",
        ),
        (
            "recommend --traffic in.csv --seed 7",
            "--seed is of --scenario and --noise, whose random numbers it decides; remove it",
        ),
        (
            "recommend --scenario daily --noise 0.6",
            "daily: has seconds already; noise is for traffic with minutes alone",
        ),
        (
            "recommend --traffic in.csv --save in.csv",
            "--save and --traffic are the same file, in.csv; give another file",
        ),
        (
            "recommend --scenario constant --timezone Mars",
            "--timezone: unknown timezone 'Mars'; use an IANA name such as 'Europe/Berlin'",
        ),
        ("prices --fetch --from rates.csv --out x", "give --fetch or --from, not both"),
        ("prices --from rates.csv", "--fetch and --from need --out FILE"),
        ("prices --out mine.json", "--out is for --fetch or --from; give one"),
        ("prices --from none.csv --out x", "none.csv: cannot be read: No such file or directory"),
        (
            "prices --from page.html --out x",
            "page.html: is neither AWS's price list of DynamoDB nor a CSV file with the columns Region, Service Code, "
            "Usage Type, On-Demand Rate",
        ),
    ],
)
@pytest.mark.usefixtures("inputs")
def test_command_line_that_cannot_be_is_told_and_loses_nothing(command: Command, line: str, message: str) -> None:
    _is_refused(command, line, message)


def test_table_that_is_open_is_asked_for_before_its_traffic(command: Command, inputs: Path) -> None:
    tables = "".join(f"  {name}:\n{TEMPLATE.partition('  Orders:')[2].lstrip(chr(10))}" for name in ("Orders", "Old"))
    (inputs / "two.yaml").write_text(f"Resources:\n{tables}")
    (inputs / "two.csv").write_text("table,minute_index,writes\nA-Orders-XYZ,0,60\nA-Old-XYZ,0,120\n")
    line = ("simulate", "two.yaml", "--traffic", "two.csv")
    message = "highwater simulate: 2 tables match: Old, Orders; choose one with --table"
    assert refused(command(*line)) == message
    assert refused(command(*line, "--table", "O")) == message


def test_search_that_fails_has_written_nothing(command: Command, inputs: Path) -> None:
    done = command("recommend", "--traffic", "in.csv", "--save", "new.csv", "--price-region", "mars")
    assert "prices.json: has no prices of region 'mars', only of af-south-1, " in refused(done)
    assert not (inputs / "new.csv").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "timestamp,writes\n2026-11-02T10:00:30Z,1\n",
            ", line 2: begins at 2026-11-02T10:00:30Z; the first bin must begin on a whole minute",
        ),
        (
            "timestamp,writes\n2026-11-02T10:00:00Z,1\n2026-11-02T10:01:00.500Z,1\n",
            ", line 3: the time is 60.5 s after that of line 2; a bin must be a whole number of seconds long",
        ),
        (
            "timestamp,writes\n2026-11-02T10:01:00Z,1\n2026-11-02T10:01:00Z,2\n",
            ", line 3: writes are 2, but line 2 has the same time and 1; give each bin once, and times with their "
            "offset from UTC",
        ),
        (
            "timestamp,writes\n0001-01-01T00:00:00+14:00,1\n",
            ", line 2: timestamp is '0001-01-01T00:00:00+14:00'; write it as 2026-11-02T05:00:00Z, or as the seconds "
            "or milliseconds since 1970",
        ),
        (
            "timestamp,writes\n1971-01-01T00:00:00Z,1\n2199-01-01T00:00:00Z,1\n",
            "odd: more than 5,300,000 bins; give a shorter period of time or longer bins",
        ),
        (
            "minute_index,writes\n0,1_000\n",
            ", line 2: writes are '1_000'; give the units requested in the bin, 0 or more",
        ),
    ],
)
def test_odd_traffic_is_told(command: Command, inputs: Path, text: str, message: str) -> None:
    (inputs / "odd.csv").write_text(text)
    where = message if message.startswith("odd: ") else f"odd.csv{message}"
    assert refused(command("simulate", "t.yaml", "--traffic", "odd.csv")) == f"highwater simulate: {where}"


def test_saved_traffic_is_as_coarse_as_it_was(command: Command, inputs: Path) -> None:
    (inputs / "coarse.csv").write_text("bin_900s,writes\n0,1234.5\n1,77\n")
    first = command("simulate", "t.yaml", "--traffic", "coarse.csv", "--save", "again.csv", "--json")
    again = command("simulate", "t.yaml", "--traffic", "again.csv", "--json")
    assert '"is_coarse": true' in first.stdout
    assert again.stdout == first.stdout.replace('"name": "coarse"', '"name": "again"')


@pytest.mark.parametrize(
    ("prices", "message"),
    [
        pytest.param("[" * 100_000, "p.json: cannot be read: it is not valid JSON", id="nested too deeply"),
        (
            '{"alarm_month": 1e308}',
            "p.json: alarm_month is 1e+308; expected a price in USD, from 0 to 1,000,000",
        ),
    ],
)
def test_odd_prices_are_told(command: Command, inputs: Path, prices: str, message: str) -> None:
    (inputs / "p.json").write_text(prices)
    done = command("simulate", "t.yaml", "--traffic", "in.csv", "--prices", "p.json")
    assert refused(done) == f"highwater simulate: {message}"


def test_names_are_no_markup(command: Command, inputs: Path) -> None:
    (inputs / "t.json").write_text(
        '{"Resources": {"[bold]x[/nope]\\ud800": {"Type": "AWS::DynamoDB::Table", "Properties": '
        '{"ProvisionedThroughput": {"ReadCapacityUnits": 5, "WriteCapacityUnits": 6}}}}}'
    )
    done = command("simulate", "t.json", "--traffic", "in.csv", "--html", "z[b].html")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("[bold]x[/nope]? under in: ")
    assert done.stdout.endswith("written: z[b].html\n")
    assert "[bold]x[/nope]?" in (inputs / "z[b].html").read_text()


@pytest.mark.usefixtures("inputs")
def test_terminal_without_the_signs_shows_something_else(command: Command) -> None:
    ascii_only = command.environment(PYTHONIOENCODING="ascii")
    with command.start("simulate", "t.yaml", "--traffic", "in.csv", env=ascii_only) as process:
        shown, _ = process.communicate()
    assert process.returncode == 0
    assert "nothing is throttled" in shown


@pytest.mark.usefixtures("inputs")
def test_output_that_cannot_be_written_is_told(command: Command) -> None:
    with (
        Path("/dev/full").open("w") as full,
        command.start("simulate", "t.yaml", "--traffic", "in.csv", "--json", stdout=full) as process,
    ):
        _, told = process.communicate()
    assert (process.returncode, told) == (2, "highwater: the output cannot be written: No space left on device\n")


def test_reader_that_has_enough_ends_it_quietly(inputs: Path) -> None:
    script = f"{SCRIPT} simulate t.yaml --traffic in.csv --json | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, cwd=inputs, check=False)
    assert (done.stdout, done.stderr) == ("141\n", "")
