"""A coordinator with its region and lease table in memory, and the tick of its function."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from highwater.aws.coordinator_table import LeaseTable
from highwater.aws.observe import Kept
from highwater.core import Capacity, Dimension, Plan
from highwater.core.boosts import BoostCap, Caller
from highwater.core.names import TargetName
from highwater.core.scaler import Mode
from highwater.handlers.coordinator.coordinator import Call, Coordinator
from highwater.handlers.coordinator.refusals import RefusedError
from highwater.handlers.coordinator.state import KeptTables
from highwater.handlers.scaler.gather import RunOutcome
from highwater.handlers.scaler.run import Options
from tests.memory_aws.leases import MemoryDynamo
from tests.memory_aws.stage import MINUTE, Stage

PLAN = Plan(
    read=Capacity.autoscaled(min_capacity=7, max_capacity=900),
    write=Capacity.autoscaled(min_capacity=12, max_capacity=4_000),
)
ORDERS = TargetName("orders", None, Dimension.WRITE)
FIX = "give it grant_boost in the CDK app, and deploy"
WINDOW = "declare a window for what lasts longer"
LOADER, SMALL = Caller("123456789012:role/Loader", "job"), Caller("123456789012:role/Small")
REPLICAS = ("ap-south-1", "us-east-1", "eu-west-1")
SECOND, DAY = timedelta(seconds=1), timedelta(days=1)
CAPS = (
    BoostCap(caller=LOADER.name, max_read=0, max_write=9_000),
    BoostCap(caller=SMALL.name, max_read=20, max_write=30, tables=("orders",)),
)


@dataclass
class World:
    """What one coordinator works with."""

    mode: Mode = Mode.BOOSTS
    plan: Plan = PLAN
    stage: Stage = field(default_factory=lambda: Stage(Options(name="boosts")))
    dynamodb: MemoryDynamo = field(default_factory=MemoryDynamo)
    seconds: float = 100.0
    kept: KeptTables = field(init=False)

    def __post_init__(self) -> None:
        self.kept = KeptTables(clock=lambda: float(self.stage.account.now))
        self.stage.table("orders", self.plan, self.mode)

    def turn(self, label: str = "orders") -> RunOutcome:
        return self._serve("boost", label)

    def _serve(self, kind: str, label: str) -> RunOutcome:
        self.stage.kept = Kept(self.leases)
        return self.stage.serve({"highwater": kind, "tables": [label]}, self.seconds)

    @property
    def listed(self) -> list[str]:
        """The tables that each tick serves."""
        return list(self.leases.listed_tables())

    @property
    def leases(self) -> LeaseTable:
        client: Any = self.dynamodb
        return LeaseTable("leases", client)

    def coordinator(self) -> Coordinator:
        """A new one, as each invocation makes it."""
        return Coordinator(
            scaler="boosts",
            region_name="eu-central-1",
            region_of=self.stage.region_of,
            tables=self.kept,
            leases=self.leases,
            read_caps=lambda: CAPS,
            turn=self.turn,
            pause=lambda _: None,
            remaining_seconds=lambda: self.seconds,
            now=self.stage.now,
        )

    def ask(self, action: str = "begin", caller: Caller = LOADER, **members: Any) -> dict[str, Any]:
        """Ask and return the answer, with what a boost of 100 writes for ten minutes has in it."""
        given: dict[str, Any] = {"id": "nightly-1", "table": "orders"}
        given |= {"write": 100, "minutes": 10} if action == "begin" and not _sizes(members) else {}
        given |= {"minutes": 10} if action in ("begin", "renew") else {}
        document = {name: value for name, value in (given | members).items() if value is not None}
        return self.coordinator().serve(Call(caller, action, document))

    def refusal(self, action: str = "begin", caller: Caller = LOADER, **members: Any) -> tuple[int, str]:
        """Ask for what is refused; the status and the text."""
        with pytest.raises(RefusedError) as refused_one:
            self.ask(action, caller, **members)
        return refused_one.value.status, str(refused_one.value)

    def tick(self, minutes: int = 0) -> int:
        """Let time pass, then the function's tick run once, and return the floor."""
        self.stage.advance(minutes * MINUTE)
        self.serve_tick()
        return self.floor

    def serve_tick(self) -> RunOutcome:
        """Serve a tick at the present time."""
        self.stage.kept = Kept(self.leases)
        return self.stage.serve({"highwater": "tick"}, self.seconds)

    def run(self) -> int:
        """Run the scaler's turn as its own tick does, and return the floor."""
        self._serve("tables", "orders")
        return self.floor

    @property
    def floor(self) -> int:
        return self.stage.bounds(ORDERS).min


def _sizes(members: dict[str, Any]) -> bool:
    return any(name.startswith(("write", "read")) for name in members)
