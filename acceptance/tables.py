"""The tables of the suite as DynamoDB and Application Auto Scaling have them."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from acceptance.place import Place
from highwater.core.names import TargetName

# The floor and ceiling of writes of the app's tables, and the most that the job of a boost is granted
FLOOR, CEILING, GRANTED = 10, 200, 60
# The same of a global table, in each of its regions
REPLICA_FLOOR, REPLICA_CEILING = 7, 30
# An index, its key, and its units of writes
INDEX, INDEX_KEY, INDEX_UNITS = "by-visitor", "visitor", 5
# The read units of the tables whose burst capacity is measured
BURST_UNITS: Final = (25, 100, 400)
# Of real time: a local cloud's deploy is quick, and in an account CloudFormation's calls have the same rates
_LOOKS_EVERY_SECONDS: Final = {True: 1.0, False: 0.005}
# The same; a change takes auto scaling half a minute, so that one is under way for most of the time
_RAISES_EVERY_SECONDS: Final = {True: 15.0, False: 0.5}


def read_units(place: Place, name: TargetName) -> int:
    """Read the provisioned units of one dimension."""
    throughput = read_resource(place, name.table, name.index)["ProvisionedThroughput"]
    return int(throughput[f"{name.dimension.title()}CapacityUnits"])


def read_floor(place: Place, name: TargetName) -> int | None:
    """Read the floor of one dimension's scalable target, if there is one."""
    return read_bounds(place, name)[0]


def read_bounds(place: Place, name: TargetName) -> tuple[int | None, int | None]:
    """Read the floor and ceiling of one dimension's scalable target, if there is one."""
    found = place.client("application-autoscaling").describe_scalable_targets(
        ServiceNamespace="dynamodb", ResourceIds=[name.resource_id], ScalableDimension=name.scalable_dimension
    )["ScalableTargets"]
    return (found[0]["MinCapacity"], found[0]["MaxCapacity"]) if found else (None, None)


def register(place: Place, name: TargetName, low: int, high: int) -> None:
    """Set the floor and ceiling of one dimension, as nothing of Highwater does."""
    place.client("application-autoscaling").register_scalable_target(
        ServiceNamespace="dynamodb",
        ResourceId=name.resource_id,
        ScalableDimension=name.scalable_dimension,
        MinCapacity=low,
        MaxCapacity=high,
    )


def read_resource(place: Place, table: str, index: str | None) -> dict[str, Any]:
    """Describe a table, or one of its indexes."""
    described: dict[str, Any] = place.client("dynamodb").describe_table(TableName=table)["Table"]
    indexes = described.get("GlobalSecondaryIndexes", ())
    return described if index is None else next(each for each in indexes if each["IndexName"] == index)


@contextmanager
def raising(place: Place, name: TargetName, floors: Sequence[int], ceiling: int) -> Iterator[list[str]]:
    """Raise the floor again and again while a block runs, as a scaler in a surge does; yield what each raise met."""
    is_over, met = threading.Event(), list[str]()

    def raise_on() -> None:
        for floor in floors:
            try:
                register(place, name, floor, ceiling)
                met.append("accepted")
            except ClientError as refused:
                met.append(str(refused.response["Error"]["Code"]))
            if is_over.wait(_RAISES_EVERY_SECONDS[place.is_real]):
                return

    with ThreadPoolExecutor(1) as pool:
        pool.submit(raise_on)
        try:
            yield met
        finally:
            is_over.set()


@dataclass(slots=True)
class LowestFloor:
    """The lowest floor that is seen while a block runs, and for how many seconds it was below *planned*.

    A look that AWS refuses is left out. Both are unknown if there was no other.
    """

    place: Place
    name: TargetName
    planned: int
    floor: int | None = None
    seconds: int | None = None
    _low: timedelta = timedelta(0)

    @contextmanager
    def watching(self) -> Iterator[LowestFloor]:
        """Watch during the block, in a thread."""
        is_over = threading.Event()

        def watch() -> None:
            before = self.place.status().now
            while not is_over.wait(_LOOKS_EVERY_SECONDS[self.place.is_real]):
                before = self.look(before)

        with ThreadPoolExecutor(1) as pool:
            pool.submit(watch)
            try:
                yield self
            finally:
                is_over.set()

    def look(self, before: datetime) -> datetime:
        """Look once; the look before was at *before*. Return the time."""
        with suppress(BotoCoreError, ClientError):
            floor = read_floor(self.place, self.name) or 0
            self._low += (self.place.status().now - before) * (floor < self.planned)
            self.floor = floor if self.floor is None else min(self.floor, floor)
            self.seconds = round(self._low.total_seconds())
        return self.place.status().now
