"""Reads the tables of an account and region as they are set up now; nothing is changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final

from highwater.core import Dimension
from highwater.core.names import TargetName
from highwater.core.plan.zones import find_zone
from highwater.core.tracking import TargetTracking
from highwater_lab.services.autoscaling import ScheduledChange
from highwater_lab.services.data_costs import TableData
from highwater_lab.services.schedules import parse_expression
from highwater_lab.simulation import (
    KnownTable,
    ReplicaSetup,
    ResourceSetup,
    ScalableTargetSetup,
    TableSetup,
    TargetSetup,
)
from highwater_lab.traffic import Stream

if TYPE_CHECKING:
    from mypy_boto3_application_autoscaling import ApplicationAutoScalingClient
    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_dynamodb import DynamoDBClient

# Requests under way at once; botocore keeps ten connections
WORKERS: Final = 8
_ORIGIN: Final = datetime(2000, 1, 1, tzinfo=UTC)
_READ: Final = frozenset({"ACTIVE", "UPDATING"})
_GB: Final = 1024**3


@dataclass(frozen=True, slots=True)
class RegionClients:
    """The AWS clients of one account in one region; several threads may share them."""

    region: str
    dynamodb: DynamoDBClient
    autoscaling: ApplicationAutoScalingClient
    cloudwatch: CloudWatchClient
    optimizer: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveTable:
    """A table of an account as it is set up now.

    Attributes:
        account: The account's number.
        region: The region.
        name: The table's name.
        setup: Capacity and scaling of the table and its indexes.
        size_gb: The data of the table and its indexes, as of the last hours.
        recoverable_gb: That of the table and its local indexes, which point-in-time recovery is billed for.
        has_stream: Whether its stream is on.
        problem: Why it cannot be judged, empty if it can.
        is_bound_to_on_demand: Whether it has vector indexes, which only an on-demand table may have.
    """

    account: str
    region: str
    name: str
    setup: TableSetup
    size_gb: float = 0.0
    recoverable_gb: float = 0.0
    has_stream: bool = False
    problem: str = ""
    is_bound_to_on_demand: bool = False

    @property
    def label(self) -> str:
        """The account, the region and the name."""
        return f"{self.account}/{self.region}/{self.name}"

    @property
    def streams(self) -> tuple[Stream, ...]:
        """Reads and writes of the table and of each index."""
        return tuple(Stream(each.index, dimension) for each in self.setup.resources for dimension in Dimension)


def list_tables(dynamodb: DynamoDBClient) -> tuple[list[str], datetime]:
    """Return the names of all tables of an account and region, and the service's time when it answered."""
    names: list[str] = []
    now = datetime.min.replace(tzinfo=UTC)
    for page in dynamodb.get_paginator("list_tables").paginate():
        names += page["TableNames"]
        now = parsedate_to_datetime(page["ResponseMetadata"]["HTTPHeaders"]["date"]).astimezone(UTC)
    return names, now


def read_tables(
    clients: RegionClients, names: Iterable[str], since: datetime, *, can_be_fewer: bool = True
) -> list[LiveTable]:
    """Return these tables; one that was deleted meanwhile is left out.

    *can_be_fewer* is whether fewer days can be asked for. A table that was created or that changed its mode after
    *since*, or whose capacity something other than auto scaling changed, has a problem: what it cost and could take is
    not known.
    """
    scaling = read_scaling(clients.autoscaling)

    def read(name: str) -> LiveTable | None:
        try:
            described: Any = clients.dynamodb.describe_table(TableName=name)["Table"]
        except clients.dynamodb.exceptions.ResourceNotFoundException:
            return None
        return _table(described, clients.region, scaling, since, can_be_fewer=can_be_fewer)

    with ThreadPoolExecutor(WORKERS) as threads:
        return [table for table in threads.map(read, names) if table is not None]


def read_table(dynamodb: DynamoDBClient, autoscaling: ApplicationAutoScalingClient | None, name: str) -> LiveTable:
    """Return one table as it is set up now; without a client for auto scaling, as if nothing scaled it."""
    described: Any = dynamodb.describe_table(TableName=name)["Table"]
    scaling = {} if autoscaling is None else read_scaling(autoscaling)
    return _table(described, described["TableArn"].split(":")[3], scaling, _ORIGIN)


def _table(
    described: Any,
    region: str,
    scaling: Mapping[TargetName, LiveScaling],
    since: datetime,
    *,
    can_be_fewer: bool = True,
) -> LiveTable:
    name = described["TableName"]
    indexes = described.get("GlobalSecondaryIndexes", [])
    recoverable = [described, *described.get("LocalSecondaryIndexes", [])]
    setup = TableSetup(
        name=name,
        resources=tuple(_resource(name, each, scaling) for each in _each_resource(described)),
        is_on_demand=described.get("BillingModeSummary", {}).get("BillingMode") == "PAY_PER_REQUEST",
        is_infrequent_access=described.get("TableClassSummary", {}).get("TableClass") == "STANDARD_INFREQUENT_ACCESS",
        size_gb=described.get("TableSizeBytes", 0) // _GB,
        region=region,
        replicas=_replicas(described, region, scaling),
        known=KnownTable.of_description(described, table_name=name, is_live=True),
    )
    return LiveTable(
        account=described["TableArn"].split(":")[4],
        region=region,
        name=name,
        setup=setup,
        size_gb=_bytes([*recoverable, *indexes]) / _GB,
        recoverable_gb=_bytes(recoverable) / _GB,
        has_stream=described.get("StreamSpecification", {}).get("StreamEnabled", False),
        problem=_problem(described, setup, scaling, since, can_be_fewer=can_be_fewer),
        is_bound_to_on_demand=bool(described.get("VectorIndexes")),
    )


