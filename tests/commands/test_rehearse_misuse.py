"""`highwater rehearse` and `recommend` in careless and hostile hands: nothing is lost, one line says why."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
TRAFFIC = "timestamp,writes\n" + "".join(f"2026-11-02T10:{minute:02}:00Z,{60 + minute}.5\n" for minute in range(20))
TEMPLATE = """\
Resources:
  Orders:
    Type: AWS::DynamoDB::Table
    Properties:
      ProvisionedThroughput: {ReadCapacityUnits: 5, WriteCapacityUnits: 6}
"""


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    (tmp_path / "in.csv").write_text(TRAFFIC)
    (tmp_path / "t.yaml").write_text(TEMPLATE)
    (tmp_path / "link.csv").symlink_to("in.csv")
    os.link(tmp_path / "in.csv", tmp_path / "hard.csv")
    return tmp_path


def _misuse(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr.removesuffix("\n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--html", "in.csv"), "--html and --traffic are the same file, in.csv; give another file"),
        (("--html", "t.yaml"), "--html and TEMPLATE are the same file, t.yaml; give another file"),
        (("--save", "in.csv"), "--save and --traffic are the same file, in.csv; give another file"),
        (("--png", "link.csv"), "--png and --traffic are the same file, link.csv; give another file"),
        (("--save", "hard.csv"), "--save and --traffic are the same file, hard.csv; give another file"),
        (("--html", "x", "--png", "x"), "--png and --html are the same file, x; give another file"),
        (("--png", "."), "--png '.' is a folder; give the name of a file"),
        (("--html", "none/x.html"), "none/x.html: cannot be written: No such file or directory"),
        (("--save", "/dev/full"), "/dev/full: cannot be written: it is not a regular file"),
        (("--max-throttled", "nan"), "Invalid value for '--max-throttled': 'nan' is not a finite number"),
        (("--max-cost", "inf"), "Invalid value for '--max-cost': 'inf' is not a finite number"),
        (
            ("--start", "9999-12-31"),
            "in: the traffic begins at 9999-12-31T00:00:00+00:00; it must lie between 1970 and 2200",
        ),
        (("--scale", "1e-9"), "traffic in has no requests after scaling, so there is nothing to simulate"),
        (
            ("--mean", "1e7"),
            "in: bin 10 has 6.04286e+08 writes after scaling, allowed: 0 to 10,000,000 units per second",
        ),
        (
            ("--compare", f"native:{'7' * 5_000}"),
            "policy 'native:" + "7" * 5_000 + "': expected a target utilization in percent from 20 to 90, got "
            "'77777777777777777777'",
        ),
        (("--parameter", "a\nb=1"), "--parameter a b: the templates have no such parameter; they have none"),
    ],
)
def test_misuse_loses_nothing(command: Run, inputs: Path, options: tuple[str, ...], message: str) -> None:
    done = command("rehearse", "t.yaml", "--traffic", "in.csv", *options)
    assert _misuse(done) == f"highwater rehearse: {message}"
    assert (inputs / "in.csv").read_text() == TRAFFIC
    assert (inputs / "t.yaml").read_text() == TEMPLATE


def test_search_that_fails_has_written_nothing(command: Run, inputs: Path) -> None:
    done = command("recommend", "--traffic", "in.csv", "--save", "new.csv", "--price-region", "mars")
    assert "prices.json: has no prices of region 'mars', only of af-south-1, " in _misuse(done)
    assert not (inputs / "new.csv").exists()
    assert _misuse(command("recommend", "--traffic", "in.csv", "--save", "in.csv")) == (
        "highwater recommend: --save and --traffic are the same file, in.csv; give another file"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "timestamp,writes\n2026-11-02T10:00:30Z,1\n",
            ", line 2: begins at 2026-11-02T10:00:30Z; the first bin must begin on a whole minute",
        ),
        (
            "timestamp,writes\n2026-11-02T10:00:00Z,1\n2026-11-02T10:01:00.500Z,1\n",
            ", line 3: the timestamp is 60.5 s after that of the previous row; a bin must be a whole number of seconds "
            "long",
        ),
        (
            "timestamp,writes\n2026-11-02T10:01:00Z,1\n2026-11-02T10:01:00Z,1\n",
            ", line 3: the timestamp is the same as that of the previous row; sort the rows by time and give each bin "
            "once",
        ),
        (
            "timestamp,writes\n2026-11-02T10:01:00Z,1\n2026-11-02T10:00:00Z,1\n",
            ", line 3: the timestamp is 60 s before that of the previous row; sort the rows by time and give each bin "
            "once",
        ),
        (
            "timestamp,writes\n0001-01-01T00:00:00+14:00,1\n",
            ", line 2: timestamp is '0001-01-01T00:00:00+14:00'; write it as 2026-11-02T05:00:00Z",
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
def test_odd_traffic_is_told(command: Run, inputs: Path, text: str, message: str) -> None:
    (inputs / "odd.csv").write_text(text)
    where = message if message.startswith("odd: ") else f"odd.csv{message}"
    assert _misuse(command("rehearse", "t.yaml", "--traffic", "odd.csv")) == f"highwater rehearse: {where}"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("rehearse", "t.yaml", "--scenario", "step", "--days", "3"),
            "--days is of --table, which reads a live table; remove it beside --scenario",
        ),
        (
            ("recommend", "--traffic", "in.csv", "--region", "eu-west-1"),
            "--region is of --table, which reads a live table; remove it beside --traffic",
        ),
        (
            ("recommend", "--traffic", "in.csv", "--seed", "7"),
            "--seed is of --scenario, whose jitter it decides; remove it",
        ),
        (
            ("recommend", "--traffic", "in.csv", "--table", "orders"),
            "give the traffic with exactly one of --traffic FILE, --scenario NAME and --table NAME",
        ),
        (
            ("rehearse", "t.yaml", "--traffic", "in.csv", "--table", "Carts"),
            "there is no table 'Carts'; the tables are Orders",
        ),
        (
            ("rehearse", "t.yaml", "--traffic", "in.csv", "--target", "Writes"),
            "Invalid value for '--target': 'Writes' does not have the form LOGICAL_ID=TABLE",
        ),
    ],
)
@pytest.mark.usefixtures("inputs")
def test_options_that_do_not_fit_are_told(command: Run, arguments: tuple[str, ...], message: str) -> None:
    assert _misuse(command(*arguments)) == f"highwater {arguments[0]}: {message}"


def test_pipes_and_devices_are_no_traffic(command: Run, inputs: Path) -> None:
    os.mkfifo(inputs / "pipe.csv")
    for place in ("pipe.csv", "/dev/zero"):
        message = _misuse(command("rehearse", "t.yaml", "--traffic", place))
        assert message == (
            f"highwater rehearse: {place}: cannot be read: it is not a regular file; give a CSV file of units per bin"
        )


def test_saved_traffic_is_as_coarse_as_it_was(command: Run, inputs: Path) -> None:
    (inputs / "coarse.csv").write_text("bin_900s,writes\n0,1234.5\n1,77\n")
    first = command("rehearse", "t.yaml", "--traffic", "coarse.csv", "--save", "again.csv", "--json")
    again = command("rehearse", "t.yaml", "--traffic", "again.csv", "--json")
    assert '"is_coarse": true' in first.stdout
    assert again.stdout == first.stdout.replace('"name": "coarse"', '"name": "again"')


@pytest.mark.parametrize(
    ("prices", "message"),
    [
        ("[" * 100_000, "p.json: cannot be read: it is not valid JSON"),
        (
            '{"alarm_month": 1e308}',
            "p.json: alarm_month is 1e+308; expected a price in USD, from 0 to 1,000,000",
        ),
    ],
)
def test_odd_prices_are_told(command: Run, inputs: Path, prices: str, message: str) -> None:
    (inputs / "p.json").write_text(prices)
    done = command("rehearse", "t.yaml", "--traffic", "in.csv", "--prices", "p.json")
    assert _misuse(done) == f"highwater rehearse: {message}"


def test_names_are_no_markup(command: Run, inputs: Path) -> None:
    (inputs / "t.json").write_text(
        '{"Resources": {"[bold]x[/nope]\\ud800": {"Type": "AWS::DynamoDB::Table", "Properties": '
        '{"ProvisionedThroughput": {"ReadCapacityUnits": 5, "WriteCapacityUnits": 6}}}}}'
    )
    done = command("rehearse", "t.json", "--traffic", "in.csv", "--html", "z[b].html")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("[bold]x[/nope]? under in: ")
    assert done.stdout.endswith("written: z[b].html\n")
    assert (inputs / "z[b].html").stat().st_size > 1_000_000


@pytest.mark.usefixtures("inputs")
def test_terminal_without_the_signs_shows_something_else(command: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    done = command("rehearse", "t.yaml", "--traffic", "in.csv")
    assert done.returncode == 0
    assert "nothing is throttled" in done.stdout


def test_output_that_cannot_be_written_is_told(inputs: Path) -> None:
    binary = str(Path(sys.executable).parent / "highwater")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [binary, "rehearse", "t.yaml", "--traffic", "in.csv", "--json"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            cwd=inputs,
            check=False,
        )
    assert (done.returncode, done.stderr) == (
        2,
        "highwater: the output cannot be written: No space left on device\n",
    )


def test_reader_that_has_enough_ends_it_quietly(inputs: Path) -> None:
    binary = str(Path(sys.executable).parent / "highwater")
    script = f"{binary} rehearse t.yaml --traffic in.csv --json | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, cwd=inputs, check=False)
    assert (done.stdout, done.stderr) == ("141\n", "")
