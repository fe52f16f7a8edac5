"""What the scaler needs of AWS in one region; `highwater.aws.region` is the real one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Protocol

from highwater.aws.alarms import TargetAlarm
from highwater.aws.autoscaling import RegisteredTargets
from highwater.aws.plans import ScaledPlans
from highwater.aws.tables import DescribedTable
from highwater.core.names import TargetName
from highwater.core.scaler import Observation
from highwater.core.schedule.bounds import Bounds
from highwater.core.units import Units


class Region(Protocol):
    """One region's tables, targets, metrics, alarms and plans; `AwsRegion` documents each method."""

    def read_plans(self, scaler: str | None = None) -> ScaledPlans: ...  # noqa: D102

    def read_plans_of(self, scaler: str, labels: Iterable[str]) -> ScaledPlans: ...  # noqa: D102

    def read_tagged_plans(self) -> ScaledPlans: ...  # noqa: D102

    def read_tagged_scalers(self) -> tuple[str, ...]: ...  # noqa: D102

    def read_alarms(  # noqa: D102
        self, names: Iterable[TargetName] | None = None
    ) -> Mapping[TargetName, TargetAlarm]: ...

    def read_targets(self, names: Iterable[TargetName]) -> RegisteredTargets: ...  # noqa: D102

    def read_consumption(  # noqa: D102
        self, names: Iterable[TargetName], minutes: int, now: datetime
    ) -> Mapping[TargetName, Observation]: ...

    def with_throttles(  # noqa: D102
        self, consumed: Mapping[TargetName, Observation], minutes: int, now: datetime
    ) -> Mapping[TargetName, Observation]: ...

    def describe_table(self, table: str) -> DescribedTable: ...  # noqa: D102

    def set_bounds(self, name: TargetName, bounds: Bounds) -> None: ...  # noqa: D102

    def set_capacity(self, table: str, index: str | None, units: Units) -> None: ...  # noqa: D102

    def move_threshold(self, alarm: TargetAlarm, threshold: int) -> None: ...  # noqa: D102
