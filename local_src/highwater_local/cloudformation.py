"""CloudFormation: resource types that MiniStack lacks or implements in part, and one operation at a time per stack."""

from __future__ import annotations

import asyncio
import copy
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final, ParamSpec, TypeVar

from highwater.core import Dimension
from highwater.core.tracking import NATIVE_TARGET_PERCENT
from highwater_local import ministack
from highwater_local.autoscaling.records import ServiceError, TargetKey, target_key
from highwater_local.autoscaling.service import AutoScaling
from highwater_local.declared import Scaled, begin, fixed, maxima, replicas, scaled, with_capacity
from highwater_local.dynamodb.modes import set_maxima
from highwater_local.dynamodb.resources import capacity_of, index_name_refusal, indexes_of, is_on_demand, resource_of
from highwater_local.dynamodb.tables import Tables
from highwater_local.ministack import Created, Document, ResourceRefusedError
from highwater_local.timeline import Timeline
from highwater_local.unmodelled import say_unmodelled, settle_replica, unmodelled, without_service_tags

# Members of an index that are changed in place, and not by MiniStack
_PASSED_ON: Final = (
    "ContributorInsightsSpecification",
    "OnDemandThroughput",
    "ReadOnDemandThroughputSettings",
    "ReadProvisionedThroughputSettings",
    "WarmThroughput",
    "WriteOnDemandThroughputSettings",
    "WriteProvisionedThroughputSettings",
)


def indexed(kind: str, properties: Document) -> Document:
    """Give indexes without units some: 0, or 5 as in MiniStack for a global table, which declares them elsewhere."""
    for index in properties.get("GlobalSecondaryIndexes") or []:
        if kind == ministack.TABLE or properties.get("BillingMode") == "PAY_PER_REQUEST":
            zero = {"ReadCapacityUnits": 0, "WriteCapacityUnits": 0}
            index.setdefault("ProvisionedThroughput", zero)
        else:
            index.setdefault("ProvisionedThroughput", {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5})
    return properties


def align_index_throughput(before: Document, after: Document) -> dict[str, Document]:
    """Make index capacities equal on both sides, as MiniStack replaces a changed index; return the changed ones."""
    old = {index["IndexName"]: index for index in before.get("GlobalSecondaryIndexes") or []}
    changed = {}
    for index in after.get("GlobalSecondaryIndexes") or []:
        previous = old.get(index["IndexName"])
        if previous is None:
            continue
        if index["ProvisionedThroughput"] != previous["ProvisionedThroughput"]:
            changed[index["IndexName"]] = numbers(index["ProvisionedThroughput"])
            index["ProvisionedThroughput"] = previous["ProvisionedThroughput"]
        for passed_on in _PASSED_ON:
            previous.pop(passed_on, None)
            index.pop(passed_on, None)
    return changed


def index_changes(before: Document, after: Document) -> int:
    """Return how many indexes a table gets and loses."""
    old, new = ({index["IndexName"] for index in each.get("GlobalSecondaryIndexes") or []} for each in (before, after))
    return len(old ^ new)


def action_text(action: Document) -> str:
    """Return a scheduled action as text, to compare it with another."""
    return json.dumps(action, sort_keys=True, default=str)


def whole(value: object) -> int | None:
    """Return a whole number that a template may have as text; `None` if there is none."""
    return None if value is None else int(str(value))


def instant(text: object) -> datetime | None:
    """Return a time of a template, in UTC if it names no zone; `None` if there is none."""
    if text is None:
        return None
    at = datetime.fromisoformat(str(text))
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


def numbers(value: Any) -> Any:
    """Convert numbers and booleans that a template has as text to the types that the services expect."""
    if isinstance(value, dict):
        return {name: numbers(member) for name, member in value.items()}
    if isinstance(value, list):
        return [numbers(member) for member in value]
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if isinstance(value, str) and re.fullmatch(r"\d+", value, re.ASCII):
        return int(value)
    if isinstance(value, str) and re.fullmatch(r"\d+\.\d+", value, re.ASCII):
        return float(value)
    return value


def _refuse_wrong_names() -> None:
    """Reject names of tables, indexes and alarms in stacks from now on."""
    for kind in (ministack.TABLE, ministack.GLOBAL_TABLE):
        ministack.refuse_names(kind, "TableName", _table_refusal)
        ministack.wrap_resource_handler(kind, "create", _create_indexes)
        ministack.wrap_resource_handler(kind, "update", _update_indexes)
    ministack.refuse_names(ministack.ALARM, "AlarmName", _alarm_refusal)


