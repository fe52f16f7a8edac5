"""The resources of a template that Highwater's constructs make, in an account in memory."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from botocore.exceptions import ClientError

from highwater.core import Bounds, Dimension
from highwater.core.names import TargetName
from highwater.core.tracking import TargetTracking
from highwater.handlers.deploy.handler import AFTERMATH_TYPE, UNITS_TYPE
from highwater.handlers.deploy.response import EventOutcome
from highwater.handlers.deploy.response import physical_id as physical_id_of
from highwater_lab.services.update_table import CapacityControl
from tests.memory_aws.account import Account
from tests.memory_aws.deploys import ask, custom_resource_event
from tests.memory_aws.tables import BUILD_SECONDS, Table
from tests.sequences.cloudformation import ROLLED_BACK_BUT_FOR_CLEANUP, ROLLING_BACK, STACK_ID, Document, FailedError

_TABLE = "AWS::DynamoDB::Table"
_TARGET = "AWS::ApplicationAutoScaling::ScalableTarget"
_POLICY = "AWS::ApplicationAutoScaling::ScalingPolicy"
_PARAMETER = "AWS::SSM::Parameter"
_ALARM = "AWS::CloudWatch::Alarm"
_STATEMENTS = "AWS::IAM::Policy"
_FUNCTION = "AWS::Lambda::Function"
_SCALER = "AWS::Scheduler::Schedule"
_DEPLOYMENT = "HighwaterDeploymentFunction"


@dataclass
class AccountProvider:
    """Does what CloudFormation's own providers do, and asks the function behind custom resources.

    Attributes:
        account: Where the resources are.
        failures: Answers FAILED, with what was asked.
        lowered: Capacity that tables lost when nothing scaled them any longer.
        seconds_each: How long each operation takes. The scaler runs after it, unless it takes no time.
    """

    account: Account
    failures: list[str] = field(default_factory=list)
    lowered: list[str] = field(default_factory=list)
    seconds_each: int = 0
    _numbers: itertools.count[int] = field(default_factory=itertools.count)
    _status: str = ""

    def create(self, logical_id: str, kind: str, properties: Document) -> str:
        physical_id = self._create(logical_id, kind, properties)
        self._pass_time()
        return physical_id

    def update(self, logical_id: str, kind: str, physical_id: str, before: Document, after: Document) -> str:
        updated = self._update(logical_id, kind, physical_id, before, after)
        if kind in (AFTERMATH_TYPE, UNITS_TYPE) and self.account.stack_status() == ROLLING_BACK:
            # it waits for the end of that
            self._go_on()
        self._pass_time()
        return updated

    def delete(self, logical_id: str, kind: str, physical_id: str, properties: Document) -> None:
        status, self._status = self._status, self.account.stack_status()
        if status != self._status == ROLLED_BACK_BUT_FOR_CLEANUP:
            self._go_on()
            self._pass_time()
        self._delete(logical_id, kind, physical_id, properties)
        self._pass_time()

    def _go_on(self) -> None:
        """Give what was handed on one invocation each: it goes on beside the deploy."""
        for _ in range(len(self.account.waiting)):
            self.account.serve_waiting()

    def _pass_time(self) -> None:
        if self.seconds_each:
            self.account.advance(self.seconds_each)
            # a table may just have been deleted, or its permission
            self.account.turn()

    def _create(self, logical_id: str, kind: str, properties: Document) -> str:
        if kind.startswith("Custom::"):
            return self._ask("Create", logical_id, kind, properties, None, "")
        if kind == _TABLE:
            return self._create_table(logical_id, properties)
        if kind == _PARAMETER and properties["Name"] in self.account.parameters:
            raise FailedError(f"{properties['Name']} already exists")
        if kind == _TARGET and _target(properties) in self.account.autoscaling.targets:
            raise FailedError(f"{_physical_id(kind, logical_id, properties)} already exists")
        if kind == _ALARM and _physical_id(kind, logical_id, properties) in self.account.alarms:
            raise FailedError(f"{_physical_id(kind, logical_id, properties)} already exists")
        self._put(kind, logical_id, properties)
        return _physical_id(kind, logical_id, properties)

    def _update(self, logical_id: str, kind: str, physical_id: str, before: Document, after: Document) -> str:
        if kind.startswith("Custom::"):
            return self._ask("Update", logical_id, kind, after, before, physical_id)
        if kind == _TABLE:
            if before["KeySchema"] != after["KeySchema"]:
                return self._create_table(logical_id, after)
            self._update_indexes(physical_id, after)
            self._set_units(physical_id, before, after)
            return physical_id
        if kind == _PARAMETER and before["Name"] != after["Name"]:
            return self._create(logical_id, kind, after)
        self._put(kind, logical_id, after)
        return _physical_id(kind, logical_id, after)

    def _delete(self, logical_id: str, kind: str, physical_id: str, properties: Document) -> None:
        account = self.account
        if kind.startswith("Custom::"):
            before = self._granted(properties.get("TableName"))
            self._ask("Delete", logical_id, kind, properties, None, physical_id)
            after = self._granted(properties.get("TableName"))
            # the targets are deleted before it, so what it does not lower stays
            if kind == AFTERMATH_TYPE:
                self.lowered += [
                    f"{key} from {units} to {after[key]}" for key, units in before.items() if after[key] < units
                ]
        elif kind == _TABLE:
            self._delete_table(physical_id)
        elif kind == _TARGET:
            account.autoscaling.targets.pop(_target(properties), None)
        elif kind == _POLICY:
            name = _target_of_policy(properties)
            if name in account.autoscaling.targets:
                account.autoscaling.targets[name].tracking = None
        elif kind == _PARAMETER:
            account.parameters.pop(properties["Name"], None)
        elif kind == _ALARM:
            account.alarms.pop(physical_id, None)
        elif kind == _STATEMENTS:
            for role in account.roles.values():
                role.policies.pop(logical_id, None)
        elif kind == _SCALER:
            account.scaler = None
        elif kind == _FUNCTION and logical_id.startswith(_DEPLOYMENT):
            account.waiting = [(function, event) for function, event in account.waiting if function != "deployment"]

    def _granted(self, name: str | None) -> dict[str, int]:
        """The capacity that a table and its indexes have, or are about to have; nothing of a table that is gone."""
        table = None if name is None else self.account.tables.get(name)
        return {
            f"{name} {index} {dimension}": control.granted[dimension]
            for index, control in (table.resources.items() if table is not None else ())
            for dimension in Dimension
        }

    def _put(self, kind: str, logical_id: str, properties: Document) -> None:
        account = self.account
        if kind == _TARGET:
            name = _target(properties)
            bounds = Bounds(int(properties["MinCapacity"]), int(properties["MaxCapacity"]))
            try:
                account.autoscaling.register(name, bounds, account.now)
            except ClientError as refused:
                raise FailedError(str(refused)) from refused
            account.autoscaling.put_actions(name, properties.get("ScheduledActions", []))
        elif kind == _POLICY:
            name = _target_of_policy(properties)
            percent = int(properties["TargetTrackingScalingPolicyConfiguration"]["TargetValue"])
            account.autoscaling.targets[name].tracking = TargetTracking(target_percent=percent)
        elif kind == _PARAMETER:
            account.parameters[properties["Name"]] = properties["Value"]
        elif kind == _FUNCTION:
            name_of_scaler = properties.get("Environment", {}).get("Variables", {}).get("HIGHWATER_SCALER")
            account.scaler_name = name_of_scaler or account.scaler_name
        elif kind == _SCALER:
            account.scaler = account.scaler_name
        elif kind == _ALARM:
            account.alarms[_physical_id(kind, logical_id, properties)] = properties
        elif kind == _STATEMENTS:
            for role in properties["Roles"]:
                if role in account.roles:
                    account.roles[role].policies[logical_id] = properties["PolicyDocument"]["Statement"]

    def _create_table(self, logical_id: str, properties: Document) -> str:
        name = properties.get("TableName") or f"{logical_id}-{next(self._numbers)}"
        if name in self.account.tables:
            raise FailedError(f"{name} already exists")
        resources = {index: CapacityControl(units) for index, units in _units(properties).items()}
        self.account.tables[name] = Table(name, resources)
        return name

    def _update_indexes(self, name: str, properties: Document) -> None:
        table = self.account.tables[name]
        wanted = {index: units for index, units in _units(properties).items() if index is not None}
        self._wait_until_active(name)
        for index in [index for index in table.resources if index is not None and index not in wanted]:
            del table.resources[index]
        for index, units in wanted.items():
            if index not in table.resources:
                table.resources[index] = CapacityControl(units)
                table.built[index] = self.account.now + BUILD_SECONDS

    def _set_units(self, name: str, before: Document, after: Document) -> None:
        """Set live capacity to the units of the template where these changed, whatever it is by now.

        DynamoDB may refuse that for a day's decreases, which would only make a deploy fail elsewhere.
        """
        table, was_on_demand = self.account.tables[name], _is_on_demand(before)
        if _is_on_demand(after):
            if not was_on_demand:
                self._wait_until_active(name)
                table.put_on_demand()
            return
        old, new = _units(before), _units(after)
        for index in table.resources:
            if was_on_demand or (index in old and old[index] != new[index]):
                self._wait_until_active(name)
                table.resources[index] = CapacityControl(new[index], table.resources[index].mark_to_come)

    def _delete_table(self, name: str) -> None:
        if name in self.account.tables:
            self._wait_until_active(name)
            del self.account.tables[name]

    def _wait_until_active(self, name: str) -> None:
        while self.account.tables[name].is_changing(self.account.now):
            self.account.advance(60)

    def _ask(
        self, request: str, logical_id: str, kind: str, properties: Document, before: Document | None, physical_id: str
    ) -> str:
        """Send an event to the function, wait for the answer, and return the physical id in it."""
        event = custom_resource_event(kind, request, properties, before, logical_id)
        event |= {"StackId": STACK_ID, "PhysicalResourceId": physical_id} if physical_id else {"StackId": STACK_ID}
        outcome = ask(self.account, event)
        self._note(request, logical_id, outcome)
        return physical_id_of(event)

    def _note(self, request: str, logical_id: str, outcome: EventOutcome) -> None:
        if not outcome.ok:
            self.failures.append(f"{request} of {logical_id}: {outcome.reason}")
            raise FailedError(outcome.reason)


def _target(properties: Document) -> TargetName:
    name = TargetName.find(properties["ResourceId"], properties["ScalableDimension"])
    assert name is not None
    return name


def _target_of_policy(properties: Document) -> TargetName:
    name = TargetName.find(*properties["ScalingTargetId"].split("|")[:2])
    assert name is not None
    return name


def _physical_id(kind: str, logical_id: str, properties: Document) -> str:
    if kind == _TARGET:
        return f"{properties['ResourceId']}|{properties['ScalableDimension']}|dynamodb"
    if kind == _ALARM:
        return str(properties.get("AlarmName", logical_id))
    return {"HighwaterDeploymentRole": "deployment", "ScalerFunctionRole": "scaler"}.get(logical_id[:-8], logical_id)


def _is_on_demand(properties: Document) -> bool:
    return properties.get("BillingMode") == "PAY_PER_REQUEST"


def _units(properties: Document) -> dict[str | None, dict[Dimension, int]]:
    """The units in the template of a table and its indexes; 0 on demand."""
    resources = {None: properties} | {each["IndexName"]: each for each in properties.get("GlobalSecondaryIndexes", [])}
    return {
        index: {
            each: int(document.get("ProvisionedThroughput", {}).get(f"{each.title()}CapacityUnits", 0))
            for each in Dimension
        }
        for index, document in resources.items()
    }
