"""DynamoDB in memory: the calls that the handlers make, refused and delayed as DynamoDB does it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import ClientError

from highwater.core import Dimension, Units
from highwater.core.limits import DEFAULT_TABLE_QUOTA_UNITS
from highwater_lab.services.timing import Timing
from highwater_lab.services.update_table import CapacityControl, Refused

Allowed = Callable[[str, str], bool]
Document = dict[str, Any]

# An index takes longer to build than the hour in which CloudFormation waits for an answer.
BUILD_SECONDS = 3 * 3600
# Until DynamoDB has allocated what the new index needs, nothing of the table can be changed.
ALLOCATION_SECONDS = 600


def refused(code: str, message: str, status: int = 400, operation: str = "Operation") -> ClientError:
    """The error of boto3 for an answer with that code."""
    metadata: Any = {"HTTPStatusCode": status}
    return ClientError({"Error": {"Code": code, "Message": message}, "ResponseMetadata": metadata}, operation)


def is_denied(action: str, arn: str) -> ClientError:
    """The error of boto3 for a call that the caller's role does not allow."""
    return refused("AccessDeniedException", f"not authorized to perform: {action} on resource: {arn}")


# A new tag is listed 6.2 s after it was written (recorded: radkawar/stackd 9dc356f, dynamodb/controls, 2026-09).
TAG_SECONDS = 7


@dataclass
class Table:
    """A table, its indexes, tags, and when its indexes are built. One on demand has 0 units.

    Attributes:
        timing: How long its changes take.
        lasting_status: A status that lasts, empty for none.
        replica_regions: The regions of a global table's replicas, this one among them.
        created: When it was created, in seconds since 1970.
    """

    name: str
    resources: dict[str | None, CapacityControl]
    built: dict[str, int] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    tagged_at: dict[str, int] = field(default_factory=dict)
    timing: Timing = field(default_factory=Timing)
    lasting_status: str = ""
    replica_regions: tuple[str, ...] = ()
    created: int = 0

    @classmethod
    def provisioned(cls, name: str, units: Mapping[str | None, Units], timing: Timing | None = None) -> Table:
        """A table with this capacity, by index, `None` for the table itself."""
        controls = {
            index: CapacityControl({Dimension.READ: each.read, Dimension.WRITE: each.write})
            for index, each in units.items()
        }
        return cls(name, controls, timing=timing or Timing())

    @property
    def arn(self) -> str:
        return f"arn:aws:dynamodb:us-east-1:000000000000:table/{self.name}"

    @property
    def is_on_demand(self) -> bool:
        return not any(self.resources[None].granted.values())

    def is_building(self, index: str | None, at: int) -> bool:
        return index is not None and at < self.built.get(index, 0)

    def is_changing(self, at: int) -> bool:
        return any(control.is_changing(at) or self.is_building(index, at) for index, control in self.resources.items())

    def change(self, index: str | None, wanted: dict[Dimension, int], at: int, *, by_autoscaling: bool) -> None:
        """UpdateTable of the capacity of the table or one index; raises what DynamoDB refuses it with."""
        if index not in self.resources:
            raise refused("ResourceNotFoundException", f"Requested resource not found: {index}")
        # while an index is built, its own capacity can be changed, and DynamoDB may refuse any other change
        building = [each for each in self.resources if each is not None and self.is_building(each, at)]
        allocated = [each for each in building if at >= self.built[each] - BUILD_SECONDS + ALLOCATION_SECONDS]
        if building and not (building == allocated == [index]):
            raise refused("ResourceInUseException", f"Attempt to change a resource which is still in use: {self.name}")
        control = self.resources[index]
        control.settle(at)
        match control.update(at, wanted, self.timing.pace(by_autoscaling=by_autoscaling)):
            case Refused.IN_USE:
                raise refused("ResourceInUseException", "Attempt to change a resource which is still in use")
            case Refused.DECREASES:
                raise refused(
                    "LimitExceededException",
                    "Subscriber limit exceeded: Provisioned throughput decreases are limited within a given UTC day.",
                )
            case Refused.UNCHANGED:
                raise refused("ValidationException", "The provisioned throughput for the table will not change.")
            case Refused.QUOTA:
                raise _above_quota(index, wanted)
            case Refused() as other:
                raise refused("ValidationException", str(other))
            case _:
                return

    def warm_up(self, index: str | None, wanted: dict[Dimension, int], at: int) -> None:
        """UpdateTable of warm throughput; raises what DynamoDB refuses it with."""
        control = self.resources[index]
        control.settle(at)
        kind = "table" if index is None else "index"
        for dimension, units in wanted.items():
            member = f"{dimension.title()}UnitsPerSecond"
            if units < control.mark[dimension]:
                raise refused(
                    "ValidationException",
                    f"Requested {member} for WarmThroughput for {kind} is lower than current WarmThroughput, "
                    "decreasing WarmThroughput is not supported",
                )
            if units > DEFAULT_TABLE_QUOTA_UNITS:
                limit = f"TableMax{dimension.title()}CapacityUnits"
                raise refused("LimitExceededException", f"Requested {member} for WarmThroughput exceeds {limit}")
        control.warm_up(at, wanted, self.timing.warming_pace)

    def put_on_demand(self) -> None:
        """Switch to on-demand capacity, which has 0 units, and marks of its own."""
        warm = {Dimension.READ: 12_000, Dimension.WRITE: 4_000}
        nothing = dict.fromkeys(Dimension, 0)
        self.resources = {index: CapacityControl(nothing, warm) for index in self.resources}

    def use_up_decreases(self, at: int) -> None:
        """Lower and raise capacity by hand until DynamoDB accepts no decrease any more."""
        for control in self.resources.values():
            while control.next_decrease(at) <= at:
                control.budget = control.budget.after(datetime.fromtimestamp(at, UTC))

    def document(self, at: int) -> Document:
        """What DescribeTable answers."""
        described = self._document(None, at) | {"TableArn": self.arn, "TableName": self.name}
        building = any(self.is_building(index, at) for index in self.resources)
        described["CreationDateTime"] = datetime.fromtimestamp(self.created, UTC)
        described["TableStatus"] = self.lasting_status or _status(building or self.resources[None].is_changing(at))
        indexes = [
            self._document(index, at)
            | {
                "IndexName": index,
                "IndexStatus": "CREATING" if self.is_building(index, at) else _status(control.is_changing(at)),
            }
            for index, control in self.resources.items()
            if index is not None
        ]
        replicas = [{"RegionName": region, "ReplicaStatus": "ACTIVE"} for region in self.replica_regions]
        described |= {"Replicas": replicas} if replicas else {}
        return described | ({"GlobalSecondaryIndexes": indexes} if indexes else {})

    def _document(self, index: str | None, at: int) -> Document:
        control = self.resources[index]
        control.settle(at)
        budget = control.budget_shown(at)
        now = datetime.fromtimestamp(at, UTC)
        throughput: Document = {
            f"{dimension.title()}CapacityUnits": control.units[dimension] for dimension in Dimension
        }
        throughput["NumberOfDecreasesToday"] = budget.used_on(now)
        if budget.last is not None:
            throughput["LastDecreaseDateTime"] = budget.last
        if control.last_increase is not None:
            throughput["LastIncreaseDateTime"] = datetime.fromtimestamp(control.last_increase, UTC)
        warm: Document = {f"{dimension.title()}UnitsPerSecond": control.mark[dimension] for dimension in Dimension}
        warm["Status"] = _status(control.is_warming(at))
        return {"ProvisionedThroughput": throughput, "WarmThroughput": warm}


