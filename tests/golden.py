"""Writes down what the code does, so that two states of it can be compared: `python -m tests.golden FOLDER`.

Run it before a change that should alter nothing, run it again after it, and compare with `diff -r`. The folder then
has: templates of the examples and of the typing test's app (hashes of assets left out), 20,000 answers of `review` and
20,000 of `grant` to inputs that are the same each time, JSON of plans and leases, and every text in the source that a
user could be shown.
"""

from __future__ import annotations

import ast
import hashlib
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from highwater.core import Bounds, Capacity, DecreaseBudget, Dimension, Plan, Units, Window
from highwater.core.boosts import Lease, grant
from highwater.core.boosts.lease import lease_document
from highwater.core.pulses import Slots
from highwater.core.scaler import (
    Clock,
    Mode,
    Observation,
    ScaledPlan,
    SeenResource,
    SeenTable,
    SeenTarget,
    review,
)
from highwater.core.schedule.bounds import timeline

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("constructs_pkg", "lambda_src", "lab_src", "local_src")
NOW = datetime(2027, 3, 4, 10, 3, 40, tzinfo=UTC)
COUNT = 20_000
# inputs whose answers share a line
_TOGETHER = 100


def main(folder: Path) -> None:
    """Write everything into *folder*."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "messages.txt").write_text("\n".join(sorted(set(messages()))) + "\n")
    chance = random.Random(20_270_304)  # noqa: S311 - the same inputs each time
    (folder / "reviews.txt").write_text("\n".join(hashed(_review(chance) for _ in range(COUNT))) + "\n")
    (folder / "grants.txt").write_text("\n".join(hashed(_grant(chance) for _ in range(COUNT))) + "\n")
    (folder / "documents.txt").write_text("\n".join(_documents(chance)) + "\n")
    apps = [*sorted(ROOT.glob("examples/*/app.py")), ROOT / "tests" / "typing" / "users_app.py"]
    for app in apps:
        synthesize(app, folder / app.parent.name)


def messages() -> Iterator[str]:
    """Every text of the sources with a blank in it, but for docstrings; what is filled in is {}."""
    for path in sorted(found for source in SOURCES for found in (ROOT / source).rglob("*.py")):
        tree = ast.parse(path.read_text())
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
        for node in ast.walk(tree):
            if id(node) in docstrings or id(node) in inside:
                continue
            text = _text(node)
            if " " in text.strip():
                yield repr(text)


def _text(node: ast.AST) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return "{}"
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def hashed(answers: Iterator[str]) -> Iterator[str]:
    """One hash for each hundred answers."""
    block: list[str] = []
    for answer in answers:
        block.append(answer)
        if len(block) == _TOGETHER:
            yield hashlib.sha256("\n".join(block).encode()).hexdigest()
            block.clear()


def synthesize(app: Path, folder: Path) -> None:
    """Write an app's templates, without hashes of assets."""
    out = folder.with_suffix(".out")
    environment = {**os.environ, "CDK_OUTDIR": str(out), "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, str(app)], check=True, cwd=app.parent, env=environment, stdout=subprocess.DEVNULL)
    folder.mkdir(exist_ok=True)
    for template in out.rglob("*.template.json"):
        text = re.sub(r"[0-9a-f]{64}", "ASSET", template.read_text())
        (folder / template.name).write_text(text)
    shutil.rmtree(out)


def _plan(chance: random.Random) -> Plan:
    def capacity() -> Capacity:
        low = chance.randint(1, 900)
        if chance.random() < 0.2:
            return Capacity.fixed(low)
        return Capacity.autoscaled(min_capacity=low, max_capacity=low + chance.randint(0, 3_000))

    windows = [
        Window.once(
            f"load-{number}",
            start=f"2027-03-04T{9 + number:02}:00",
            end=f"2027-03-04T{10 + number:02}:30",
            timezone="UTC",
            write_min=chance.randint(901, 1_500),
            write_max=chance.randint(4_500, 5_000),
        )
        for number in range(chance.randint(0, 2))
    ]
    return (
        Plan(read=capacity(), write=Capacity.autoscaled(min_capacity=7, max_capacity=4_000), windows=tuple(windows))
        if windows
        else Plan(read=capacity(), write=capacity())
    )


def _lease(chance: random.Random, number: int) -> Lease:
    start = NOW + timedelta(minutes=chance.randint(-90, 60), seconds=chance.randint(0, 59))
    return Lease(
        id=f"job-{number}",
        table="orders",
        index=None,
        dimension=chance.choice(list(Dimension)),
        units=chance.randint(1, 3_000),
        is_total=chance.random() < 0.3,
        start=start,
        end=start + timedelta(minutes=chance.randint(1, 300)),
        owner=chance.choice(["loader", "reporter"]),
        released=start + timedelta(minutes=1) if chance.random() < 0.1 else None,
    )


def _observation(chance: random.Random, mode: Mode) -> Observation:
    minutes = chance.choice([0, 3, 60, 500])
    level = chance.choice([0, 40, 3_000, 90_000])
    consumed = [None if chance.random() < 0.02 else chance.randint(0, level) for _ in range(minutes)]
    throttled = [chance.randint(1, level + 1) if chance.random() < 0.05 else 0 for _ in range(minutes)]
    newest = int(NOW.timestamp()) // 60 - 4
    pulses = None
    # pulses are not read where demand is not followed
    if chance.random() < 0.5 and mode.follows_demand:
        slots = chance.randint(1, 60)
        pulses = Slots(
            newest * 6 + 5 + chance.randint(0, 22),
            [None if chance.random() < 0.1 else chance.randint(0, level // 6) for _ in range(slots)],
            [chance.randint(0, level) if chance.random() < 0.1 else 0 for _ in range(slots)],
        )
    hot, lacks = chance.randint(0, 2), chance.random() < 0.05
    return Observation.of(newest, consumed, throttled, hot, lacks_throttles=lacks, pulses=pulses)


def _review(chance: random.Random) -> str:
    plan, mode = _plan(chance), chance.choice(list(Mode))
    targets = {
        target.key: SeenTarget(
            registered=None if chance.random() < 0.3 else Bounds(chance.randint(1, 900), 4_000),
            is_suspended=chance.random() < 0.05,
            observation=_observation(chance, mode),
        )
        for target in plan.targets()
        if chance.random() < 0.9
    }
    raised = NOW - timedelta(seconds=chance.randint(-60, 9_000)) if chance.random() < 0.6 else None
    resource = SeenResource(
        provisioned=Units(chance.randint(0, 2_000), chance.randint(1, 2_000)),
        is_active=chance.random() < 0.9,
        mark=None if chance.random() < 0.3 else Units(12_000, 4_000),
        last_increase=raised,
        budget=DecreaseBudget(chance.randint(0, 5), NOW - timedelta(minutes=chance.randint(0, 90))),
    )
    leases = tuple(_lease(chance, number) for number in range(chance.randint(0, 3)))
    boosted = {key: chance.randint(0, 300) for key in targets if chance.random() < 0.3}
    seen = SeenTable({None: resource}, targets, leases, boosted, chance.random() < 0.05)
    clock = Clock(int(NOW.timestamp()) // 60 + chance.randint(-1, 60), NOW)
    return repr(review(ScaledPlan(table="orders", mode=mode, plan=plan), seen, clock))


def _grant(chance: random.Random) -> str:
    asked = _lease(chance, 1_000)
    (target,) = (found for found in _plan(chance).targets() if found.key == asked.key)
    others = [_lease(chance, number) for number in range(chance.randint(0, 4))]
    cap = chance.randint(1, 4_000) if chance.random() < 0.3 else None
    planned = timeline(target, asked.start - timedelta(days=1), asked.end + timedelta(days=8))
    ceiling = target.capacity.max_with_boosts
    demand = chance.choice([0, 0, 700])
    return repr(grant(asked, planned, others, max_with_boosts=ceiling, demand_units=demand, cap_units=cap))


def _documents(chance: random.Random) -> Iterator[str]:
    for number in range(500):
        yield _plan(chance).to_json()
        yield repr(lease_document(_lease(chance, number)))


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
