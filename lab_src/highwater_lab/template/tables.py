"""Converts `AWS::DynamoDB::GlobalTable` (from the CDK's TableV2) to the properties of a table and its targets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from highwater.core import Dimension, Units
from highwater.core.limits import ON_DEMAND_WARM_READ_UNITS, ON_DEMAND_WARM_WRITE_UNITS
from highwater.core.scaler.plan import MANAGED_TAG, ScaledPlan, plan_of_tags
from highwater_lab.simulation.known import KnownTable
from highwater_lab.simulation.setup import ReplicaSetup, ResourceSetup, TableSetup, TargetSetup
from highwater_lab.template.document import DATA, TemplateError
from highwater_lab.template.intrinsics import TABLE_TYPES, Resolver, how_to_give
from highwater_lab.template.parts import Parts, could_be, identity, may_exist
from highwater_lab.template.replacements import GLOBAL_TABLE, SIMPLE_TABLE
from highwater_lab.template.scaling import Key, TemplateScaling, read_tracking
from highwater_lab.template.stacks import Stack, Stacks, is_open


def as_table(
    resolver: Resolver, properties: dict[str, Any], logical_id: str, physical: str, notes: list[str]
) -> tuple[dict[str, Any], dict[Key, TemplateScaling]]:
    """Return the properties of an equivalent `AWS::DynamoDB::Table`, and its scalable targets.

    The replica is that of the stack's own region, where CloudFormation requires one; the first replica if the template
    does not say which region that is.
    """
    replica, others = _own_and_others(resolver, properties, logical_id)
    if others:
        names = ", ".join(str(other.get("Region")) for other in others)
        own = str(replica.get("Region"))
        own = "that of its own region, which is not known," if is_open(own) else own
        notes.append(
            f"{logical_id} has {1 + len(others)} replicas: {own} is rehearsed, and all are paid for; "
            f"{names} with the same writes, and with reads at their floors, as their own reads are not known"
        )
    is_on_demand = is_billed_by_request(resolver, properties, logical_id)
    scaling: dict[Key, TemplateScaling] = {}
    replica_indexes = {
        str(index.get("IndexName")): index
        for index in resolver.mappings(replica.get("GlobalSecondaryIndexes"), f"{logical_id} replica's indexes")
    }

    def resource(index: str | None, shared: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
        copied = {key: value for key, value in shared.items() if key in ("IndexName", "WarmThroughput", "BillingMode")}
        if is_on_demand:
            write, read = (
                shared.get("WriteOnDemandThroughputSettings"),
                _own(own, shared, "ReadOnDemandThroughputSettings"),
            )
            maximums = resolver.mapping(write, f"{logical_id} WriteOnDemandThroughputSettings") | resolver.mapping(
                read, f"{logical_id} ReadOnDemandThroughputSettings"
            )
            return copied | ({"OnDemandThroughput": maximums} if maximums else {})
        where = logical_id if index is None else f"{logical_id} index {index}"
        throughput = {}
        for dimension, settings in (
            (Dimension.READ, _own(own, shared, "ReadProvisionedThroughputSettings")),
            (Dimension.WRITE, shared.get("WriteProvisionedThroughputSettings")),
        ):
            member = f"{dimension.title()}Capacity"
            resolved = resolver.mapping(settings, f"{where} {dimension} settings")
            units, target = _read_settings(resolver, resolved, member, where)
            throughput[f"{member}Units"] = units
            if target is not None:
                scaling[physical, index, dimension] = target
        return copied | {"ProvisionedThroughput": throughput}

    table = resource(None, properties, replica) | {"TableClass": replica.get("TableClass")}
    indexes = resolver.mappings(properties.get("GlobalSecondaryIndexes"), f"{logical_id} indexes")
    table["GlobalSecondaryIndexes"] = [
        resource(index.get("IndexName"), index, replica_indexes.get(str(index.get("IndexName")), {}))
        for index in indexes
    ]
    return table, scaling


def _own(replica: dict[str, Any], shared: dict[str, Any], member: str) -> Any:
    """Return a replica's own setting, or the table's setting for all replicas."""
    return replica.get(member) or shared.get(member)


def other_replicas(resolver: Resolver, properties: dict[str, Any], logical_id: str) -> tuple[ReplicaSetup, ...]:
    """Return the replicas in other regions than the stack's; raises `TemplateError` if one cannot be read."""
    is_on_demand = is_billed_by_request(resolver, properties, logical_id)
    replicas = []
    for other in _own_and_others(resolver, properties, logical_id)[1]:
        label = f"{logical_id} replica's {resolver.word('Region')}"
        region = resolver.text(resolver.closed(other.get("Region"), label), label)
        indexes = resolver.mappings(other.get("GlobalSecondaryIndexes"), f"{logical_id} {region} indexes")
        shared = {
            str(index.get("IndexName")): index
            for index in resolver.mappings(properties.get("GlobalSecondaryIndexes"), f"{logical_id} indexes")
        }
        reads, targets = 0, {}
        for number, own in enumerate([] if is_on_demand else [other, *indexes]):
            where = f"{logical_id} {region}" if number == 0 else f"{logical_id} {region} index {own.get('IndexName')}"
            whole = properties if number == 0 else shared.get(str(own.get("IndexName")), {})
            settings = resolver.mapping(_own(own, whole, "ReadProvisionedThroughputSettings"), f"{where} read settings")
            units, target = _read_settings(resolver, settings, "ReadCapacity", where)
            reads += units if target is None else target.min
            targets[None if number == 0 else str(own.get("IndexName"))] = TargetSetup.of_scaling(units, target)
        is_infrequent_access = _is_infrequent_access(resolver, other, f"{logical_id} {region}")
        replicas.append(
            ReplicaSetup(
                region=region, read_units=reads, is_infrequent_access=is_infrequent_access, read_targets=targets
            )
        )
    return tuple(replicas)


