"""Careless and hostile input, at random: no traceback, no exit status but 0, 1 and 2, no file left half written.

`make fuzz` runs hundreds of each kind, and thousands of requests; `make test` a few. A failure names its seed, and
`make fuzz SEED=...` begins with it.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest

from highwater.core import Dimension
from highwater.terminal.console import inert
from highwater_lab.traffic import Stream
from tests.command import Command, Done
from tests.fuzz.mutations import TOKENS, as_bytes, as_json, changed_document, changed_json, changed_text
from tests.template.plans import UNKNOWN, action, configured, plan, policy, resource, table, target
from tests.traffic.shapes import as_console_export, as_csv, as_metric_data, as_metric_statistics, packed

RUNS = int(os.environ.get("HIGHWATER_FUZZ_RUNS", "20"))
FIRST_SEED = int(os.environ.get("HIGHWATER_FUZZ_SEED", "1"))
CORPUS = sorted(
    path
    for folder in ("corpus", "files")
    for path in (Path(__file__).parents[1] / "template" / folder).rglob("*")
    if path.is_file() and path.name not in ("right.json", "manifest.json")
)
TRAFFIC = "timestamp,writes,reads,writes:by_state\n" + "".join(
    f"2026-11-02T10:{minute:02}:00Z,{60 + minute}.5,{minute},7\n" for minute in range(20)
)
WITHOUT_INDEX = TRAFFIC.replace(",writes:by_state", "").replace(",7\n", "\n")
START = datetime(2026, 11, 2, 10, tzinfo=UTC)
TEMPLATE = """\
Resources:
  Orders:
    Type: AWS::DynamoDB::Table
    Properties:
      ProvisionedThroughput: {ReadCapacityUnits: 5, WriteCapacityUnits: 6}
