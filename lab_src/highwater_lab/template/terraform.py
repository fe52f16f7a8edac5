"""Reads `terraform show -json`, of a plan or a state, and OpenTofu's, as the template that would make the same tables.

A resource becomes one of CloudFormation's, with its address as logical id. Tables of several regions become several
templates. Source of the resources' attributes: the documentation of Terraform's AWS provider 6, read 2026-11.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from highwater.core.names import TargetName
from highwater_lab.template.blocks import TableKeys, block_of, blocks_of, first_of, given, is_wrong, renamed
from highwater_lab.template.changes import changes_of
from highwater_lab.template.document import DATA, Dialect, Environment, LeftOut, Template, TemplateError
from highwater_lab.template.references import Configuration, Resource, as_object
from highwater_lab.template.unread import is_unread

TABLE: Final = "aws_dynamodb_table"
INDEX: Final = "aws_dynamodb_global_secondary_index"
REPLICA: Final = "aws_dynamodb_table_replica"
_TARGET: Final = "aws_appautoscaling_target"
_POLICY: Final = "aws_appautoscaling_policy"
_ACTION: Final = "aws_appautoscaling_scheduled_action"
_MAJOR_VERSIONS: Final = ("0", "1")
_WARM: Final = {"read_units_per_second": "ReadUnitsPerSecond", "write_units_per_second": "WriteUnitsPerSecond"}
_ON_DEMAND: Final = {"max_read_request_units": "MaxReadRequestUnits", "max_write_request_units": "MaxWriteRequestUnits"}
_BOUNDS: Final = {"min_capacity": "MinCapacity", "max_capacity": "MaxCapacity"}
_TRACKING: Final = {
    "target_value": "TargetValue",
    "scale_in_cooldown": "ScaleInCooldown",
    "scale_out_cooldown": "ScaleOutCooldown",
    "disable_scale_in": "DisableScaleIn",
}
_SCHEDULE: Final = {
    "name": "ScheduledActionName",
    "schedule": "Schedule",
    "timezone": "Timezone",
    "start_time": "StartTime",
    "end_time": "EndTime",
}
DIALECT: Final = Dialect(
    words={
        **{word: name for names in (_BOUNDS, _TRACKING, _SCHEDULE) for name, word in names.items()},
        "BillingMode": "billing_mode",
        "TableClass": "table_class",
        "ReadCapacityUnits": "read_capacity",
        "WriteCapacityUnits": "write_capacity",
        "ReadCapacity settings": "read_capacity",
        "WriteCapacity settings": "write_capacity",
        "WarmThroughput": "warm_throughput",
        "OnDemandThroughput": "on_demand_throughput",
        "IndexName": "name",
        "Replicas": "replica",
        "Region": "region_name",
        "SuspendedState": "suspended_state",
        "ScalableTargetAction": "scalable_target_action",
        "PredefinedMetricSpecification": "predefined_metric_specification",
        "PredefinedMetricType": "predefined_metric_type",
        " (ScalableTarget)": "",
        " (ScalingPolicy) configuration": " target_tracking_scaling_policy_configuration",
        " (ScalingPolicy)": "",
        "in the template": "in the plan",
        "not defined in this template": "not defined in this plan",
        "known only at deployment": "known only after apply",
        "write the number itself, or use a parameter with a default": "write the number itself, or give the state",
    },
    separator=".",
)


def is_terraform(body: Any) -> bool:
    """Return whether a parsed document is of Terraform's or OpenTofu's: a plan or state as JSON, or a state file."""
    if not isinstance(body, dict) or "Resources" in body:
        return False
    return "format_version" in body or {"lineage", "serial"} <= body.keys()


def templates_of(where: str, body: dict[str, Any], *, is_prior: bool = False) -> list[Template]:
    """Return the tables of a plan or a state as templates, one for each region.

    With *is_prior*, those of the state before the plan; there is none before the first apply. Raises `TemplateError` if
    the document is of another form.
    """
    if "format_version" not in body:
        raise TemplateError(f"{where}: is a Terraform state file; give what terraform show -json prints")
    version = body["format_version"]
    if str(version).partition(".")[0] not in _MAJOR_VERSIONS:
        raise TemplateError(
            f"{where}: has format_version {str(version)[:60]!r}; expected 1.x, as Terraform 1 writes it"
        )
    try:
        templates = _Translation(where, _configuration(where, body, is_prior=is_prior)).templates()
        planned = dict(changes_of(body))
        return [replace(template, planned=planned) for template in templates]
    except RecursionError as error:
        raise TemplateError(f"{where}: is nested too deeply to be a Terraform plan") from error


def _configuration(where: str, body: dict[str, Any], *, is_prior: bool) -> Configuration:
    if is_prior:
        if "planned_values" not in body:
            raise TemplateError(f"{where}: is no plan, so it has no prior state; give terraform show -json of a plan")
        return Configuration(where, {}, as_object(body.get("prior_state")).get("values"), "prior_state.values")
    if "planned_values" in body:
        return Configuration(where, body, body["planned_values"], "planned_values")
    if "values" in body:
        return Configuration(where, {}, body["values"], "values")
    raise TemplateError(
        f"{where}: has neither planned_values, as a plan has, nor values, as a state has; give what terraform show "
        "-json prints of a plan or a state"
    )


@dataclass(frozen=True, slots=True)
class _Place:
    """What a target, policy or scheduled action scales.

    Attributes:
        resource_id: The id, with a placeholder where it is known only after apply.
        dimension: The scalable dimension.
        target: The target that it follows, if its own id is known only after apply.
    """

    resource_id: str
    dimension: str
    target: Resource | None = None


class _Translation:
    """Makes the templates of one plan or state."""

    def __init__(self, where: str, configuration: Configuration) -> None:
        self._where = where
        self._configuration = configuration
        self._notes: dict[str | None, list[str]] = {}
        by_kind: dict[str, list[Resource]] = {}
        for resource in configuration.resources:
            by_kind.setdefault(resource.kind, []).append(resource)
        self._by_kind = by_kind
        self._left_out: dict[str | None, list[LeftOut]] = {}
        regions = {
            each.address: configuration.region(each)
            for each in configuration.resources
            if (each.kind in _READ and each.kind != REPLICA) or is_unread(each.kind)
        }
        # tables that the plan scales and does not make
        self._data = {each.address: each for each in configuration.data if each.kind == TABLE}
        of_data = {address: configuration.region(each) for address, each in self._data.items()}
        known = set(regions.values()) - {None} or set(of_data.values()) - {None}
        # a region that nothing says is the only one of the plan, if there is one
        only = next(iter(known)) if len(known) == 1 else None
        self._regions = {address: region or only for address, region in regions.items()}
        self._tables = {each.address: each for each in by_kind.get(TABLE, ())}
        self._indexes = {address: list(self._indexes_of(table)) for address, table in self._tables.items()}
        self._keys = {address: TableKeys.of_table(table.values) for address, table in self._tables.items()}
        self._regions |= {address: region or only for address, region in of_data.items()}
        self._indexes |= {address: list(self._indexes_of(each)) for address, each in self._data.items()}
        self._keys |= {address: TableKeys.of_table(each.values) for address, each in self._data.items()}
        self._add_own_indexes()
        self._replicas = {
            address: [*blocks_of(table.values.get("replica")), *self._own_replicas(table)]
            for address, table in self._tables.items()
        }
        self._replicas |= {address: blocks_of(each.values.get("replica")) for address, each in self._data.items()}
        found = {each.get("address") for replicas in self._replicas.values() for each in map(as_object, replicas)}
        for resource in by_kind.get(REPLICA, ()):
            if resource.address not in found:
                what = "is not read: its table is not in the plan, or known only after apply"
                self._leave_out(resource, what, next(iter(sorted(set(self._regions.values()), key=str)), None))
        self._places = {each.address: self._place(each) for each in by_kind.get(_TARGET, ()) if _is_ours(each)}
        self._actions = self._actions_of_targets()

    def templates(self) -> list[Template]:
        """Return a template for each region, or an empty one."""
        managed = {region for address, region in self._regions.items() if address not in self._data}
        regions = sorted(managed or {None}, key=str)
        templates = []
        for region in regions:
            where = self._where if len(regions) == 1 else f"{self._where} ({region or 'region not known'})"
            resources = dict(self._resources(region))
            data = {
                address: self._table(each) for address, each in self._data.items() if self._regions[address] == region
            }
            template = Template(
                where,
                {"Resources": resources, DATA: data},
                environment=Environment(region=region),
                dialect=DIALECT,
                notes=tuple(self._notes.get(region, ())),
                left_out=tuple(self._left_out.get(region, ())),
            )
            templates.append(template)
        return templates

    def _resources(self, region: str | None) -> Iterator[tuple[str, dict[str, Any]]]:
        for kind in _READ:
            # a replica belongs to the table, in the template of the table's region
            for resource in self._by_kind.get(kind, ()) if kind != REPLICA else ():
                if self._regions[resource.address] != region:
                    continue
                if kind == TABLE:
                    yield resource.address, self._table(resource)
                elif kind == _TARGET and resource.address in self._places and not self._is_of_replica(resource):
                    yield resource.address, self._target(resource)
                elif kind == _POLICY and _is_ours(resource):
                    yield from self._policy(resource)
        for kind, resources in self._by_kind.items():
            for resource in resources if is_unread(kind) and kind not in _READ else ():
                if self._regions[resource.address] == region:
                    yield resource.address, {"Type": kind, "Properties": self._with_references(resource)}

    def _with_references(self, resource: Resource) -> dict[str, Any]:
        """Return the attributes of a resource that is not read, with the names of the tables that it refers to."""
        attributes = self._configuration.attributes(resource)
        tables = {
            _name_of(table)
            for attribute in attributes
            for table in self._configuration.follow(resource, attribute, [TABLE]).resources.values()
        }
        return {**resource.values, **({"refers to": sorted(tables)} if tables else {})}

    # -- tables

    def _table(self, resource: Resource) -> dict[str, Any]:
        values = resource.values
        shared = {
            "TableName": _known(values.get("name")),
            "BillingMode": values.get("billing_mode"),
            "DeletionProtectionEnabled": values.get("deletion_protection_enabled"),
            "Tags": [{"Key": key, "Value": value} for key, value in as_object(values.get("tags")).items()] or None,
            "WarmThroughput": block_of(values.get("warm_throughput"), _WARM),
            **self._keys[resource.address].properties(),
        }
        maximums = block_of(values.get("on_demand_throughput"), _ON_DEMAND)
        replicas = values.get("replica")
        if is_wrong(replicas):
            return _resource("AWS::DynamoDB::GlobalTable", shared | {"Replicas": replicas})
        if is_wrong(values.get("global_secondary_index")):
            # the reader of templates says what it cannot read, of this table alone
            wrong = {"GlobalSecondaryIndexes": values["global_secondary_index"]}
            units = _throughput(values, values.get("read_capacity"), values.get("write_capacity"))
            return _resource("AWS::DynamoDB::Table", shared | units | wrong)
        every = self._replicas[resource.address]
        unplaced = [each for each in every if "address" in each and each["region_name"] is None]
        # for the guard alone
        shared["UnplacedReplicas"] = [each["address"] for each in unplaced] or None
        if replicas := [each for each in every if each not in unplaced]:
            return _resource("AWS::DynamoDB::GlobalTable", shared | self._of_global_table(resource, maximums, replicas))
        return _resource(
            "AWS::DynamoDB::Table",
            shared
            | _throughput(values, values.get("read_capacity"), values.get("write_capacity"))
            | {
                "TableClass": values.get("table_class"),
                "OnDemandThroughput": maximums,
                "GlobalSecondaryIndexes": [
                    {"IndexName": name, "WarmThroughput": warm, "OnDemandThroughput": most}
                    | _throughput(values, read, write)
                    | self._keys[resource.address].of_index(name)
                    for name, read, write, warm, most in self._indexes[resource.address]
                ],
            },
        )

    def _of_global_table(self, resource: Resource, maximums: Any, replicas: list[Any]) -> dict[str, Any]:
        values, own = resource.values, self._regions[resource.address]
        is_on_demand = values.get("billing_mode") == "PAY_PER_REQUEST"

        def settings(read: Any, write: Any, **others: Any) -> dict[str, Any]:
            if is_on_demand:
                return others
            return others | {
                "ReadProvisionedThroughputSettings": given({"ReadCapacityUnits": read}),
                "WriteProvisionedThroughputSettings": given({"WriteCapacityUnits": write}),
            }

        others = []
        for replica in replicas:
            region = as_object(replica).get("region_name")
            indexes = [
                {"IndexName": name, **_reads(self._replica_reads(resource, region, name, read))}
                for name, read, *_ in self._indexes[resource.address]
            ]
            reads = _reads(self._replica_reads(resource, region, None, values.get("read_capacity")))
            more = {} if is_on_demand else {**reads, "GlobalSecondaryIndexes": indexes}
            others.append(
                given(
                    {
                        "Region": region,
                        "TableClass": values.get("table_class"),
                        "DeletionProtectionEnabled": as_object(replica).get("deletion_protection_enabled"),
                        # for the guard alone
                        "Source": as_object(replica).get("address"),
                        "KmsKey": as_object(replica).get("kms_key_arn"),
                        "ConsistencyMode": as_object(replica).get("consistency_mode"),
                        **more,
                    }
                )
            )
        return {
            **settings(values.get("read_capacity"), values.get("write_capacity")),
            **_maximums(maximums),
            "GlobalSecondaryIndexes": [
                given(settings(read, write, IndexName=name, WarmThroughput=warm) | _maximums(most))
                | self._keys[resource.address].of_index(name)
                for name, read, write, warm, most in self._indexes[resource.address]
            ],
            "Replicas": [
                given({"Region": own or {"Ref": "AWS::Region"}, "TableClass": values.get("table_class")}),
                *others,
            ],
        }

    def _replica_reads(self, table: Resource, region: Any, index: Any, units: Any) -> Any:
        """Return the read units of a replica: the floor of its own target, of the table's target, or the units."""
        for at in (region, self._regions[table.address]):
            for target in self._by_kind.get(_TARGET, ()):
                place = self._places.get(target.address)
                name = TargetName.find(place.resource_id, place.dimension) if place else None
                if name is None or self._regions[target.address] != at or name.dimension != "read":
                    continue
                if (name.table, name.index) == (_name_of(table), index):
                    return target.values.get("min_capacity")
        return units

    def _is_of_replica(self, target: Resource) -> bool:
        """Return whether a target scales a replica that a table of another region has, and this region no table."""
        place = self._places[target.address]
        name, region = TargetName.find(place.resource_id, place.dimension), self._regions[target.address]
        same = [table for table in self._tables.values() if name is not None and _name_of(table) == name.table]
        if any(self._regions[table.address] == region for table in same):
            return False
        replicas = [replica for table in same for replica in self._replicas[table.address]]
        return any(as_object(replica).get("region_name") == region for replica in replicas)

    def _own_replicas(self, table: Resource) -> Iterator[dict[str, Any]]:
        """Yield the replicas of a table that are resources of their own, as blocks of the table with their address."""
        for resource in self._by_kind.get(REPLICA, ()):
            arn = resource.values.get("global_table_arn")
            if _is_known(arn):
                is_own = _is_of(arn, table.values.get("name"), self._regions[table.address])
            else:
                found = self._configuration.follow(resource, "global_table_arn", [TABLE]).best_for(resource)
                is_own = found is not None and found.address == table.address
            if is_own:
                region = self._configuration.region(resource)
                if region is None:
                    what = "is not read: its region is not known, and the replica is not paid for here"
                    self._leave_out(resource, what, self._regions[table.address])
                yield {
                    "region_name": region,
                    "deletion_protection_enabled": resource.values.get("deletion_protection_enabled"),
                    "address": resource.address,
                }

    def _indexes_of(self, table: Resource) -> Iterator[tuple[Any, Any, Any, Any, Any]]:
        """Yield name, read and write units, warm throughput and maximums of each index in a table's own blocks."""
        for each in blocks_of(table.values.get("global_secondary_index")):
            if not isinstance(each, dict):
                continue
            warm = block_of(each.get("warm_throughput"), _WARM)
            most = block_of(each.get("on_demand_throughput"), _ON_DEMAND)
            yield each.get("name"), each.get("read_capacity"), each.get("write_capacity"), warm, most

    def _add_own_indexes(self) -> None:
        """Add the indexes that are resources of their own to their tables."""
        for resource in self._by_kind.get(INDEX, ()):
            table = self._table_of(resource, "table_name", resource.values.get("table_name"))
            if table is None:
                self._leave_out(
                    resource,
                    "is not read: its table is not in the plan, or known only after apply",
                    self._regions[resource.address],
                )
                continue
            throughput = as_object(first_of(resource.values.get("provisioned_throughput")))
            read, write = throughput.get("read_capacity_units"), throughput.get("write_capacity_units")
            warm = block_of(resource.values.get("warm_throughput"), _WARM)
            most = block_of(resource.values.get("on_demand_throughput"), _ON_DEMAND)
            name = resource.values.get("index_name")
            self._keys[table.address].add_index(resource.address, resource.values)
            others = [index for index in self._indexes[table.address] if index[0] != name]
            self._indexes[table.address] = [*others, (name, read, write, warm, most)]

    # -- scaling

    def _place(self, resource: Resource) -> _Place:
        dimension = str(resource.values.get("scalable_dimension"))
        text = resource.values.get("resource_id")
        if _is_known(text):
            return _Place(str(text), dimension)
        if resource.kind != _TARGET:
            target = self._configuration.follow(resource, "resource_id", [_TARGET]).best_for(resource)
            if target is not None and target.address in self._places:
                place = self._places[target.address]
                return _Place(place.resource_id, place.dimension, target)
        table = self._table_of(resource, "resource_id", None)
        if table is None:
            return _Place(f"${{{resource.address}}}", dimension)
        if not dimension.startswith("dynamodb:index:"):
            return _Place(f"table/{_name_of(table)}", dimension)
        names = [name for name, *_ in self._indexes[table.address]]
        index = self._configuration.follow(resource, "resource_id", [INDEX]).best_for(resource)
        own = index.values.get("index_name") if index is not None else resource.index
        name = own if own in names else names[0] if len(names) == 1 else None
        if name is not None:
            return _Place(f"table/{_name_of(table)}/index/{name}", dimension)
        return _Place(f"${{{resource.address}}}", dimension)

    def _table_of(self, resource: Resource, attribute: str, name: Any) -> Resource | None:
        """Return the table of a name, or that an attribute of the resource refers to."""
        region = self._regions[resource.address]
        if _is_known(name):
            tables = [table for table in self._tables.values() if table.values.get("name") == name]
            return next((table for table in tables if self._regions[table.address] == region), None)
        found = self._configuration.follow(resource, attribute, [TABLE])
        table = found.best_for(resource)
        if table is None:
            index = self._configuration.follow(resource, attribute, [INDEX]).best_for(resource)
            return None if index is None else self._table_of(index, "table_name", index.values.get("table_name"))
        if found.is_by_module:
            self._note(
                resource,
                f"its {attribute} is known only after apply, by a local value; it is taken to be that of "
                f"{table.address}, the only table there",
            )
        return table

    def _target(self, resource: Resource) -> dict[str, Any]:
        place = self._places[resource.address]
        return _resource(
            "AWS::ApplicationAutoScaling::ScalableTarget",
            {
                "ResourceId": place.resource_id,
                "ScalableDimension": place.dimension,
                **renamed(resource.values, _BOUNDS),
                "SuspendedState": first_of(resource.values.get("suspended_state")),
                "ScheduledActions": self._actions.get(resource.address),
            },
        )

    def _policy(self, resource: Resource) -> Iterator[tuple[str, dict[str, Any]]]:
        place = self._place(resource)
        if place.target is None and "${" in place.resource_id and place.resource_id[2:-1] == resource.address:
            what = "is not read: which target it is of is known only after apply"
            self._leave_out(resource, what, self._regions[resource.address])
            return
        where: dict[str, Any] = {"ResourceId": place.resource_id, "ScalableDimension": place.dimension}
        if place.target is not None:
            where = {"ScalingTargetId": {"Ref": place.target.address}}
        tracking = first_of(resource.values.get("target_tracking_scaling_policy_configuration"))
        configuration: Any = tracking
        if isinstance(tracking, dict):
            metric = block_of(
                tracking.get("predefined_metric_specification"), {"predefined_metric_type": "PredefinedMetricType"}
            )
            configuration = renamed(tracking, _TRACKING) | given({"PredefinedMetricSpecification": metric})
            if tracking.get("customized_metric_specification"):
                configuration["CustomizedMetricSpecification"] = {}
        yield (
            resource.address,
            _resource(
                "AWS::ApplicationAutoScaling::ScalingPolicy",
                where | {"TargetTrackingScalingPolicyConfiguration": configuration},
            ),
        )

    def _actions_of_targets(self) -> dict[str, list[dict[str, Any]]]:
        """Return the scheduled actions by the address of their target."""
        at = {
            (self._regions[address], place.resource_id, place.dimension): address
            for address, place in self._places.items()
        }
        actions: dict[str, list[dict[str, Any]]] = {}
        for resource in self._by_kind.get(_ACTION, ()):
            if not _is_ours(resource):
                continue
            place = self._place(resource)
            key = (self._regions[resource.address], place.resource_id, place.dimension)
            target = at.get(key) if place.target is None else place.target.address
            if target is None:
                what = "is not read: its target is not in the plan"
                self._leave_out(resource, what, self._regions[resource.address])
                continue
            bounds = block_of(resource.values.get("scalable_target_action"), _BOUNDS)
            action = renamed(resource.values, _SCHEDULE) | given({"ScalableTargetAction": bounds})
            actions.setdefault(target, []).append(action)
        return actions

    def _leave_out(self, resource: Resource, what: str, region: str | None) -> None:
        content = json.dumps(resource.values, sort_keys=True, default=str)
        left_out = self._left_out.setdefault(region, [])
        left_out.append(LeftOut(resource.address, what, content))

    def _note(self, resource: Resource, text: str) -> None:
        notes = self._notes.setdefault(self._regions[resource.address], [])
        note = f"{resource.address}: {text}"
        if note not in notes:
            notes.append(note)