@dataclass
class TablesClient:
    """A boto3 client of DynamoDB, for what `highwater.aws.tables` calls."""

    tables: dict[str, Table]
    now: Callable[[], int]
    allowed: Allowed

    def describe_table(self, *, TableName: str) -> Document:
        return {"Table": self._found("dynamodb:DescribeTable", TableName).document(self.now())}

    def update_table(self, *, TableName: str, **request: Any) -> Document:
        table = self._found("dynamodb:UpdateTable", TableName)
        changes = request.get("GlobalSecondaryIndexUpdates", [])
        parts: list[tuple[str | None, Document]] = [(None, request)]
        parts += [(change["Update"]["IndexName"], change["Update"]) for change in changes]
        for index, part in parts:
            if "ProvisionedThroughput" in part:
                table.change(index, _units(part["ProvisionedThroughput"]), self.now(), by_autoscaling=False)
            if "WarmThroughput" in part:
                wanted = {each: part["WarmThroughput"][f"{each.title()}UnitsPerSecond"] for each in Dimension}
                table.warm_up(index, wanted, self.now())
        return {}

    def tag_resource(self, *, ResourceArn: str, Tags: list[Document]) -> Document:
        table = self._found("dynamodb:TagResource", ResourceArn)
        table.tags.update((tag["Key"], tag["Value"]) for tag in Tags)
        table.tagged_at.update((tag["Key"], self.now()) for tag in Tags)
        return {}

    def untag_resource(self, *, ResourceArn: str, TagKeys: list[str]) -> Document:
        tags = self._found("dynamodb:UntagResource", ResourceArn).tags
        for key in TagKeys:
            tags.pop(key, None)
        return {}

    def get_paginator(self, operation: str) -> TablesClient:
        assert operation == "list_tags_of_resource"
        return self

    def paginate(self, *, ResourceArn: str) -> Iterator[Document]:
        table = self._found("dynamodb:ListTagsOfResource", ResourceArn)
        listed = [key for key in table.tags if self.now() - table.tagged_at.get(key, 0) >= TAG_SECONDS]
        yield {"Tags": [{"Key": key, "Value": table.tags[key]} for key in listed]}

    def _found(self, action: str, name: str) -> Table:
        name = name.rpartition("/")[2]
        arn = f"arn:aws:dynamodb:us-east-1:000000000000:table/{name}"
        if not self.allowed(action, arn):
            raise is_denied(action, arn)
        if name not in self.tables:
            raise refused("ResourceNotFoundException", f"Requested resource not found: Table: {name} not found")
        return self.tables[name]


def _status(is_changing: bool) -> str:
    return "UPDATING" if is_changing else "ACTIVE"


def _above_quota(index: str | None, wanted: dict[Dimension, int]) -> ClientError:
    kind = "table" if index is None else "index"
    highest = max(wanted, key=lambda dimension: wanted[dimension])
    return refused(
        "LimitExceededException",
        f"The requested {highest.title()}CapacityUnits, {wanted[highest]}, is above the per {kind} maximum for the "
        f"account in us-east-1. Per {kind} maximum: {DEFAULT_TABLE_QUOTA_UNITS}.",
    )


def _units(throughput: Document) -> dict[Dimension, int]:
    return {dimension: int(throughput[f"{dimension.title()}CapacityUnits"]) for dimension in Dimension}