"""
OPTIONS = {
    "rehearse": """
        --traffic --scenario --live --region --days --as --scale --mean --start --shift --seed --metric-delay
        --price-region --prices --table --parameter --against --max-throttled --max-cost --max-throttled-rise
        --max-cost-rise --fail-on-unknown --format --html --json
    """,
    "simulate": """
        --traffic --traffic-table --scenario --live-table --region --days --save --as --scale --mean --start --shift
        --seed --metric-delay --price-region --prices --table --parameter --target --compare --keys --index-share
        --size-gb --new-items --table-quota --account-quota --max-throttled --max-cost --html --png --json
    """,
    "recommend": "--traffic --timezone --max-throttled --table-quota --png --save --scale --code --json",
    "prices": "--prices --from --out --json",
    "traffic show": "--table --as --json in.csv - orders",
    "traffic fetch": "--all --days --out --resume --dry-run --region --json orders",
    "local status": "--json --port",
    "local down": "--json --port",
    "local env": "--json --port",
    "local advance": f"--json 1h -5m {'9' * 30}",
    "explain": "--region --json orders",
    "pulses": "--region --json --minutes orders",
}
ARGUMENTS = (
    *("t.yaml", "in.csv", "out.html", "out.png", "out.csv", "/dev/null", "/dev/full", "none", ".", "", "loop"),
    *("0", "1", "-1", "1.5", "1e9", "nan", "inf", "9" * 30, "step", "constant", "writes", "native:50", "on-demand"),
    *("clairvoyant", "fixed:0", "hot:40", "zipf:99", "by_state=rolling", "A=B", "=", "UTC", "Mars", "2026-11-02", "2h"),
    *(token for token in TOKENS if "\0" not in token),
)


def _runs(folder: Path) -> Iterator[tuple[int, Random, Path]]:
    """Seeds, what is random in their runs, and an empty folder for each, the same one every time."""
    print(f"seeds {FIRST_SEED} to {FIRST_SEED + RUNS - 1}")
    place = folder / "run"
    for seed in range(FIRST_SEED, FIRST_SEED + RUNS):
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        yield seed, Random(seed), place


def _check(done: Done, seed: int, arguments: object, folder: Path, given: bytes = b"") -> None:
    wrong = _wrong(done) or _left_behind(folder)
    assert wrong is None, f"seed {seed}: highwater {arguments}: {wrong}\n{given[:2000]!r}"


def _wrong(done: Done) -> str | None:
    """What is wrong with a run; `None` for one that ended as a command should."""
    if done.returncode not in (0, 1, 2):
        return f"exit status {done.returncode}"
    for text in (done.stdout, done.stderr):
        if "Traceback" in text or "unexpected error" in text:
            return text[-1500:]
        if text != inert(text):
            return f"raw control characters: {text[-300:]!r}"
    if done.returncode == 2 and done.stderr.count("\n") != 1:
        return f"not one line: {done.stderr!r}"
    return None


def _left_behind(folder: Path) -> str | None:
    """What is wrong with the files that a run wrote."""
    for path in folder.rglob("*"):
        is_known = path.name in (".state", ".config", ".cache", ".matplotlib")
        if path.name.startswith(".") and not is_known and path.is_file():
            return f"{path.name} is left behind"
        if path.suffix == ".html" and not path.read_bytes().rstrip().endswith(b"</html>"):
            return f"{path.name} is half written"
        if path.suffix == ".png" and not path.read_bytes().endswith(b"IEND\xaeB`\x82"):
            return f"{path.name} is half written"
    return None


def test_changed_templates(tmp_path: Path) -> None:
    for seed, random, place in _runs(tmp_path):
        source = random.choice(CORPUS)
        text = source.read_text()
        if source.suffix in (".json", ".template") and random.random() < 0.7:
            given = as_bytes(as_json(changed_document(json.loads(text), random)))
        else:
            given = as_bytes(changed_text(text, random))
        (place / source.name).write_bytes(given)
        (place / "in.csv").write_text(WITHOUT_INDEX)
        arguments = [random.choice(["rehearse", "simulate"]), source.name, "--traffic", "in.csv"]
        arguments += ["--html", "out.html"] if seed % 10 == 0 else []
        arguments += ["--table", random.choice(["Orders", "Visits", "Shop/Orders"])] if random.random() < 0.5 else []
        _check(Command(place)(*arguments), seed, arguments, place, given)


def _terraform() -> dict[str, Any]:
    """A plan with every resource that is read, in modules, with what is known only after apply."""
    inner = 'module.shop["eu"].module.scaler'
    index = {"name": "by_state", "read_capacity": 5, "write_capacity": 6, "warm_throughput": []}
    orders = table(
        'module.shop["eu"].aws_dynamodb_table.orders[0]',
        id=UNKNOWN,
        replica=[{"region_name": "eu-west-2"}],
        global_secondary_index=[index],
    )
    reads = {"scalable_dimension": "dynamodb:index:ReadCapacityUnits", "resource_id": "table/orders/index/by_state"}
    return plan(
        orders,
        resource("aws_dynamodb_global_secondary_index.by_day", table_name="orders", index_name="by_day"),
        target(f"{inner}.aws_appautoscaling_target.write", resource_id=UNKNOWN, region="eu-west-1"),
        target(f"{inner}.aws_appautoscaling_target.read", **reads),
        policy(f"{inner}.aws_appautoscaling_policy.write", resource_id=UNKNOWN),
        action(f"{inner}.aws_appautoscaling_scheduled_action.load", resource_id="table/orders"),
        region="eu-west-1",
        prior=(table(),),
        root={
            "module_calls": {
                "shop": {
                    "module": {
                        "resources": [configured("aws_dynamodb_table", "orders")],
                        "module_calls": {
                            "scaler": {
                                "expressions": {"table": {"references": ["aws_dynamodb_table.orders[0].id"]}},
                                "module": {
                                    "resources": [
                                        configured("aws_appautoscaling_target", "write", resource_id=["var.table"]),
                                        configured(
                                            "aws_appautoscaling_policy",
                                            "write",
                                            resource_id=["aws_appautoscaling_target.write.resource_id"],
                                        ),
                                    ]
                                },
                            }
                        },
                    }
                }
            }
        },
    )


def test_changed_plans_of_terraform(tmp_path: Path) -> None:
    for seed, random, place in _runs(tmp_path):
        given = changed_json(_terraform(), random)
        (place / "plan.json").write_bytes(given)
        (place / "in.csv").write_text(WITHOUT_INDEX)
        arguments = [random.choice(["rehearse", "simulate"]), "plan.json", "--traffic", "in.csv"]
        more = [[], ["--table", "orders"]] + ([["--against", "prior"]] if arguments[0] == "rehearse" else [])
        arguments += random.choice(more)
        _check(Command(place)(*arguments), seed, arguments, place, given)


@pytest.mark.parametrize("depth", [400, 900, 20_000])
@pytest.mark.parametrize("form", ["modules", "values", "calls", "unknown"])
def test_plans_of_terraform_that_are_nested_deeply(form: str, depth: int, tmp_path: Path) -> None:
    opening = '{"format_version":"1.2","planned_values":{"root_module":'
    one = '"address":"aws_dynamodb_table.t","mode":"managed","type":"aws_dynamodb_table","name":"t"'
    resources = f'"resources":[{{{one},"values":{{"name":"t"}}}}]'
    if form == "modules":
        text = opening + '{"child_modules":[' * depth + "]}" * depth + "}}"
    elif form == "values":
        text = f'{opening}{{"resources":[{{{one},"values":{{"name":' + "[" * depth + "]" * depth + "}}]}}}"
    elif form == "calls":
        calls = '{"module_calls":{"m":{"module":' * depth + "{}" + "}}}" * depth
        text = f'{opening}{{{resources}}}}},"configuration":{{"root_module":{calls}}}}}'
    else:
        marks = '{"name":' * depth + "true" + "}" * depth
        change = f'{{"address":"aws_dynamodb_table.t","change":{{"after_unknown":{marks}}}}}'
        text = f'{opening}{{{resources}}}}},"resource_changes":[{change}]}}'
    given = text.encode()
    (tmp_path / "plan.json").write_bytes(given)
    _check(Command(tmp_path)("simulate", "plan.json", "--scenario", "step"), depth, form, tmp_path, given)


def test_changed_traffic(tmp_path: Path) -> None:
    for seed, random, place in _runs(tmp_path):
        given = as_bytes(changed_text(TRAFFIC, random))
        (place / "in.csv").write_bytes(given)
        (place / "t.yaml").write_text(TEMPLATE)
        arguments = ["simulate", "t.yaml", "--traffic", "in.csv", "--save", "out.csv"]
        _check(Command(place)(*arguments), seed, arguments, place, given)


def test_changed_traffic_of_any_shape(tmp_path: Path) -> None:
    units = {table: {Stream(None, Dimension.WRITE): [60.0, 0.5, 7.0] * 4} for table in ("orders", "carts")}
    for seed, random, place in _runs(tmp_path):
        form = random.choice(["separators", "console", "data", "statistics", "packed", "parquet"])
        if form == "console":
            content = as_console_export(units, START, 60, random, hours=0)
        elif form == "data":
            content = as_metric_data(units, START, 60, random, has_queries=random.random() < 0.5)
        elif form == "statistics":
            content = as_metric_statistics(units["orders"], START, 60, random)
        elif form == "parquet":
            content = b"PAR1" + bytes(random.randbytes(40)) + b"PAR1"
        else:
            way = {"separator": random.choice(",;\t"), "encoding": random.choice(["utf-8", "utf-16"]), "times": "Z"}
            content = as_csv(units, START, 60, random, comma=False, **way)
        if form in ("data", "statistics") and random.random() < 0.6:
            document = json.loads(content.splitlines()[0] if form == "statistics" else content)
            given = as_bytes(as_json(changed_document(document, random)))
        elif form in ("console", "data", "statistics"):
            given = as_bytes(changed_text(content.decode(), random))
        else:
            given = _with_other_bytes(content, random)
        given = packed(given) if form == "packed" else given
        if form == "packed" and random.random() < 0.5:
            given = given[: random.randrange(len(given))]
        (place / "in.csv").write_bytes(given)
        (place / "t.yaml").write_text(TEMPLATE)
        for arguments in (
            ["traffic", "show", "in.csv", *(["--json"] if random.random() < 0.5 else [])],
            ["simulate", "t.yaml", "--traffic", "in.csv", "--table", "Orders", "--save", "out.csv"],
        ):
            _check(Command(place)(*arguments), seed, arguments, place, given)


def _with_other_bytes(content: bytes, random: Random) -> bytes:
    changed = bytearray(content)
    for _ in range(random.randint(0, 6)):
        changed[random.randrange(len(changed))] = random.randrange(256)
    return bytes(changed)


def test_changed_price_lists(tmp_path: Path) -> None:
    row = "us-east-1,AmazonDynamoDB,{}WriteCapacityUnit-Hrs,0.00065\n"
    rows = "Region,Service Code,Usage Type,On-Demand Rate\n" + row.format("") + row.format("IA-")
    shipped = Path(__file__).parents[2] / "lambda_src/highwater/core/prices.json"
    for seed, random, place in _runs(tmp_path):
        prices = changed_document(json.loads(shipped.read_text()), random)
        (place / "mine.json").write_bytes(as_bytes(as_json(prices)))
        (place / "rates.csv").write_bytes(as_bytes(changed_text(rows, random)))
        for arguments in (["prices", "--prices", "mine.json"], ["prices", "--from", "rates.csv", "--out", "out.json"]):
            _check(Command(place)(*arguments), seed, arguments, place)


def test_any_command_line(tmp_path: Path) -> None:
    for seed, random, place in _runs(tmp_path):
        (place / "in.csv").write_text(TRAFFIC)
        (place / "t.yaml").write_text(TEMPLATE)
        (place / "loop").symlink_to("loop")
        command = random.choice(list(OPTIONS))
        arguments = command.split()
        if command in ("rehearse", "simulate") and random.random() < 0.8:
            arguments += ["t.yaml", "--traffic", "in.csv"]
        if command == "recommend":
            # a search takes seconds; most of these end before it
            arguments += ["--traffic", random.choice(["in.csv", "none"]), "--timezone", random.choice(ARGUMENTS)]
        for _ in range(random.randint(0, 5)):
            arguments.append(
                random.choice(OPTIONS[command].split()) if random.random() < 0.6 else random.choice(ARGUMENTS)
            )
        _check(Command(place)(*arguments), seed, arguments, place)