def _create_indexes(own: Callable[..., Created], logical_id: str, properties: Document, stack: str) -> Created:
    _check_indexes(properties)
    return own(logical_id, properties, stack)


def _update_indexes(own: Callable[..., Created], name: str, old: Document, new: Document, *rest: Any) -> Created:
    before = [index["IndexName"] for index in old.get("GlobalSecondaryIndexes") or []]
    added = [index for index in new.get("GlobalSecondaryIndexes") or [] if index["IndexName"] not in before]
    _check_indexes({"GlobalSecondaryIndexUpdates": [{"Create": index} for index in added]})
    return own(name, old, new, *rest)


def _check_indexes(request: Document) -> None:
    refusal = index_name_refusal(request)
    if refusal is not None:
        raise ResourceRefusedError(f"{refusal.message} (Service: DynamoDb, Status Code: 400, {refusal.code})")


def _table_refusal(_logical_id: str, name: str) -> str | None:
    wrong = ministack.refuse_table_name(name)
    if wrong is not None:
        answer = json.loads(wrong[2])
        return f"{answer['message']} (Service: DynamoDb, Status Code: 400, {answer['__type'].rpartition('#')[2]})"
    return _exists(name) if ministack.find_table(name) is not None else None


def _alarm_refusal(_logical_id: str, name: str) -> str | None:
    return _exists(name) if name in ministack.alarms_by_name() else None


def _exists(name: str) -> str:
    return f"{name} already exists"


P = ParamSpec("P")
R = TypeVar("R")
TARGET = "AWS::ApplicationAutoScaling::ScalableTarget"
_POLICY = "AWS::ApplicationAutoScaling::ScalingPolicy"

# CloudFormation's text, as users report it
_ONE_INDEX = "Cannot perform more than one GSI creation or deletion in a single update"


