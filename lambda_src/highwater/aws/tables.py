"""DynamoDB's control plane: capacity and marks."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import boto3
from botocore.exceptions import ClientError, ConnectionError, HTTPClientError
from botocore.parsers import ResponseParserError

from highwater.calls.attempts import ONCE, client_config
from highwater.core.budget import DecreaseBudget
from highwater.core.scaler.inputs import SeenResource
from highwater.core.units import Units

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


def client(region: str | None = None) -> DynamoDBClient:
    """Create a client without retries, because DynamoDB rejects an excess decrease for up to an hour."""
    return boto3.client("dynamodb", config=client_config(ONCE), region_name=region)


# Error codes after which the same call may succeed later
_BUSY = frozenset(
    {
        "ConcurrentUpdateException",
        "InternalServerError",
        "RequestLimitExceeded",
        # Lambda's, of a function that is still being created or updated
        "ResourceConflictException",
        "ResourceInUseException",
        "ServiceUnavailable",
        "Throttling",
        "ThrottlingException",
        # of Systems Manager: another call writes the same parameter
        "TooManyUpdates",
        "TooManyRequestsException",
    }
)
# Table statuses that last until an operator restores the table's key or the table (Amazon DynamoDB API Reference,
# TableDescription, read 2026-11)
_OUT_OF_REACH = frozenset({"ARCHIVED", "ARCHIVING", "INACCESSIBLE_ENCRYPTION_CREDENTIALS"})
# Error codes of a missing permission. Right after a deploy, the permission may not have taken effect everywhere yet.
_FORBIDDEN = frozenset({"AccessDenied", "AccessDeniedException", "UnauthorizedOperation"})
# Application Auto Scaling makes the calls to DynamoDB and CloudWatch that it needs with the caller's permissions, and
# answers with a ValidationException where one is denied (its User Guide, "Permissions validation for API calls on
# target resources", read 2026-11). Its words are not documented, and on ECS 16 of 16 such calls were accepted, as the
# service's own role made them (recorded: radkawar/stackd 9dc356f, applicationautoscaling/ecs_authorization, 2026-09).
# So what the exception says is not read.
_REGISTER = "RegisterScalableTarget"
# The quota of concurrent control plane operations (Amazon DynamoDB Developer Guide, "Quotas", read 2026-11)
_CONCURRENT = re.compile(r"simultaneous|concurrent|at once", re.IGNORECASE)

T = TypeVar("T")


class TableNotFoundError(Exception):
    """The table does not exist."""


class TableBusyError(Exception):
    """The table is being changed or a rate limit is exceeded. The same call may succeed later."""


class OvertakenError(Exception):
    """The table has changed since it was described, so the requested change does not apply any more."""


class TableRefusedError(Exception):
    """AWS rejects the call, and would reject it again. The message is from AWS."""


class ForbiddenError(TableRefusedError):
    """A permission is missing or not in effect yet, or may be: auto scaling rejects a target. The message is AWS's."""


class DecreaseRefusedError(Exception):
    """The decreases of the day are used. The message, from DynamoDB, says until when."""


@dataclass(frozen=True, slots=True)
class DescribedTable:
    """The answer of DescribeTable.

    Attributes:
        arn: The table's ARN.
        is_active: Whether the table and its indexes are ACTIVE, except for indexes that are being built. While an index
            is being built, the table's own status may be UPDATING, and some changes are rejected.
        capacities: Provisioned units per second by index name, `None` for the table itself; 0 units if on demand.
        marks: Warm throughput in units per second, by the same keys.
        budgets: Decreases used, by the same keys.
        increased: Instant of the last increase, by the same keys; `None` for never.
        building: Names of the indexes that are being built. This can take hours, during which they cannot be changed.
        is_infrequent_access: Whether the table's class is Standard-IA.
        out_of_reach: The table's status if the table cannot be changed until an operator restores it, else empty.
        warming: Keys of those whose warm throughput is being raised.
        replica_regions: The regions of a global table's other replicas.
        created: When the table was created, in UTC; `None` if the answer does not say.
    """

    arn: str
    is_active: bool
    capacities: dict[str | None, Units]
    marks: dict[str | None, Units] = field(default_factory=dict)
    budgets: dict[str | None, DecreaseBudget] = field(default_factory=dict)
    increased: dict[str | None, datetime | None] = field(default_factory=dict)
    building: frozenset[str] = frozenset()
    is_infrequent_access: bool = False
    out_of_reach: str = ""
    warming: frozenset[str | None] = frozenset()
    replica_regions: tuple[str, ...] = ()
    created: datetime | None = None

    @property
    def is_warming(self) -> bool:
        """Whether warm throughput is being raised. DynamoDB then rejects the deletion of the table."""
        return bool(self.warming)


def seen_resources(described: DescribedTable) -> dict[str | None, SeenResource]:
    """Return the table (`None`) and its indexes as the input of a scaler's turn."""
    return {
        index: SeenResource(
            provisioned=capacity,
            is_active=described.is_active and index not in described.building,
            mark=_known(described.marks.get(index)),
            last_increase=described.increased.get(index),
            budget=described.budgets.get(index, DecreaseBudget()),
        )
        for index, capacity in described.capacities.items()
    }


def _known(mark: Units | None) -> Units | None:
    """Return the mark that DynamoDB reports; it may be missing while the table's throughput is changing."""
    return mark if mark is not None and mark.read and mark.write else None