_READ: Final = (TABLE, INDEX, REPLICA, _TARGET, _POLICY, _ACTION)


def _is_ours(resource: Resource) -> bool:
    """Return whether a resource of Application Auto Scaling scales DynamoDB."""
    namespace, dimension = (resource.values.get(each) for each in ("service_namespace", "scalable_dimension"))
    return namespace == "dynamodb" or (namespace is None and str(dimension).startswith("dynamodb:"))


def _is_of(arn: Any, table: Any, region: str | None) -> bool:
    """Return whether an ARN is that of a table of this name, and of its region where both are known."""
    parts = str(arn).split(":")
    same_region = region is None or len(parts) < 6 or not parts[3] or parts[3] == region
    return str(arn).rpartition("table/")[2] == str(table) and same_region


def _is_known(text: Any) -> bool:
    return isinstance(text, str) and bool(text) and "${" not in text


def _known(text: Any) -> Any:
    """Return a name; `None` for one that is known only after apply."""
    return None if isinstance(text, str) and "${" in text else text


def _name_of(table: Resource) -> str:
    """Return the name of a table as its targets have it: a placeholder if it is known only after apply."""
    name = table.values.get("name")
    return str(name) if _is_known(name) else f"${{{table.address}}}"


def _throughput(table: Mapping[str, Any], read: Any, write: Any) -> dict[str, Any]:
    """Return the provisioned throughput; none for a table that is billed by request, whose state has zeros there."""
    if table.get("billing_mode") == "PAY_PER_REQUEST":
        return {}
    return {"ProvisionedThroughput": given({"ReadCapacityUnits": read, "WriteCapacityUnits": write})}


def _reads(units: Any) -> dict[str, Any]:
    return {"ReadProvisionedThroughputSettings": given({"ReadCapacityUnits": units})}


def _resource(kind: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"Type": kind, "Properties": given(properties)}


def _maximums(most: Any) -> dict[str, Any]:
    """Return the on-demand maximums of a table or index as a global table declares them; nothing without maximums."""
    limits = as_object(most)
    return {
        f"{kind}OnDemandThroughputSettings": {name: limits[name]}
        for kind, name in (("Read", "MaxReadRequestUnits"), ("Write", "MaxWriteRequestUnits"))
        if limits.get(name) is not None
    }