class Provisioners:
    """Creates, updates and deletes the resources of these types for MiniStack's CloudFormation engine.

    They are in effect as soon as this is created, and wrap MiniStack's own handlers for DynamoDB.
    """

    def __init__(self, tables: Tables, autoscaling: Callable[[], AutoScaling]) -> None:
        self._tables = tables
        self._autoscaling = autoscaling
        ministack.add_resource_type(
            TARGET,
            {"create": self.create_target, "update": self.update_target, "delete": self.delete_target},
            replacing=("ResourceId", "ScalableDimension", "ServiceNamespace"),
        )
        ministack.add_resource_type(
            _POLICY,
            {"create": self.create_policy, "update": self.update_policy, "delete": self.delete_policy},
            replacing=("PolicyName", "ResourceId", "ScalableDimension", "ScalingTargetId", "ServiceNamespace"),
        )
        # CloudFormation Template Reference, AWS::DynamoDB::Table: "Update requires"
        ministack.replace_tables_on(("KeySchema", "LocalSecondaryIndexes"))
        for kind in (ministack.TABLE, ministack.GLOBAL_TABLE):
            ministack.wrap_resource_handler(kind, "create", partial(self._create_table, kind))
            ministack.wrap_resource_handler(kind, "update", partial(self._update_table, kind))
        ministack.wrap_resource_handler(ministack.GLOBAL_TABLE, "delete", self._delete_global_table)
        ministack.describe_encryption.wrap(_describe_encryption)
        _refuse_wrong_names()

    def create_target(self, _logical_id: str, properties: Document, _stack: str) -> Created:
        """Register the target and put its scheduled actions; a target that is registered already is rejected."""
        key = _key(properties)
        physical_id = _target_id(key)
        if key in self._autoscaling().targets:
            raise ResourceRefusedError(_exists(physical_id))
        try:
            self._register(key, properties)
        except ValueError:
            # CloudFormation does not delete a resource that it could not create, so nothing of it may remain
            self.delete_target(physical_id, properties)
            raise
        return physical_id, {"Id": physical_id}

    def update_target(self, physical_id: str, old: Document, new: Document, _stack: str) -> Created:
        """Register again, which clamps at once; put changed actions, and delete removed ones."""
        key = _key(new)
        try:
            self._register(key, new, {action_text(action) for action in old.get("ScheduledActions") or []})
        except ValueError:
            # the engine rolls back its changes, but not those inside a resource that failed half-way
            self._delete_actions(key, new, old)
            self._register(key, old)
            raise
        self._delete_actions(key, old, new)
        return physical_id, {"Id": physical_id}

    def _delete_actions(self, key: TargetKey, properties: Document, kept: Document) -> None:
        """Delete the scheduled actions of *properties* whose names *kept* does not have."""
        names = {action["ScheduledActionName"] for action in kept.get("ScheduledActions") or []}
        for action in properties.get("ScheduledActions") or []:
            name = action["ScheduledActionName"]
            if name not in names and name in self._autoscaling().targets[key].actions:
                self._autoscaling().delete_action(key, name)

    def delete_target(self, physical_id: str, _properties: Document) -> None:
        """Deregister the target, if it still exists."""
        key = target_of(physical_id)
        if key in self._autoscaling().targets:
            self._autoscaling().deregister(key)

    def create_policy(self, _logical_id: str, properties: Document, _stack: str) -> Created:
        """Put the policy on its target."""
        policy = _called(
            self._autoscaling().put_policy,
            _policy_key(properties),
            properties["PolicyName"],
            properties["PolicyType"],
            numbers(properties.get("TargetTrackingScalingPolicyConfiguration")),
        )
        return policy.arn, {"Arn": policy.arn}

    def update_policy(self, physical_id: str, _old: Document, new: Document, stack: str) -> Created:
        """Put the policy again under its name."""
        self.create_policy("", new, stack)
        return physical_id, {"Arn": physical_id}

    def delete_policy(self, _physical_id: str, properties: Document) -> None:
        """Delete the policy, if its target still has it."""
        key, name = _policy_key(properties), properties["PolicyName"]
        target = self._autoscaling().targets.get(key)
        if target is not None and name in target.policies:
            self._autoscaling().delete_policy(key, name)

    def _register(self, key: TargetKey, properties: Document, unchanged: set[str] | None = None) -> None:
        suspended = {name: str(value).lower() == "true" for name, value in properties.get("SuspendedState", {}).items()}
        service = self._autoscaling()
        _called(
            service.register,
            key,
            int(properties["MinCapacity"]),
            int(properties["MaxCapacity"]),
            properties.get("RoleARN"),
            suspended,
        )
        for action in properties.get("ScheduledActions") or []:
            if unchanged and action_text(action) in unchanged:
                continue
            bounds = action.get("ScalableTargetAction") or {}
            _called(
                service.put_action,
                key,
                action["ScheduledActionName"],
                action.get("Schedule"),
                action.get("Timezone"),
                whole(bounds.get("MinCapacity")),
                whole(bounds.get("MaxCapacity")),
                True,
                instant(action.get("StartTime")),
                instant(action.get("EndTime")),
            )

    def _create_table(
        self, kind: str, own: Callable[..., Created], logical_id: str, properties: Document, stack: str
    ) -> Created:
        # the engine compares the next template with these properties, so the table gets a copy
        given = without_service_tags(indexed(kind, copy.deepcopy(properties)))
        if kind == ministack.GLOBAL_TABLE:
            given = with_capacity(given, ministack.get_region())
        created = own(logical_id, given, stack)
        self._complete(created[0], kind, {}, properties)
        say_unmodelled(kind, properties, stack, logical_id)
        return created

    def _update_table(
        self, kind: str, own: Callable[..., Created], physical_id: str, old: Document, new: Document, *rest: Any
    ) -> Created:
        if index_changes(old, new) > 1:
            raise ResourceRefusedError(_ONE_INDEX)
        # The engine itself replaces tables, so the name stays here. Without a name MiniStack derives another one for a
        # global table, and replaces it.
        before, after = (
            without_service_tags(indexed(kind, copy.deepcopy(each))) | {"TableName": physical_id} for each in (old, new)
        )
        self._check_removed_index(physical_id, before, after, *rest)
        is_switch = old.get("BillingMode") == "PAY_PER_REQUEST" != new.get("BillingMode")
        if kind == ministack.GLOBAL_TABLE:
            after = with_capacity(after, ministack.get_region(), is_switch=is_switch)
        changed = align_index_throughput(before, after)
        if kind == ministack.GLOBAL_TABLE and not is_switch:
            # what auto scaling has set stays, and what is fixed is compared with the tables themselves
            after.pop("ProvisionedThroughput", None)
            changed = {}
        with self._tables.waiting():
            created = own(physical_id, before, after, *rest)
        for index, throughput in changed.items():
            self._call_update(created[0], _index_update(index, ProvisionedThroughput=throughput))
        self._complete(created[0], kind, old, new)
        if set(unmodelled(kind, old)) != set(unmodelled(kind, new)):
            say_unmodelled(kind, new, rest[0], physical_id)
        return created

    def _check_removed_index(self, name: str, before: Document, after: Document, stack: str, *_: Any) -> None:
        """Leave out an index to be removed that is gone already; in a rollback reject one that is being built.

        It has to be deleted by hand then (AWS CloudFormation Template Reference, AWS::DynamoDB::Table,
        `GlobalSecondaryIndexes`, read 2026-11). That the rollback fails at it is assumed.
        """
        table = ministack.find_table(name)
        kept = {index["IndexName"] for index in after.get("GlobalSecondaryIndexes") or []}
        removed = [index for index in before.get("GlobalSecondaryIndexes") or [] if index["IndexName"] not in kept]
        if table is None or not removed:
            return
        gone = [index for index in removed if index["IndexName"] not in indexes_of(table)]
        before["GlobalSecondaryIndexes"] = [each for each in before["GlobalSecondaryIndexes"] if each not in gone]
        is_rollback = ministack.find_stack(stack)["StackStatus"].startswith("UPDATE_ROLLBACK")
        refusal = self._tables.unbuilt_refusal(table) if is_rollback and gone != removed else None
        if refusal is not None:
            raise ResourceRefusedError(f"{refusal.message} (Service: DynamoDb, Status Code: 400, {refusal.code})")

    def _complete(self, name: str, kind: str, old: Document, new: Document) -> None:
        """Apply what MiniStack lacks: warm throughput, maxima, recovery, time to live, encryption, targets."""
        if not old:
            self._tables.raise_marks(name, new)
        else:
            self._raise_changed_marks(name, old, new)
        if new.get("TimeToLiveSpecification"):
            with self._tables.waiting():
                ministack.update_time_to_live(
                    {"TableName": name, "TimeToLiveSpecification": numbers(new["TimeToLiveSpecification"])}
                )
        is_global = kind == ministack.GLOBAL_TABLE
        if is_global:
            self._replicate(name, old, new)
            for region in replicas(new):
                with ministack.request_scope(ministack.get_account_id(), region):
                    if region not in replicas(old):
                        begin(ministack.tables()[name], new, region)
                    self._set_fixed(name, fixed(new, region))
            self._scale_global_table(name, old, new)
        regions = sorted(replicas(new)) if is_global else [ministack.get_region()]
        for region in regions:
            with ministack.request_scope(ministack.get_account_id(), region):
                is_new = not old or (is_global and region not in replicas(old))
                if is_new and new.get("SSESpecification"):
                    encryption = ministack.describe_encryption(new["SSESpecification"])
                    ministack.tables()[name]["SSEDescription"] = encryption
                self._set_maxima(name, maxima(kind, old, region), maxima(kind, new, region))
                if is_global:
                    if is_new:
                        self._tables.raise_marks(name, new)
                    settle_replica(name, replicas(old).get(region, {}), replicas(new)[region], has_own_tags=True)
                else:
                    settle_replica(name, old, new, has_own_tags=False)

    def _set_fixed(self, name: str, wanted: dict[str | None, dict[Dimension, int]]) -> None:
        """Give a replica the capacity that is fixed for it, where it has another."""
        for index, units in wanted.items():
            present = self._tables.granted(name, index)
            if present | units != present:
                throughput = {"ProvisionedThroughput": capacity_of(present | units)}
                self._call_update(name, throughput if index is None else _index_update(index, **throughput))

    def _set_maxima(self, name: str, old: dict[str | None, Document], new: dict[str | None, Document]) -> None:
        """Give a table on demand, and its indexes, the maxima that are declared for them, and remove others."""
        table = ministack.tables().get(name) or {}
        for index in {*old, *new}:
            resource = resource_of(table, index)
            if resource is not None and is_on_demand(table) and old.get(index) != new.get(index):
                set_maxima(resource, new.get(index))

    def _replicate(self, name: str, old: Document, new: Document) -> None:
        """Create the replicas that a global table has not had, and delete those that it no longer has."""
        home = ministack.get_region()
        before, after = (set(replicas(properties)) - {home} for properties in (old, new))
        updates = [{"Create": {"RegionName": region}} for region in sorted(after - before)]
        updates += [{"Delete": {"RegionName": region}} for region in sorted(before - after)]
        if updates:
            self._call_update(name, {"ReplicaUpdates": updates})

    def _raise_changed_marks(self, name: str, old: Document, new: Document) -> None:
        """Raise marks that the template changed; a lower one fails the update, as on AWS."""
        if new.get("WarmThroughput") and new.get("WarmThroughput") != old.get("WarmThroughput"):
            self._call_update(name, {"WarmThroughput": numbers(new["WarmThroughput"])})
        before = {index["IndexName"]: index for index in old.get("GlobalSecondaryIndexes") or []}
        for index in new.get("GlobalSecondaryIndexes") or []:
            warm, previous = index.get("WarmThroughput"), before.get(index["IndexName"])
            if warm and previous is None:
                self._tables.raise_warm(name, index["IndexName"], warm)
            elif warm and previous is not None and warm != previous.get("WarmThroughput"):
                self._call_update(name, _index_update(index["IndexName"], WarmThroughput=numbers(warm)))

    def _scale_global_table(self, name: str, old: Document, new: Document) -> None:
        """Give each target of a global table and its indexes a policy; deregister those that it no longer has."""
        for region in sorted({*replicas(old), *replicas(new)}):
            with ministack.request_scope(ministack.get_account_id(), region):
                self._scale_replica(name, scaled(name, old, region), scaled(name, new, region))

    def _scale_replica(self, name: str, old: Scaled, new: Scaled) -> None:
        service = self._autoscaling()
        for key in old.keys() - new.keys():
            if key in service.targets:
                service.deregister(key)
        for key, setting in new.items():
            _called(service.register, key, int(setting["MinCapacity"]), int(setting["MaxCapacity"]))
            metric = {"PredefinedMetricType": f"DynamoDB{key.dimension.title()}CapacityUtilization"}
            tracking = numbers(
                setting.get("TargetTrackingScalingPolicyConfiguration") or {"TargetValue": NATIVE_TARGET_PERCENT}
            )
            tracking["PredefinedMetricSpecification"] = metric
            _called(service.put_policy, key, f"{name}-{key.dimension}", "TargetTrackingScaling", tracking)

    def _delete_global_table(self, own: Callable[..., None], name: str, properties: Document) -> None:
        """Delete a global table with its targets, which DeleteTable leaves.

        Source: the resource type's schema, by which its handlers deregister scalable targets, read 2026-11.
        """
        self._scale_global_table(name, properties, {})
        if name in ministack.tables():
            self._replicate(name, properties, {})
        own(name, properties)

    def _call_update(self, table: str, members: Document) -> None:
        with self._tables.waiting():
            status, _, body = self._tables.update({"TableName": table} | members)
        if status >= 400:
            answer = json.loads(body)
            raise ResourceRefusedError(answer.get("message") or answer.get("Message") or str(answer))


