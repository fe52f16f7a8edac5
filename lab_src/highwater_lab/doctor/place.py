"""One account and region as the doctor reads it: each part once, when a check first asks for it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from botocore.exceptions import ClientError

from highwater.aws.parameters import ScaledPlans, read_plans
from highwater.aws.tags import read_tagged_plans
from highwater.calls.attempts import RARE, client_config
from highwater.core.names import ALARM_PREFIX, BUFFERS_TAG, TargetName
from highwater_lab.audit.account import LiveScaling, list_tables, read_scaling
from highwater_lab.audit.deviations import LiveTarget, SeenAlarm, SeenQueue
from highwater_lab.doctor.app import App
from highwater_lab.doctor.stacks import DeployedStacks
from highwater_lab.services.prices import Prices, load_prices
from highwater_lab.template import ListedTable

_ALARM: Final = "AWS::CloudWatch::Alarm"
# DescribeAlarms accepts up to 100 names (Amazon CloudWatch API Reference, read 2026-11)
_ALARMS_PER_CALL: Final = 100
_TRACKING_ALARMS: Final = "TargetTracking-table/"
_OF_QUEUE: Final = (
    "RedrivePolicy",
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)


class CheckedPlace:
    """An account and region.

    Attributes:
        account: The account's number.
        region: The region.
        partition: The partition of the account, such as `aws`.
        app: The app, `None` if there is no cloud assembly.
        prices_file: The file of the prices, `None` for the lab's.
    """

    def __init__(self, session: Any, prices_file: Path | None = None) -> None:
        """Read whose the credentials of *session* are; raises what boto3 raises."""
        self._session = session
        self._clients: dict[str, Any] = {}
        self._described: dict[str, Any] = {}
        self.prices_file = prices_file
        self.app: App | None = None
        caller = self.client("sts").get_caller_identity()
        self.account: str = caller["Account"]
        self.partition: str = caller["Arn"].split(":")[1]
        self.region: str = session.region_name

    def open_app(self, folder: Path) -> None:
        """Read the app that `cdk synth` wrote to *folder*; raises `TemplateError`."""
        self.app = App.load(folder, self.account, self.region)

    def client(self, service: str) -> Any:
        """Return the client of a service, with retries of throttled calls."""
        if service not in self._clients:
            self._clients[service] = self._session.client(service, config=client_config(RARE))
        return self._clients[service]

    def close(self) -> None:
        """Close the connections."""
        for client in self._clients.values():
            client.close()

    @cached_property
    def prices(self) -> Prices:
        """The prices of the region."""
        return load_prices(self.region, self.prices_file)

    @cached_property
    def _listed(self) -> tuple[list[str], datetime]:
        return list_tables(self.client("dynamodb"))

    @property
    def tables(self) -> list[str]:
        """The names of all tables of the region."""
        return self._listed[0]

    @property
    def now(self) -> datetime:
        """DynamoDB's time."""
        return self._listed[1]

    @cached_property
    def scaling(self) -> Mapping[TargetName, LiveScaling]:
        """The scalable targets of all tables of the region."""
        return read_scaling(self.client("application-autoscaling"))

    @cached_property
    def plans(self) -> ScaledPlans:
        """The plans of all scalers of the region."""
        return read_plans(self.client("ssm"))

    @cached_property
    def tagged(self) -> ScaledPlans:
        """The plans of the tables of the region that tags choose."""
        return read_tagged_plans(self.client("resourcegroupstaggingapi"))

    @cached_property
    def stacks(self) -> DeployedStacks:
        """The app's stacks as they are deployed."""
        return DeployedStacks(self.client("cloudformation"), () if self.app is None else self.app.templates)

    def physical(self, table: ListedTable) -> str | None:
        """Return the name of the app's table in the region, `None` if it is not there."""
        name = self.stacks.physical(table.stacks, table.logical_id) or table.physical
        return name if name in self.tables else None

    def described(self, table: str) -> Any:
        """Return DescribeTable's answer; `None` if the table is gone."""
        if table not in self._described:
            client = self.client("dynamodb")
            try:
                self._described[table] = client.describe_table(TableName=table)["Table"]
            except client.exceptions.ResourceNotFoundException:
                self._described[table] = None
        return self._described[table]

    def tables_of(self, named: Iterable[tuple[str, str | None]]) -> dict[str, frozenset[str]]:
        """Return the tables of the region, those in *named* as they are now, with the indexes that are named.

        A table or an index that is named and was not seen is described again: it may have been made since.
        """
        found = {name: frozenset[str]() for name in self.tables}
        indexes: dict[str, set[str]] = {}
        for name, index in named:
            indexes.setdefault(name, set()).update(() if index is None else (index,))
        for name, wanted in sorted(indexes.items()):
            if name in found and not wanted:
                continue
            was_described = name in self._described
            present = _indexes(self.described(name))
            if was_described and (present is None or wanted - present):
                del self._described[name]
                present = _indexes(self.described(name))
            if present is None:
                found.pop(name, None)
            else:
                found[name] = present
        return found

    def live(self, name: TargetName) -> LiveTarget | None:
        """Return what a target has, `None` if the table or the index is gone."""
        described = self.described(name.table)
        if described is not None and name.index is not None:
            indexes = {each["IndexName"]: each for each in described.get("GlobalSecondaryIndexes", [])}
            described = indexes.get(name.index)
        if described is None:
            return None
        kind, warm = name.dimension.title(), described.get("WarmThroughput", {})
        return LiveTarget(
            units=described.get("ProvisionedThroughput", {}).get(f"{kind}CapacityUnits", 0),
            mark=warm.get(f"{kind}UnitsPerSecond", 0),
            is_warming=warm.get("Status") == "UPDATING",
            scaling=self.scaling.get(name),
        )

    @cached_property
    def _scaler_alarms(self) -> list[Any]:
        return list(self._alarms(AlarmNamePrefix=ALARM_PREFIX))

    def alarms(self) -> Iterator[SeenAlarm]:
        """Yield the alarms of scalers and of target tracking on tables."""
        for alarm in (*self._scaler_alarms, *self._alarms(AlarmNamePrefix=_TRACKING_ALARMS)):
            dimensions = {each["Name"]: each["Value"] for each in alarm.get("Dimensions", [])}
            if "TableName" in dimensions:
                index = dimensions.get("GlobalSecondaryIndexName")
                yield SeenAlarm(alarm["AlarmName"], dimensions["TableName"], index)

    def own_alarms(self) -> Iterator[Any]:
        """Yield the alarms of scalers and of the app's stacks, as DescribeAlarms answers them."""
        yield from self._scaler_alarms
        seen = {alarm["AlarmName"] for alarm in self._scaler_alarms}
        names = sorted(set(self.stacks.resources(_ALARM)) - seen)
        for start in range(0, len(names), _ALARMS_PER_CALL):
            yield from self._alarms(AlarmNames=names[start : start + _ALARMS_PER_CALL])

    def _alarms(self, **asked: Any) -> Iterator[Any]:
        pages = self.client("cloudwatch").get_paginator("describe_alarms")
        for page in pages.paginate(**asked, AlarmTypes=["MetricAlarm"]):
            yield from page["MetricAlarms"]

    def queues(self) -> Iterator[SeenQueue]:
        """Yield the queues of `BufferedWrites`."""
        sqs, tagging = self.client("sqs"), self.client("resourcegroupstaggingapi").get_paginator("get_resources")
        found: dict[str, tuple[str, str, Any]] = {}
        for page in tagging.paginate(TagFilters=[{"Key": BUFFERS_TAG}], ResourceTypeFilters=["sqs"]):
            for each in page["ResourceTagMappingList"]:
                arn, tags = each["ResourceARN"], {tag["Key"]: tag["Value"] for tag in each["Tags"]}
                try:
                    url = sqs.get_queue_url(QueueName=arn.rpartition(":")[2])["QueueUrl"]
                except sqs.exceptions.QueueDoesNotExist:
                    # the tags of a queue outlive it for a while
                    continue
                attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=list(_OF_QUEUE))["Attributes"]
                found[arn] = (url, tags[BUFFERS_TAG], attributes)
        read = {arn for arn in found if self._has_reader(arn)}
        read |= {
            json.loads(attributes["RedrivePolicy"])["deadLetterTargetArn"]
            for arn, (_, _, attributes) in found.items()
            if arn in read and "RedrivePolicy" in attributes
        }
        for arn, (url, table, attributes) in sorted(found.items()):
            messages = sum(int(attributes.get(name, 0)) for name in _OF_QUEUE[1:])
            yield SeenQueue(url, table, messages, arn in read)

    def _has_reader(self, queue: str) -> bool:
        pages = self.client("lambda").get_paginator("list_event_source_mappings").paginate(EventSourceArn=queue)
        return any(page["EventSourceMappings"] for page in pages)

    def parameter(self, name: str) -> str | None:
        """Return the value of an SSM parameter, `None` if there is none."""
        client = self.client("ssm")
        try:
            return str(client.get_parameter(Name=name)["Parameter"]["Value"])
        except client.exceptions.ParameterNotFound:
            return None

    def has_bucket(self, name: str) -> bool:
        """Whether a bucket exists; raises `ClientError` if it belongs to another account, or may not be read."""
        try:
            self.client("s3").head_bucket(Bucket=name)
        except ClientError as error:
            # the answer to HEAD has no body, so its code is the status
            if error.response["Error"]["Code"] in ("404", "NoSuchBucket"):
                return False
            raise
        return True


def _indexes(described: Any) -> frozenset[str] | None:
    """Return the names of a table's indexes; `None` if there is no table."""
    if described is None:
        return None
    return frozenset(each["IndexName"] for each in described.get("GlobalSecondaryIndexes", []))
