"""Names of targets in Application Auto Scaling and in alarms, and names of the SSM parameters."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Final

from highwater.core.units import Dimension

# Names of the scaler's alarms begin with this; a table's name has no blank.
ALARM_PREFIX: Final = "Highwater "
# An alarm's name has at most 255 characters (Amazon CloudWatch API Reference, PutMetricAlarm, read 2026-11). The names
# of a table and an index, of up to 255 characters each, are cut one by one: at synth, a table's name may be unknown.
LONGEST_TABLE_IN_ALARM: Final = 160
_LONGEST_INDEX_IN_ALARM: Final = 76
_DIGEST_CHARACTERS: Final = 16
# SSM parameters below this path contain the plans: a path for each scaler, and below it a parameter for each table.
PLANS_PATH: Final = "/highwater/plans/"
# SSM parameters below these paths contain the grants of boosts, the coordinators' URLs, and their tables of leases.
BOOST_CAPS_PATH: Final = "/highwater/boosts/"
COORDINATORS_PATH: Final = "/highwater/coordinators/"
LEASES_PATH: Final = "/highwater/leases/"
# and the names of the tables with the pulses, by coordinator
PULSES_PATH: Final = "/highwater/pulses/"
# The attributes of every item in a coordinator's table: its partition key, its sort key, and when DynamoDB deletes it.
PARTITION_KEY, SORT_KEY, TTL_ATTRIBUTE = "table", "item", "expires"
_BUDGET: Final = "budget#"
# Of budgets, and of jobs, whose budgets have their ids by default: room for a paced construct's name, a hyphen and the
# name of an execution, which has up to 80 (AWS Step Functions API Reference, StartExecution, read 2026-11)
MOST_BUDGET_CHARACTERS: Final = 121
JOB_PREFIX: Final = "job#"
# Names of the scalers' log groups begin with this.
LOG_GROUPS_PREFIX: Final = "/highwater/scaler/"
# The queues of `BufferedWrites` have this tag, with the name of the table that they buffer for: they stay when their
# stack goes, and nothing else says then whose they are.
BUFFERS_TAG: Final = "highwater:buffers"
# In a template, a table's name may be a reference, so any text without a slash is accepted.
_RESOURCE_ID: Final = re.compile(r"table/(.+?)(?:/index/(.+))?")
_SCALABLE_DIMENSION: Final = re.compile(r"dynamodb:(table|index):(Read|Write)CapacityUnits")


@dataclass(frozen=True, slots=True)
class TargetName:
    """A target of DynamoDB as Application Auto Scaling names it."""

    table: str
    index: str | None
    dimension: Dimension

    @classmethod
    def find(cls, resource_id: str, scalable_dimension: str) -> TargetName | None:
        """Return the target with these names in Application Auto Scaling, `None` for one of another service."""
        resource = _RESOURCE_ID.fullmatch(resource_id)
        dimension = _SCALABLE_DIMENSION.fullmatch(scalable_dimension)
        if resource is None or dimension is None:
            return None
        return cls(resource[1], resource[2], Dimension(dimension[2].lower()))

    @property
    def resource_id(self) -> str:
        """`table/T` or `table/T/index/I`."""
        return f"table/{self.table}" + (f"/index/{self.index}" if self.index else "")

    @property
    def scalable_dimension(self) -> str:
        """The scalable dimension, such as `dynamodb:table:WriteCapacityUnits`."""
        return f"dynamodb:{'index' if self.index else 'table'}:{self.dimension.title()}CapacityUnits"

    def __str__(self) -> str:
        """`table/T/index/I write`."""
        return f"{self.resource_id} {self.dimension}"

    @property
    def alarm(self) -> str:
        """The name of the scaler's alarm: `Highwater orders write`, `Highwater orders/by_status read`.

        A table's name above 160 characters, and an index's above 76, is cut and ends with a digest.
        """
        table = _cut(self.table, LONGEST_TABLE_IN_ALARM)
        resource = table if self.index is None else f"{table}/{_cut(self.index, _LONGEST_INDEX_IN_ALARM)}"
        return f"{ALARM_PREFIX}{resource} {self.dimension}"


def _cut(name: str, most_characters: int) -> str:
    if len(name) <= most_characters:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST_CHARACTERS]
    return f"{name[: most_characters - _DIGEST_CHARACTERS - 1]}~{digest}"


def target_label(index: str | None, dimension: Dimension) -> str:
    """A target in messages: `table write`, `index 'by_status' read`."""
    return f"{resource_label(index)} {dimension}"


def resource_label(index: str | None) -> str:
    """The table itself or one of its indexes in messages: `table`, `index 'by_status'`."""
    return "table" if index is None else f"index {index!r}"


def table_label(table: str, region: str | None) -> str:
    """A table in the scaler's log and commands: `orders`, or `eu-west-1/orders` in another region than the scaler's."""
    return table if region is None else f"{region}/{table}"


def table_of_label(label: str) -> tuple[str, str | None]:
    """The table and region of a label that `table_label` made."""
    *region, table = label.split("/")
    return table, region[0] if region else None


def plans_path(scaler: str) -> str:
    """The path of the SSM parameters with the plans of one scaler."""
    return f"{PLANS_PATH}{scaler}/"


def plan_parameter(scaler: str, table: str, region: str | None = None) -> str:
    """The name of the SSM parameter with a table's plan; *region* is the table's, if the parameter is in another."""
    return f"{plans_path(scaler)}{table_label(table, region)}"


def names_of_parameter(parameter: str) -> tuple[str, str, str | None]:
    """The scaler, table and region of a parameter name that `plan_parameter` made."""
    scaler, _, label = parameter.removeprefix(PLANS_PATH).partition("/")
    return scaler, *table_of_label(label)


def boost_caps_path(coordinator: str) -> str:
    """The path of the SSM parameters with the grants of boosts of one coordinator."""
    return f"{BOOST_CAPS_PATH}{coordinator}/"


def coordinator_parameter(coordinator: str) -> str:
    """The name of the SSM parameter in which jobs find the URL of a coordinator."""
    return f"{COORDINATORS_PATH}{coordinator}"


def pulses_parameter(coordinator: str) -> str:
    """The name of the SSM parameter with the name of the table with the pulses."""
    return f"{PULSES_PATH}{coordinator}"


def leases_parameter(scaler: str) -> str:
    """The name of the SSM parameter with the name of the table with the leases of a scaler's tables."""
    return f"{LEASES_PATH}{scaler}"


def budget_partition(budget: str) -> str:
    """Return the partition key of a shared budget's records in a coordinator's table."""
    return f"{_BUDGET}{budget}"


def job_partition(job: str) -> str:
    """Return the partition key of a job's records in a coordinator's table."""
    return f"{JOB_PREFIX}{job}"