def _bytes(described: Iterable[Any]) -> int:
    return sum(each.get("TableSizeBytes", each.get("IndexSizeBytes", 0)) for each in described)


def read_data(clients: RegionClients, tables: Sequence[LiveTable]) -> list[TableData]:
    """Return what is stored of the tables of one region, with their recovery and their on-demand backups.

    Raises what boto3 raises.
    """
    backups: dict[str, int] = {}
    for page in clients.dynamodb.get_paginator("list_backups").paginate(BackupType="USER"):
        for backup in page["BackupSummaries"]:
            backups[backup["TableName"]] = backups.get(backup["TableName"], 0) + backup.get("BackupSizeBytes", 0)

    def read(table: LiveTable) -> TableData:
        answer: Any = clients.dynamodb.describe_continuous_backups(TableName=table.name)
        recovery = answer["ContinuousBackupsDescription"].get("PointInTimeRecoveryDescription", {})
        is_on = recovery.get("PointInTimeRecoveryStatus") == "ENABLED"
        return TableData(
            region=table.region,
            is_infrequent_access=table.setup.is_infrequent_access,
            storage_gb=table.size_gb,
            recovery_gb=table.recoverable_gb if is_on else 0.0,
            backup_gb=backups.pop(table.name, 0) / _GB,
            has_stream=table.has_stream,
        )

    with ThreadPoolExecutor(WORKERS) as threads:
        data = list(threads.map(read, tables))
    # a backup stays when its table is deleted
    return [*data, *(TableData(region=clients.region, backup_gb=size / _GB) for size in backups.values())]


def _replicas(described: Any, region: str, scaling: Mapping[TargetName, LiveScaling]) -> tuple[ReplicaSetup, ...]:
    """Return the other replicas of a global table, with the reads of this one, as their own are not known here."""
    own = [_resource(described["TableName"], each, scaling).read for each in _each_resource(described)]
    return tuple(
        ReplicaSetup(region=replica["RegionName"], read_units=sum(each.min for each in own))
        for replica in described.get("Replicas", [])
        if replica["RegionName"] != region
    )


def _each_resource(described: Any) -> list[Any]:
    return [described, *described.get("GlobalSecondaryIndexes", [])]


def _most(described: Any, member: str) -> int | None:
    units = described.get("OnDemandThroughput", {}).get(member, -1)
    return units if units > 0 else None


def _problem(
    described: Any,
    setup: TableSetup,
    scaling: Mapping[TargetName, LiveScaling],
    since: datetime,
    *,
    can_be_fewer: bool,
) -> str:
    """Return why the table cannot be judged by its traffic since then and its present settings; empty if it can."""
    if described["TableStatus"] not in _READ:
        return f"is {described['TableStatus']}"
    if described.get("Replicas"):
        return "is a global table, whose replicas share modes and writes; rehearse its template"
    created = described["CreationDateTime"]
    if created > since:
        return f"was created at {_shown(created)} UTC; {_when(created, can_be_fewer=can_be_fewer)}"
    switched = described.get("BillingModeSummary", {}).get("LastUpdateToPayPerRequestDateTime")
    if setup.is_on_demand and switched is not None and switched > since:
        return f"is on demand since {_shown(switched)} UTC only; {_when(switched, can_be_fewer=can_be_fewer)}"
    names = {TargetName(setup.name, each.index, dimension): each for each in setup.resources for dimension in Dimension}
    paused = [f"{name}" for name in names if (scaled := scaling.get(name)) is not None and scaled.is_suspended]
    if paused:
        return f"has suspended scaling ({', '.join(paused)}); highwater resume, or judge it later"
    others = [other for name in names if (scaled := scaling.get(name)) is not None for other in scaled.others]
    if others and not setup.is_on_demand:
        return f"{'; '.join(others)}, which is not simulated"
    for each in [] if setup.is_on_demand else _each_resource(described):
        throughput, index = each.get("ProvisionedThroughput", {}), each.get("IndexName")
        moved = [throughput.get(f"Last{kind}DateTime") for kind in ("Increase", "Decrease")]
        last = max((at for at in moved if at is not None), default=None)
        is_scaled = any(TargetName(setup.name, index, dimension) in scaling for dimension in Dimension)
        if last is not None and last > since and not is_scaled:
            return (
                f"has capacity that something other than auto scaling changed at {_shown(last)} UTC, so what it cost "
                "is not known"
            )
    return ""


