"""The managed table as known at synth, with one interface for all kinds of table constructs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import aws_cdk as cdk
import jsii
from aws_cdk import aws_dynamodb as dynamodb
from constructs import IConstruct

from cdk_highwater.support.iam import table_arn

TableLike = dynamodb.ITable | dynamodb.ITableV2 | dynamodb.CfnTable
_ON_DEMAND = "PAY_PER_REQUEST"


@dataclass(frozen=True, slots=True)
class Subject:
    """A table as the other constructs need it.

    Attributes:
        construct: The table's construct, which receives the annotations with findings.
        stack: The stack of the construct.
        name: The table's name, often a token.
        arn: The table's ARN, often a token.
        template: The table's resource in this app's template, `None` for an imported table.
        is_global: Whether the table is an `AWS::DynamoDB::GlobalTable`, whose scalable targets CloudFormation creates.
    """

    construct: IConstruct
    stack: cdk.Stack
    name: str
    arn: str
    template: dynamodb.CfnTable | dynamodb.CfnGlobalTable | None
    is_global: bool

    @property
    def is_on_demand(self) -> bool:
        """Whether the template's billing mode is PAY_PER_REQUEST; an imported table counts as provisioned."""
        return self.template is not None and self.template.billing_mode == _ON_DEMAND

    @property
    def is_infrequent_access(self) -> bool:
        """Whether the table's class in the template is Standard-IA."""
        return getattr(self.template, "table_class", None) == "STANDARD_INFREQUENT_ACCESS"

    @property
    def has_vector_indexes(self) -> bool:
        """Whether the table in the template has vector indexes."""
        # a CfnTable of aws-cdk-lib before vector indexes, August 2026, has no such property
        return getattr(self.template, "vector_indexes", None) is not None

    @property
    def literal_name(self) -> str | None:
        """The table's name, if the template or the import has it as text; `None` if CloudFormation generates it."""
        name = self.name if self.template is None else self.template.table_name
        return None if name is None or cdk.Token.is_unresolved(name) else name

    def template_in(self, stack: cdk.Stack) -> cdk.CfnResource | None:
        """Return the table's resource if it is in the template of *stack*."""
        return self.template if self.stack == stack else None

    def index_names(self) -> tuple[str, ...]:
        """Return the names of the global secondary indexes in the template at this moment, in the template's order."""
        return tuple(str(_member(index, "indexName")) for index in self._indexes())

    def key_names(self) -> tuple[str, ...]:
        """Return the attributes of the table's key, the partition key first; none of an imported table."""
        if self.template is None:
            return ()
        members = self.stack.resolve(self.template.key_schema)
        # HASH is before RANGE
        return tuple(
            str(_member(each, "attributeName")) for each in sorted(members, key=lambda m: _member(m, "keyType"))
        )

    def template_capacities(self) -> dict[str | None, tuple[int, int]]:
        """Return read and write units of the table (`None`) and indexes in the template, where these are numbers."""
        if self.template is None or self.is_global:
            return {}
        resolve = self.stack.resolve
        throughputs = {None: resolve(getattr(self.template, "provisioned_throughput", None))}
        for index in self._indexes():
            throughputs[_member(index, "indexName")] = _member(index, "provisionedThroughput")
        capacities: dict[str | None, tuple[int, int]] = {}
        for name, throughput in throughputs.items():
            read, write = (_member(throughput or {}, f"{kind}CapacityUnits") for kind in ("read", "write"))
            if isinstance(read, int | float) and isinstance(write, int | float):
                capacities[name] = (int(read), int(write))
        return capacities

    def template_units(self, index_names: Collection[str]) -> list[list[Any]]:
        """Return billing mode and units of the table in the template, then name and units of the indexes so named.

        Numbers that only CloudFormation knows are references of the template. What property overrides set is not seen.
        """
        if self.template is None:
            return []
        resolve = self.stack.resolve
        mode = resolve(self.template.billing_mode) or "PROVISIONED"
        units = [(mode, resolve(getattr(self.template, "provisioned_throughput", None)))]
        indexes = ((_member(index, "indexName"), _member(index, "provisionedThroughput")) for index in self._indexes())
        units += [(name, throughput) for name, throughput in indexes if name in index_names]
        return [
            [name, *(_member(throughput or {}, f"{kind}CapacityUnits") or 0 for kind in ("read", "write"))]
            for name, throughput in units
        ]

    def replica_count(self) -> int:
        """Return the number of replicas of a global table, including the one in the stack's region; 0 for others."""
        return len(self._replicas())

    def charged_regions(self) -> tuple[str | None, ...]:
        """Return the regions in which a mark is charged, the table's own first; `None` for one known at deploy time."""
        regions = [_member(replica, "region") for replica in self._replicas()] or [self.region]
        # a sort keeps the order of the others
        regions.sort(key=lambda region: region != self.region)
        is_known = [isinstance(region, str) and not cdk.Token.is_unresolved(region) for region in regions]
        return tuple(region if known else None for region, known in zip(regions, is_known, strict=True))

    @property
    def region(self) -> str:
        """The table's region; for an imported table, the region in its ARN."""
        return self._part_of_arn(3) or cdk.Stack.of(self.construct).region

    @property
    def account(self) -> str:
        """The table's account; for an imported table, the account in its ARN."""
        return self._part_of_arn(4) or cdk.Stack.of(self.construct).account

    def _part_of_arn(self, position: int) -> str | None:
        """Return a part of an imported table's ARN, `None` if it is known only at deploy time."""
        if self.template is not None:
            return None
        # tokens in a text contain no colon
        parts = self.arn.split(":")
        is_known = len(parts) > position and not cdk.Token.is_unresolved(parts[position])
        return parts[position] if is_known else None

    def seen_from(self, stack: cdk.Stack) -> Subject:
        """Return the subject for resources in *stack*.

        A table of another stack is referred to by its name, if that is in the template: a reference would create an
        export in the table's stack. *stack* is still deployed after the table's stack.
        """
        name = self.literal_name
        if stack == self.stack or self.template is None or name is None:
            return self
        stack.add_stack_dependency(self.stack, "its table must exist before its capacity is managed")
        return replace(self, name=name, arn=table_arn(self.stack, name))

    def replica_regions(self) -> tuple[str, ...]:
        """Return the regions of a global table's replicas, without the stack's region."""
        regions = (_member(replica, "region") for replica in self._replicas())
        return tuple(region for region in regions if isinstance(region, str) and region != self.stack.region)

    @property
    def is_multi_account(self) -> bool:
        """Whether the table belongs to a global table of several accounts, as its source or as a replica."""
        if not isinstance(self.template, dynamodb.CfnGlobalTable):
            return False
        modes = [_member(replica, "globalTableSettingsReplicationMode") for replica in self._replicas()]
        return self.template.global_table_source_arn is not None or any(mode is not None for mode in modes)

    def tags_by_region(self) -> dict[str, dict[str, str]]:
        """Return the tags in the template at this moment, of a global table for each replica; no tags of an import."""
        if isinstance(self.template, dynamodb.CfnTable):
            return {self.region: dict(self.template.tags.tag_values())}
        return {
            _member(replica, "region") if isinstance(_member(replica, "region"), str) else self.region: {
                _member(tag, "key"): _member(tag, "value") for tag in _member(replica, "tags") or []
            }
            for replica in self._replicas()
        }

    def arn_in(self, region: str | None) -> str:
        """Return the ARN of the replica in *region*, `None` for the table itself."""
        if region is None:
            return self.arn
        return table_arn(self.stack, self.name, region)

    def _replicas(self) -> list[Any]:
        """Return the replicas of a global table in the template, as maps or structs."""
        if not isinstance(self.template, dynamodb.CfnGlobalTable):
            return []
        replicas = self.template.replicas
        # structs are left as they are, as one with a policy that is made late cannot be resolved from Python
        return replicas if isinstance(replicas, list) else self.stack.resolve(replicas) or []

    def _indexes(self) -> list[Any]:
        if self.template is None:
            return []
        return self.stack.resolve(self.template.global_secondary_indexes) or []