def describe_table(dynamodb: DynamoDBClient, name: str) -> DescribedTable:
    """Call DescribeTable; raises the errors of `translating`."""
    table = translating(lambda: dynamodb.describe_table(TableName=name)["Table"])
    indexes: dict[str, Any] = {index["IndexName"]: index for index in table.get("GlobalSecondaryIndexes", [])}
    resources: dict[str | None, Any] = {None: table}
    resources.update(indexes.items())
    building = frozenset(name for name, index in indexes.items() if index.get("IndexStatus") == "CREATING")
    return DescribedTable(
        arn=table["TableArn"],
        is_active=(table["TableStatus"] == "ACTIVE" or (bool(building) and table["TableStatus"] == "UPDATING"))
        and all(index.get("IndexStatus") == "ACTIVE" for name, index in indexes.items() if name not in building),
        capacities={key: _units(each, "ProvisionedThroughput", "CapacityUnits") for key, each in resources.items()},
        marks={key: _units(each, "WarmThroughput", "UnitsPerSecond") for key, each in resources.items()},
        budgets={key: _budget(resource) for key, resource in resources.items()},
        increased={key: _last_increase(resource) for key, resource in resources.items()},
        building=building,
        is_infrequent_access=table.get("TableClassSummary", {}).get("TableClass") == "STANDARD_INFREQUENT_ACCESS",
        out_of_reach=table["TableStatus"] if table["TableStatus"] in _OUT_OF_REACH else "",
        warming=frozenset(key for key, each in resources.items() if _is_warming(each)),
        replica_regions=_other_regions(table),
        created=_in_utc(table.get("CreationDateTime")),
    )


def _other_regions(table: Any) -> tuple[str, ...]:
    """Return the regions of the replicas; DescribeTable may list the described one among them."""
    own = table["TableArn"].split(":")[3]
    found = {str(replica.get("RegionName", own)) for replica in table.get("Replicas", [])}
    return tuple(sorted(found - {own}))


def set_mark(dynamodb: DynamoDBClient, name: str, index: str | None, units: Units) -> None:
    """Request warm throughput. *units* must not be below the present warm throughput in either dimension."""
    warm = {"ReadUnitsPerSecond": units.read, "WriteUnitsPerSecond": units.write}
    _update(dynamodb, name, index, {"WarmThroughput": warm})


def set_capacity(dynamodb: DynamoDBClient, name: str, index: str | None, units: Units) -> None:
    """Provision *units* for the table or one index. In a joint call, one rejected part would fail the whole call."""
    throughput = {"ReadCapacityUnits": units.read, "WriteCapacityUnits": units.write}
    _update(dynamodb, name, index, {"ProvisionedThroughput": throughput})


def _update(dynamodb: DynamoDBClient, name: str, index: str | None, change: Any) -> None:
    if index is not None:
        change = {"GlobalSecondaryIndexUpdates": [{"Update": {"IndexName": index, **change}}]}
    translating(lambda: dynamodb.update_table(TableName=name, **change))


def translating(call: Callable[[], T]) -> T:
    """Make a call to AWS and translate its errors.

    Raises:
        TableNotFoundError: The table does not exist.
        TableBusyError: The same call may succeed later; also for network errors and malformed answers.
        OvertakenError: The table has changed since it was described.
        DecreaseRefusedError: The decreases of the day are used.
        ForbiddenError: A permission is missing, or is not in effect yet; or auto scaling rejects a scalable target.
        TableRefusedError: AWS rejects the call for another reason.
    """
    try:
        return call()
    except ClientError as error:
        raise _translated(error) from error
    except (ConnectionError, HTTPClientError, ResponseParserError) as error:
        raise TableBusyError(str(error)) from error
    except KeyError as error:
        # botocore turns a successful answer that is not JSON into an empty one
        raise TableBusyError(f"malformed answer without {error}") from error


def _translated(error: ClientError) -> Exception:
    code, text = error.response["Error"]["Code"], error.response["Error"].get("Message", "")
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if code == "ResourceNotFoundException":
        return TableNotFoundError(text)
    if code in _FORBIDDEN or (code == "ValidationException" and error.operation_name == _REGISTER):
        return ForbiddenError(text or code)
    if code in _BUSY or status >= 500:
        return TableBusyError(text or code)
    # LimitExceededException has permanent and temporary causes, which only its text distinguishes
    if code == "LimitExceededException" and "decreases are limited" in text:
        return DecreaseRefusedError(text)
    if code == "LimitExceededException" and _CONCURRENT.search(text):
        return TableBusyError(text)
    if code == "ValidationException" and ("will not change" in text or "decreasing WarmThroughput" in text):
        return OvertakenError(text)
    return TableRefusedError(text or code)


def _units(resource: Any, member: str, ending: str) -> Units:
    """Return the units of a member of DescribeTable's answer, 0 where it has none."""
    found = resource.get(member, {})
    return Units(int(found.get(f"Read{ending}", 0)), int(found.get(f"Write{ending}", 0)))


def _is_warming(resource: Any) -> bool:
    return bool(resource.get("WarmThroughput", {}).get("Status") == "UPDATING")


def _budget(resource: Any) -> DecreaseBudget:
    """Return the decreases used on the day of the last decrease."""
    throughput = resource.get("ProvisionedThroughput", {})
    last = throughput.get("LastDecreaseDateTime")
    if last is None:
        return DecreaseBudget()
    return DecreaseBudget(int(throughput.get("NumberOfDecreasesToday", 0)), last.astimezone(UTC))


def _last_increase(resource: Any) -> datetime | None:
    return _in_utc(resource.get("ProvisionedThroughput", {}).get("LastIncreaseDateTime"))


def _in_utc(at: datetime | None) -> datetime | None:
    return None if at is None else at.astimezone(UTC)