def _shown(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M}"


def _when(changed: datetime, *, can_be_fewer: bool) -> str:
    """Return when a table that has changed can be judged; a day is the least that can be asked for."""
    if can_be_fewer:
        return "ask for fewer days"
    return f"a day of it can be judged from {_shown(changed + timedelta(days=1))} UTC on"


def _resource(table: str, described: Any, scaling: Mapping[TargetName, LiveScaling]) -> ResourceSetup:
    index, warm = described.get("IndexName"), described.get("WarmThroughput", {})
    read, write = (
        TargetSetup.of_scaling(
            described.get("ProvisionedThroughput", {}).get(f"{dimension.title()}CapacityUnits", 0),
            scaling.get(TargetName(table, index, dimension)),
        )
        for dimension in Dimension
    )
    return ResourceSetup(
        index=index,
        read=read,
        write=write,
        warm_read_units=warm.get("ReadUnitsPerSecond", 0),
        warm_write_units=warm.get("WriteUnitsPerSecond", 0),
        max_read_units=_most(described, "MaxReadRequestUnits"),
        max_write_units=_most(described, "MaxWriteRequestUnits"),
    )


@dataclass(slots=True, kw_only=True)
class LiveScaling(ScalableTargetSetup):
    """A scalable target of an account.

    Attributes:
        is_suspended: Whether any of its scaling is suspended.
        policies: The names of its scaling policies.
        others: What scales it beside target tracking and scheduled actions that can be simulated, in words.
    """

    is_suspended: bool
    policies: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


def read_scaling(autoscaling: ApplicationAutoScalingClient) -> dict[TargetName, LiveScaling]:
    """Read the scalable targets of all tables of a region, with what scales them."""
    found: dict[TargetName, LiveScaling] = {}
    for name, target in _each(autoscaling, "describe_scalable_targets", "ScalableTargets"):
        is_suspended = any(target.get("SuspendedState", {}).values())
        found[name] = LiveScaling(min=target["MinCapacity"], max=target["MaxCapacity"], is_suspended=is_suspended)
    for name, policy in _each(autoscaling, "describe_scaling_policies", "ScalingPolicies"):
        tracking = policy.get("TargetTrackingScalingPolicyConfiguration")
        if name in found:
            found[name] = replace(found[name], policies=(*found[name].policies, policy["PolicyName"]))
        if name in found and (tracking is None or "CustomizedMetricSpecification" in tracking):
            how = "by steps" if tracking is None else "by a metric of its own"
            other = f"policy {policy['PolicyName']} scales its {name.dimension}s {how}"
            found[name] = replace(found[name], others=(*found[name].others, other))
        elif name in found and tracking is not None:
            found[name] = replace(
                found[name],
                tracking=TargetTracking(
                    target_percent=min(90, max(20, round(tracking["TargetValue"]))),
                    scale_in_cooldown=tracking.get("ScaleInCooldown", 0),
                    scale_out_cooldown=tracking.get("ScaleOutCooldown", 0),
                    disable_scale_in=tracking.get("DisableScaleIn", False),
                ),
            )
    for name, action in _each(autoscaling, "describe_scheduled_actions", "ScheduledActions"):
        zone = find_zone(action.get("Timezone") or "UTC")
        if name in found and zone is None:
            other = f"scheduled action {action['ScheduledActionName']} is in the unknown time zone {action['Timezone']}"
            found[name] = replace(found[name], others=(*found[name].others, other))
        elif name in found and zone is not None:
            bounds = action.get("ScalableTargetAction", {})
            change = ScheduledChange(
                name=action["ScheduledActionName"],
                expression=parse_expression(action["Schedule"], zone, action.get("StartTime", _ORIGIN)),
                min=bounds.get("MinCapacity"),
                max=bounds.get("MaxCapacity"),
                start=action.get("StartTime"),
                end=action.get("EndTime"),
            )
            found[name] = replace(found[name], actions=(*found[name].actions, change))
    return found


def _each(autoscaling: Any, operation: str, member: str) -> Iterator[tuple[TargetName, Any]]:
    for page in autoscaling.get_paginator(operation).paginate(ServiceNamespace="dynamodb"):
        for each in page[member]:
            name = TargetName.find(each["ResourceId"], each["ScalableDimension"])
            if name is not None:
                yield name, each


def read_idle(optimizer: Any) -> dict[str, float]:
    """Return the tables of a region that Compute Optimizer calls idle, with what it says they cost, in USD a month."""
    found: dict[str, float] = {}
    token: dict[str, str] = {}
    while True:
        tables = [{"name": "ResourceType", "values": ["DynamoDBTable"]}]
        page = optimizer.get_idle_recommendations(filters=tables, **token)
        for each in page.get("idleRecommendations", []):
            savings = each.get("savingsOpportunity", {}).get("estimatedMonthlySavings", {}).get("value", 0.0)
            found[each["resourceArn"].rpartition("/")[2]] = savings
        if not page.get("nextToken"):
            return found
        token = {"nextToken": page["nextToken"]}