def own_region(resolver: Resolver, properties: dict[str, Any], logical_id: str) -> str:
    """Return the region of the replica that is rehearsed; raises `TemplateError` if the replicas cannot be read."""
    return str(_own_and_others(resolver, properties, logical_id)[0].get("Region", "${AWS::Region}"))


def _own_and_others(
    resolver: Resolver, properties: dict[str, Any], logical_id: str
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    replicas = resolver.mappings(properties.get("Replicas"), f"{logical_id} {resolver.word('Replicas')}")
    region = resolver.resolve({"Ref": "AWS::Region"})
    own = next((replica for replica in replicas if replica.get("Region") == region), replicas[0] if replicas else {})
    return own, [replica for replica in replicas if replica is not own]


def _read_settings(
    resolver: Resolver, settings: dict[str, Any], member: str, where: str
) -> tuple[int, TemplateScaling | None]:
    """Return the units at the start, and the scalable target, `None` if the capacity is fixed."""
    fixed = settings.get(f"{member}Units")
    if fixed is not None:
        return resolver.units(fixed, f"{where} {resolver.word(f'{member}Units')}") or 1, None
    path = f"{where} {member}AutoScalingSettings"
    autoscaling = resolver.mapping(settings.get(f"{member}AutoScalingSettings"), path)
    if not autoscaling:
        raise resolver.error(
            f"{where}: has provisioned billing but no {resolver.word(f'{member} settings')}; add them, or set "
            f"{resolver.word('BillingMode')} to "
            "PAY_PER_REQUEST"
        )
    low = resolver.units(autoscaling.get("MinCapacity"), f"{path} {resolver.word('MinCapacity')}") or 1
    high = resolver.units(autoscaling.get("MaxCapacity"), f"{path} {resolver.word('MaxCapacity')}") or low
    notes: list[str] = []
    tracking = resolver.mapping(
        autoscaling.get("TargetTrackingScalingPolicyConfiguration"), f"{path} TargetTrackingScalingPolicyConfiguration"
    )
    policy = read_tracking(resolver, tracking, path, notes)
    target = TemplateScaling(min=low, max=high, tracking=policy, notes=notes)
    return max(low, resolver.units(autoscaling.get("SeedCapacity"), f"{path} SeedCapacity") or 0), target


# sections whose values a table may use without this being traceable
_SHARED: Final = ("Parameters", "Mappings", "Conditions")
_Marks = dict[str | None, Units]
_NO_MARK: Final = Units(0, 0)


@dataclass(frozen=True, slots=True)
class TemplateTable:
    """A table that a template defines, or only scales.

    Attributes:
        stack: Its stack; the stack of its first target if no template defines it.
        logical_id: Its logical id; `None` if no template defines it.
        kind: Its resource type; `None` if no template defines it.
        table: Its identity: its name, or a reference that names its template.
        path: The path of its construct, `None` if the assembly lacks it.
    """

    stack: Stack
    logical_id: str | None
    kind: str | None
    table: str
    path: str | None

    @property
    def name(self) -> str:
        """Its name in reports: the path of its construct, its logical id, or its name in its scalable targets."""
        return self.path or self.logical_id or self.table.replace(f"{{{self.stack.template.stem}:", "{")


def tables_of(stacks: Stacks, parts: Parts, *, are_absent: bool = False) -> Iterator[TemplateTable]:
    """Yield every table that a template defines, then every table that one only scales.

    With *are_absent*, those alone whose condition is false.
    """
    for stack in stacks.all:
        for kind in TABLE_TYPES:
            for logical_id, _ in stack.resources(kind):
                if may_exist(stack, logical_id) is are_absent:
                    continue
                physical = identity(stack, stack.name_of(logical_id))
                yield TemplateTable(stack, logical_id, kind, physical, stack.construct_path(logical_id))
    for part in () if are_absent else parts.only_scaled():
        yield TemplateTable(part.stack, None, None, part.table, None)


def read_table(found: TemplateTable, parts: Parts) -> TableSetup:
    """Return a table's setup for the simulator.

    Raises `TemplateError` if a resource of the table cannot be read, or it is not known whether a target belongs to it.
    """
    scope = found.stack.scope
    resolvers = {found.stack.resolver} | {stack.resolver for stack, _ in parts.concerned(scope, found.table)}
    for resolver in resolvers:
        resolver.defaults.clear()
    scaling = parts.scaling(scope, found.table)
    marks = parts.marks(scope, found.table)
    if found.logical_id is not None and found.kind is not None:
        # raises if its condition cannot be read
        found.stack.exists(found.logical_id)
        resource = found.stack.template.resource(found.logical_id)
        table, scaling = _defined(found, found.logical_id, resource, scaling, marks)
    elif (data := _data_of(found)) is not None:
        table, scaling = _defined(found, *data, scaling, marks)
        not_here = found.stack.resolver.word("not defined in this template")
        table = replace(table, notes=(f"{found.name} is {not_here}: its capacity is that of {data[0]}", *table.notes))
    else:
        table = _only_scaled(found, scaling, marks)
    notes = [*_check_doubled(found, parts), *found.stack.resolver.notes, *found.stack.notes]
    notes += [note for resolver in resolvers for note in _defaults_of(resolver)]
    scaler = parts.scaler(scope, found.table) or _tagged(found, table, notes)
    table = replace(_with_scaler(table, scaler), buffer=parts.buffer(scope, found.table))
    if found.logical_id is not None:
        _check_open(found, table, scaling, parts)
    table = replace(table, known=_known(found))
    return replace(table, notes=(*table.notes, *notes))


def _data_of(found: TemplateTable) -> tuple[str, dict[str, Any]] | None:
    """Return the address and the resource of a table that a Terraform plan only reads; `None` for another."""
    data = found.stack.template.section(DATA) if found.stack.template.is_plan else {}
    return next((each for each in data.items() if each[1]["Properties"].get("TableName") == found.table), None)


def _tags(found: TemplateTable) -> dict[str, str]:
    """Return the tags of a table, of a global table those of its own replica; none if they cannot be evaluated."""
    if found.logical_id is None:
        return {}
    properties, resolver = found.stack.template.resource(found.logical_id).get("Properties"), found.stack.resolver
    try:
        declared = resolver.mapping(properties, "Properties")
        tags = declared.get("Tags")
        if found.kind == SIMPLE_TABLE:
            return {key: str(value) for key, value in resolver.mapping(tags, "Tags").items()}
        if found.kind == GLOBAL_TABLE and tags is None:
            region = own_region(resolver, declared, found.logical_id)
            replicas = resolver.mappings(declared.get("Replicas"), "Replicas")
            tags = next((each.get("Tags") for each in replicas if resolver.resolve(each.get("Region")) == region), None)
        pairs = resolver.mappings(tags, "Tags")
        return {str(each.get("Key")): str(resolver.resolve(each.get("Value"))) for each in pairs}
    except TemplateError:
        return {}


def _tagged(found: TemplateTable, table: TableSetup, notes: list[str]) -> ScaledPlan | None:
    """Return the plan that the table's tags declare for a scaler; *notes* gets what is taken for granted about it."""
    tags = _tags(found)
    if MANAGED_TAG not in tags:
        return None
    try:
        plan = plan_of_tags(found.table, tags)
    except ValueError as error:
        notes.append(f"{found.name}: its tags are not read, and no scaler manages it: {error}")
        return None
    notes.append(f"{found.name}: it has the tag {MANAGED_TAG}, and is taken to be managed by a scaler of tagged tables")
    return plan.with_indexes(table.indexes)


# begins a note that concerns what a deployed stack may have
DEFAULT_TAKEN: Final = "the default of parameter"


def _defaults_of(resolver: Resolver) -> Iterator[str]:
    """Yield a line for each parameter whose default is taken for capacity; a deployed stack may have another value."""
    for name, (default, labels) in resolver.defaults.items():
        first, *more = dict.fromkeys(labels)
        others = f" and {len(more)} more" if more else ""
        yield (
            f"{DEFAULT_TAKEN} {name}, {default}, is taken for {first}{others}; give --parameter {name}=VALUE "
            "if the stack has another"
        )


_KEY_TYPES: Final = {"String": "S", "Number": "N", "Binary": "B"}


def _known(found: TemplateTable) -> KnownTable:
    """Return the name and the keys of a table; keys that cannot be evaluated are left out."""
    name = None if is_open(found.table) else found.table
    if found.logical_id is None or found.kind is None:
        return KnownTable(table_name=name)
    properties = found.stack.template.resource(found.logical_id).get("Properties")
    declared = properties if isinstance(properties, dict) else {}
    if found.kind == SIMPLE_TABLE and "KeySchema" not in declared:
        declared = simple_keys(declared)
    members = ("KeySchema", "AttributeDefinitions", "GlobalSecondaryIndexes", "LocalSecondaryIndexes")
    read = {}
    for member in members:
        try:
            read[member] = found.stack.resolver.resolve(declared.get(member))
        except TemplateError:
            continue
    return KnownTable.of_description(
        read,
        table_name=name,
        # Terraform has words of its own
        is_in_app=not found.stack.template.dialect.words,
        is_global=found.kind == GLOBAL_TABLE,
    )


def simple_keys(declared: dict[str, Any]) -> dict[str, Any]:
    """Return the key of an `AWS::Serverless::SimpleTable` as a table declares it; by default a text `id`."""
    key = declared.get("PrimaryKey") or {}
    name, kind = (key.get("Name", "id"), key.get("Type", "String")) if isinstance(key, dict) else (None, None)
    return {
        "KeySchema": [{"AttributeName": name, "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": name, "AttributeType": _KEY_TYPES.get(str(kind))}],
    }


def _defined(
    found: TemplateTable,
    logical_id: str,
    resource: dict[str, Any],
    scaling: dict[Key, TemplateScaling],
    marks: _Marks,
) -> tuple[TableSetup, dict[Key, TemplateScaling]]:
    resolver = found.stack.resolver
    kind, properties = resource.get("Type"), resource.get("Properties")
    properties = properties if isinstance(properties, dict) else {}
    notes: list[str] = []
    replicas: tuple[ReplicaSetup, ...] = ()
    # raises if its name cannot be evaluated
    resolver.resolve({"Ref": logical_id})
    region = str(resolver.resolve({"Ref": "AWS::Region"}))
    if kind == GLOBAL_TABLE:
        region = own_region(resolver, properties, logical_id)
        replicas = other_replicas(resolver, properties, logical_id)
        properties, own = as_table(resolver, properties, logical_id, found.table, notes)
        scaling = own | scaling
    elif kind == SIMPLE_TABLE and "ProvisionedThroughput" not in properties:
        properties = {**properties, "BillingMode": "PAY_PER_REQUEST"}
    table = _table(resolver, logical_id, found.table, properties, scaling, marks, notes)
    known = None if is_open(region) else region
    return replace(table, name=found.name, region=known, replicas=replicas), scaling


def _check_doubled(found: TemplateTable, parts: Parts) -> list[str]:
    """Return notes on duplicate keys elsewhere; raise `TemplateError` for one in a resource that is read."""
    read = {(stack.template.where, logical_id) for stack, logical_id in parts.concerned(found.stack.scope, found.table)}
    read.add((found.stack.template.where, str(found.logical_id)))
    notes = []
    for template in {where: found.stack.template for where, _ in read if where == found.stack.template.where}.values():
        for doubled in template.doubled:
            section, logical_id = ((*doubled.path, doubled.key, doubled.key)[:2]) if doubled.path else ("", doubled.key)
            if section in ("", *_SHARED) or (section == "Resources" and (template.where, logical_id) in read):
                raise template.doubled_error(doubled)
            line = "" if doubled.line is None else f"line {doubled.line}: "
            notes.append(
                f"{line}the key {doubled.key!r} occurs twice in {section} {logical_id}, which is not read here"
            )
    return notes


def _check_open(found: TemplateTable, table: TableSetup, scaling: dict[Key, TemplateScaling], parts: Parts) -> None:
    """Raise `TemplateError` for a target that may or may not be this table's, if the table has no other one for it."""
    if table.is_on_demand or table.scaler is not None:
        return
    for part in parts.left_open():
        is_any = part.index is not None and is_open(part.index)
        wanting = [
            index
            for index in (table.indexes if is_any else (part.index,))
            if (index is None or index in table.indexes) and (found.table, index, part.dimension) not in scaling
        ]
        if not wanting or part.scope != found.stack.scope or not could_be(part, found.table):
            continue
        what = f"{found.name} has no scalable target for its {part.dimension}s"
        missing = part.stack.resolver.missing(f"{part.table} {part.index}")
        given = f"{how_to_give(missing)}, or " if missing else ""
        if is_any:
            raise found.stack.resolver.error(
                f"{what} of index {wanting[0]}, but {part.where} scales an index that is "
                f"{found.stack.resolver.word('known only at deployment')} "
                f"({part.table}); {given}say which index that is with --target {part.logical_id}={found.name}/index/"
                f"{wanting[0]}, or with another"
            )
        raise found.stack.resolver.error(
            f"{what}, but {part.where} scales a table whose name is "
            f"{found.stack.resolver.word('known only at deployment')} ({part.table}); {given}say which "
            f"table that is with --target {part.logical_id}={found.name}, or with the name of another"
        )


def _table(
    resolver: Resolver,
    logical_id: str,
    physical: str,
    properties: dict[str, Any],
    scaling: dict[Key, TemplateScaling],
    marks: _Marks,
    notes: list[str],
) -> TableSetup:
    is_on_demand = is_billed_by_request(resolver, properties, logical_id)
    if properties.get("VectorIndexes"):
        if not is_on_demand:
            raise resolver.error(
                f"{logical_id} has vector indexes, which DynamoDB allows on on-demand tables only; set its "
                f"{resolver.word('BillingMode')} "
                "to PAY_PER_REQUEST"
            )
        notes.append("vector indexes are allowed on on-demand tables only; their own requests are not simulated")
    resources = [_resource(resolver, logical_id, (physical, None), properties, is_on_demand, scaling, marks)]
    indexes = resolver.mappings(properties.get("GlobalSecondaryIndexes"), f"{logical_id} indexes")
    for number, index in enumerate(indexes):
        name = resolver.text(index.get("IndexName"), f"{logical_id} index {number} {resolver.word('IndexName')}")
        if name in (resource.index for resource in resources):
            raise resolver.error(f"{logical_id} has two indexes named {name}; rename or remove one")
        resources.append(_resource(resolver, logical_id, (physical, name), index, is_on_demand, scaling, marks))
    for target in scaling.values():
        notes.extend(target.notes)
    return TableSetup(
        name=logical_id,
        resources=tuple(resources),
        is_on_demand=is_on_demand,
        is_infrequent_access=_is_infrequent_access(resolver, properties, logical_id),
        notes=tuple(notes),
    )


def _with_scaler(table: TableSetup, scaler: ScaledPlan | None) -> TableSetup:
    if scaler is None or table.is_on_demand:
        return table
    return replace(table, scaler=scaler)


def is_on_demand(found: TemplateTable) -> bool:
    """Return whether a table is billed by request; `False` where that cannot be read."""
    if found.logical_id is None:
        return False
    properties = found.stack.template.resource(found.logical_id).get("Properties")
    declared = properties if isinstance(properties, dict) else {}
    if found.kind == SIMPLE_TABLE and "ProvisionedThroughput" not in declared:
        return True
    try:
        return is_billed_by_request(found.stack.resolver, declared, found.name)
    except TemplateError:
        return False


def is_billed_by_request(resolver: Resolver, properties: dict[str, Any], where: str) -> bool:
    """Return whether a table's billing mode is on-demand; raises `TemplateError` for an unknown mode."""
    mode = resolver.closed(properties.get("BillingMode"), f"{where} {resolver.word('BillingMode')}")
    if mode not in (None, "PROVISIONED", "PAY_PER_REQUEST"):
        raise resolver.error(
            f"{where} has {resolver.word('BillingMode')} {str(mode)[:60]!r}; expected PROVISIONED or PAY_PER_REQUEST"
        )
    return bool(mode == "PAY_PER_REQUEST")


def _is_infrequent_access(resolver: Resolver, properties: dict[str, Any], where: str) -> bool:
    table_class = resolver.closed(properties.get("TableClass"), f"{where} {resolver.word('TableClass')}")
    return bool(table_class == "STANDARD_INFREQUENT_ACCESS")


def _limit(resolver: Resolver, value: Any, where: str) -> int | None:
    has_limit = str(resolver.resolve(value)) not in ("None", "-1")
    units = resolver.units(value, f"{where} {resolver.word('OnDemandThroughput')}") if has_limit else None
    return units or None


def _resource(
    resolver: Resolver,
    logical_id: str,
    key: tuple[str, str | None],
    properties: dict[str, Any],
    is_on_demand: bool,
    scaling: dict[Key, TemplateScaling],
    marks: _Marks,
) -> ResourceSetup:
    physical, index = key
    where = logical_id if index is None else f"{logical_id} index {index}"
    throughput = resolver.mapping(properties.get("ProvisionedThroughput"), f"{where} ProvisionedThroughput")
    units = []
    for member in ("ReadCapacityUnits", "WriteCapacityUnits"):
        given = resolver.units(throughput.get(member), f"{where} {resolver.word(member)}")
        if given is None and not is_on_demand:
            raise resolver.error(
                f"{where}: has provisioned billing but no {resolver.word(member)}; set it, or set "
                f"{resolver.word('BillingMode')} to PAY_PER_REQUEST"
            )
        units.append(max(1, given or 1))
    warm = resolver.mapping(properties.get("WarmThroughput"), f"{where} {resolver.word('WarmThroughput')}")
    asked_read = resolver.units(warm.get("ReadUnitsPerSecond"), f"{where} {resolver.word('WarmThroughput')}") or 0
    asked_write = resolver.units(warm.get("WriteUnitsPerSecond"), f"{where} {resolver.word('WarmThroughput')}") or 0
    own = marks.get(index, _NO_MARK)
    read = TargetSetup.of_scaling(units[0], scaling.get((physical, index, Dimension.READ)))
    write = TargetSetup.of_scaling(units[1], scaling.get((physical, index, Dimension.WRITE)))
    mark = Units(max(asked_read, own.read), max(asked_write, own.write))
    # AWS charges only for warm throughput above that of a new table with this capacity
    free = Units(max(read.units, read.min), max(write.units, write.min))
    if is_on_demand:
        free = Units(ON_DEMAND_WARM_READ_UNITS, ON_DEMAND_WARM_WRITE_UNITS)
    maximums = resolver.mapping(properties.get("OnDemandThroughput"), f"{where} {resolver.word('OnDemandThroughput')}")
    return ResourceSetup(
        index=index,
        read=read,
        write=write,
        max_read_units=_limit(resolver, maximums.get("MaxReadRequestUnits"), where),
        max_write_units=_limit(resolver, maximums.get("MaxWriteRequestUnits"), where),
    ).warmed(mark, free)


def _only_scaled(found: TemplateTable, scaling: dict[Key, TemplateScaling], marks: _Marks) -> TableSetup:
    """Return the setup of a table that no template defines; its capacity starts at the floors."""
    resources = []
    notes = [
        f"{found.name} is {found.stack.resolver.word('not defined in this template')}: capacity without a scalable "
        "target is taken to be 1 unit"
    ]
    for index in dict.fromkeys((None, *(key[1] for key in scaling))):
        read, write = (
            TargetSetup.of_scaling(1, scaling.get((found.table, index, dimension))) for dimension in Dimension
        )
        free = Units(read.min, write.min)
        resource = ResourceSetup(index=index, read=read, write=write)
        resources.append(resource.warmed(marks.get(index, _NO_MARK), free))
    for target in scaling.values():
        notes.extend(target.notes)
    region = found.stack.template.environment.region
    return TableSetup(name=found.name, resources=tuple(resources), region=region, notes=tuple(notes))