def _describe_encryption(own: Callable[[Document | None], Document | None], given: Document | None) -> Document | None:
    """Describe encryption as a template declares it too, which has another name for whether it is on."""
    if given and "SSEEnabled" in given:
        given = given | {"Enabled": str(given["SSEEnabled"]).lower() == "true"}
    return own(given)


def _index_update(index: str, **members: Document) -> Document:
    """Return the member of an UpdateTable that changes an index."""
    return {"GlobalSecondaryIndexUpdates": [{"Update": {"IndexName": index, **members}}]}


def _key(properties: Document) -> TargetKey:
    return _called(
        target_key, properties["ServiceNamespace"], properties["ResourceId"], properties["ScalableDimension"]
    )


def _target_id(key: TargetKey) -> str:
    return f"{key.resource_id}|{key.scalable_dimension}|dynamodb"


def target_of(physical_id: str) -> TargetKey:
    """Return the scalable target with the id of a resource of a stack."""
    resource_id, dimension, _ = physical_id.split("|")
    return TargetKey(resource_id, dimension)


def _policy_key(properties: Document) -> TargetKey:
    if properties.get("ScalingTargetId"):
        return target_of(properties["ScalingTargetId"])
    return _key(properties)


def _called(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call a function, and convert a service's rejection to the form in which the engine reports reasons."""
    try:
        return function(*args, **kwargs)
    except ServiceError as refused:
        message = f"{refused.message} (Service: ApplicationAutoScaling, Status Code: 400, {refused.code})"
        raise ResourceRefusedError(message) from refused


_REFUSED: Final = "Stack [{stack}] cannot be deleted while in status {status}"
_DELETABLE: Final = frozenset({"CREATE_IN_PROGRESS", "REVIEW_IN_PROGRESS", "DELETE_IN_PROGRESS"})


class StackOperations:
    """Rejects what CloudFormation rejects, and serializes the other operations; in effect as soon as it is created."""

    def __init__(self, timeline: Timeline, now: Callable[[], datetime]) -> None:
        self._timeline = timeline
        self._now = now
        # by stack id: set when the operation in progress has ended
        self._under_way: dict[str, asyncio.Event] = {}
        for deploy in ministack.DEPLOYS:
            deploy.wrap(self._deploy)
        ministack.delete_resources.wrap(self._delete)
        ministack.STACK_REQUESTS.wrap("DeleteStack", _request_deletion)
        ministack.STACK_REQUESTS.wrap("DescribeStackResources", _describe_resources)
        ministack.STACK_REQUESTS.add("DescribeType", _describe_type)

    async def _deploy(self, own: Any, stack_name: str, stack_id: str, *arguments: Any, **options: Any) -> None:
        ended = self._under_way[stack_id] = asyncio.Event()
        self._date(ministack.find_stack(stack_id))
        try:
            with self._timeline.changing_stack():
                await own(stack_name, stack_id, *arguments, **options)
        finally:
            del self._under_way[stack_id]
            ended.set()

    def _date(self, stack: Document) -> None:
        """Date the operation that begins by the cloud's clock, later than the one before if that stands still."""
        at = max(self._now(), stack.get("_began", datetime.min.replace(tzinfo=UTC)) + timedelta(milliseconds=1))
        stack["_began"] = at
        kinds = ("LastUpdatedTime",) if "LastUpdatedTime" in stack else ("CreationTime",)
        stack |= dict.fromkeys(kinds, at.isoformat(timespec="milliseconds").replace("+00:00", "Z"))

    async def _delete(self, own: Any, stack_name: str, stack_id: str, *arguments: Any, **options: Any) -> None:
        creation = self._under_way.get(stack_id)
        if creation is not None:
            # a resource that is being created must exist before it can be deleted
            await creation.wait()
        with self._timeline.changing_stack():
            await own(stack_name, stack_id, *arguments, **options)


def _request_deletion(own: Any, request: Document) -> Any:
    stack = ministack.find_stack(ministack.first(request.get("StackName", "")))
    status = str((stack or {}).get("StackStatus", ""))
    if status.endswith("_IN_PROGRESS") and status not in _DELETABLE:
        return ministack.query_error("ValidationError", _REFUSED.format(stack=stack["StackId"], status=status))
    return own(request)


def _describe_resources(own: Any, request: Document) -> Any:
    """Describe the resources of a stack, which may be named by the physical id of one of them."""
    physical = ministack.first(request.get("PhysicalResourceId", ""))
    if request.get("StackName") or not physical:
        return own(request)
    for stack in ministack.stacks():
        owned = {each["PhysicalResourceId"] for each in stack.get("_resources", {}).values()}
        if stack["StackStatus"] != "DELETE_COMPLETE" and physical in owned:
            return own(request | {"StackName": [stack["StackId"]]})
    return ministack.query_error("ValidationError", f"Stack for {physical} does not exist")


def _describe_type(request: Document) -> Any:
    """Answer whether a resource type can be made here; its schema is left out."""
    kind, name = (ministack.first(request.get(member, "")) for member in ("Type", "TypeName"))
    if kind != "RESOURCE" or not ministack.has_resource_type(name):
        return ministack.query_error("TypeNotFoundException", f"The type '{name}' cannot be found.", 404)
    found = f"<DescribeTypeResult><Type>{kind}</Type><TypeName>{name}</TypeName></DescribeTypeResult>"
    return ministack.query_answer(200, "DescribeTypeResponse", found)