def subject_of(table: object) -> Subject:
    """Return the subject for *table*; raises `TypeError` if *table* is not a table."""
    if isinstance(table, dynamodb.CfnTable):
        return Subject(table, cdk.Stack.of(table), table.ref, table.attr_arn, table, is_global=False)
    if isinstance(table, dynamodb.TableV2 | dynamodb.TableV2MultiAccountReplica | dynamodb.Table):
        template = table.node.default_child
        assert isinstance(template, dynamodb.CfnTable | dynamodb.CfnGlobalTable)  # noqa: S101 - their default child
        is_global = isinstance(template, dynamodb.CfnGlobalTable)
        return Subject(table, cdk.Stack.of(table), table.table_name, table.table_arn, template, is_global=is_global)
    # jsii represents imported tables by proxies without a class to test for
    name, arn = getattr(table, "table_name", None), getattr(table, "table_arn", None)
    if isinstance(name, str) and isinstance(arn, str) and hasattr(table, "node"):
        construct: Any = table
        return Subject(construct, cdk.Stack.of(construct), name, arn, None, is_global=False)
    raise TypeError(_no_table(table))


def refuse_other_than_tables(table: object) -> None:
    """Raise `TypeError` if *table* is not a CDK object, before its attributes are used."""
    if not hasattr(type(table), "__jsii_type__"):
        raise TypeError(_no_table(table))


def _no_table(table: object) -> str:
    return f"table must be a dynamodb.Table, TableV2, CfnTable or an imported table, got {type(table).__name__}"


def _member(value: Any, name: str) -> Any:
    """Return a property of an L1 construct, which may be a map or a struct, by its camelCase name."""
    if isinstance(value, Mapping):
        return value.get(name, value.get(name[0].upper() + name[1:]))
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
    return getattr(value, snake, None)


def at_end(find: Callable[[], Any]) -> cdk.IResolvable:
    """Return a value of the template: what *find* returns when the CDK writes it, after all has been declared."""
    return cdk.Lazy.uncached_any(_AtEnd(find))


@jsii.implements(cdk.IAnyProducer)
class _AtEnd:
    def __init__(self, find: Callable[[], Any]) -> None:
        self._find = find

    def produce(self, _context: cdk.IResolveContext) -> Any:
        return self._find()
