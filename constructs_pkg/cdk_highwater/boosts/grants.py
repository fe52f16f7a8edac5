"""Grants of boosts and pulses: a parameter for each grant, which the coordinator reads, and the IAM permissions."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from itertools import chain, count
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_ssm as ssm
from constructs import Construct, IConstruct

from cdk_highwater.scaler.scaler_function import OLDEST_EVENT, ScalerFunction
from cdk_highwater.support.arguments import items_of, require
from cdk_highwater.support.iam import parameter_arn
from cdk_highwater.support.nag import PULSE_EVENT_RULES, acknowledge, annotate_at_end
from cdk_highwater.table.capacity import TableCapacity
from cdk_highwater.table.manage import capacity_of
from cdk_highwater.table.ownership import Granted
from cdk_highwater.table.subject import Subject, refuse_other_than_tables, subject_of
from highwater.core.findings import is_whole
from highwater.core.names import (
    MOST_BUDGET_CHARACTERS,
    PARTITION_KEY,
    SORT_KEY,
    TTL_ATTRIBUTE,
    boost_caps_path,
    budget_partition,
    coordinator_parameter,
    job_partition,
    pulses_parameter,
)
from highwater.core.plan.capacity import is_deploy_time
from highwater.core.pulses import (
    LONG_NAME_DETAIL_TYPE,
    PULSE_SOURCE,
    pulse_detail_type,
    pulse_partition_patterns,
    told_attributes,
)

BOOST_DETAIL_TYPE = "Highwater Boost"
URL_VARIABLE = "HIGHWATER_BOOST_URL"
PULSES_VARIABLE = "HIGHWATER_PULSES"
_PULSE_EVENTS = "PulseEvents"
_SOURCE = re.compile(r"(?!aws\.)[A-Za-z0-9._-]{3,100}")


class Grants:
    """The grants of one coordinator; the methods of `BoostCoordinator` have their arguments and errors.

    Args:
        scope: The coordinator.
        name: Its name.
        url: Its URL.
        manager: The construct to which its tables are added: its scaler, or the coordinator itself.
        table: Its table of leases and pulses.
        function: Its function.
    """

    def __init__(
        self,
        scope: Construct,
        name: str,
        url: lambda_.FunctionUrl,
        manager: Construct,
        table: dynamodb.Table,
        function: ScalerFunction,
    ) -> None:
        self._scope = scope
        self._stack = cdk.Stack.of(scope)
        self._name = name
        self._url = url
        self._manager = manager
        self._table = table
        self._function = function
        self._ids: set[str] = set()

    def add(
        self, grantee: iam.IGrantable, *, max_write: int, max_read: int, tables: Iterable[object] | None
    ) -> iam.Grant:
        """Let a role or user boost."""
        require_units(max_write=max_write, max_read=max_read)
        return self._add_caller("grant_boost", grantee, max_write=max_write, max_read=max_read, tables=tables)

    def _add_caller(
        self,
        call: str,
        grantee: iam.IGrantable,
        *,
        max_write: int = 0,
        max_read: int = 0,
        tables: Iterable[object] | None,
    ) -> iam.Grant:
        """Let a role or user send requests about *tables*, and boost up to these units, 0 for no boosts."""
        arn = _arn_of(grantee)
        # in the grantee's stack, so that the coordinator's stack does not depend on all stacks with jobs
        place = grantee if isinstance(grantee, Construct) else self._scope
        self._store(place, call, _id_of(place, arn), arn, max_write, max_read, tables)
        granted = self._url.grant_invoke_url(grantee)
        _allow_parameter(grantee, self._stack, coordinator_parameter(self._name))
        if isinstance(grantee, lambda_.Function):
            grantee.add_environment(URL_VARIABLE, self._url.url)
        return granted

    def add_events(
        self,
        source: str,
        *,
        max_write: int,
        max_read: int,
        tables: Iterable[object] | None,
        grantee: iam.IGrantable | None,
    ) -> None:
        """Let events of a source boost."""
        require_units(max_write=max_write, max_read=max_read)
        require("source", source, str, "a text", "give the events' source, such as 'acme.loader'")
        if grantee is not None:
            require_grantee(grantee)
        if not _SOURCE.fullmatch(source):
            message = (
                f"source is {source!r}; allowed: 3 to 100 letters, digits, dots and dashes, such as acme.loader, that "
                "do not begin with aws."
            )
            raise ValueError(message)
        of, caller = f"events-{source}", f"events/{source}"
        self._store(self._scope, "grant_boost_events", of, caller, max_write, max_read, tables)
        # one rule serves all grants of a source, each of which has its own limits and tables
        if self._scope.node.try_find_child(f"Events-{source}") is None:
            events.Rule(
                self._scope,
                f"Events-{source}",
                description=f"Highwater: events of {source} that ask for boosts",
                event_pattern=events.EventPattern(source=[source], detail_type=[BOOST_DETAIL_TYPE]),
                targets=[
                    targets.LambdaFunction(
                        self._function.function,
                        retry_attempts=10,
                        max_event_age=OLDEST_EVENT,
                        dead_letter_queue=self._function.dead_letters,
                    )
                ],
            )
        if grantee is not None:
            _allow_events(grantee, self._stack, source, BOOST_DETAIL_TYPE)

    def add_pulses(self, grantee: iam.IGrantable, tables: Iterable[object]) -> None:
        """Let a role or user pulse."""
        listed = tables_of(tables)
        if not listed:
            message = "tables is empty; give the tables that the grantee may tell of"
            raise ValueError(message)
        self._add_caller("grant_pulse", grantee, tables=listed)
        names = [name_of_table(table, self._stack) for table in listed]
        keys = [pattern for name in names for pattern in pulse_partition_patterns(name)]
        attributes = [PARTITION_KEY, SORT_KEY, TTL_ATTRIBUTE, *told_attributes()]
        # all keys and attributes that a request names, and at least one (IAM User Guide, "Multivalued context keys")
        conditions = {
            "ForAllValues:StringLike": {"dynamodb:LeadingKeys": keys, "dynamodb:Attributes": attributes},
            "Null": {"dynamodb:LeadingKeys": "false", "dynamodb:Attributes": "false"},
        }
        allow(grantee, ["dynamodb:UpdateItem"], [self._table.table_arn], conditions)
        self._let_find(grantee)
        if self._scope.node.try_find_child(_PULSE_EVENTS) is None:
            self._add_rule()
        types = [type for name in names for type in _pulse_detail_types(name)]
        _allow_events(grantee, self._stack, PULSE_SOURCE, list(dict.fromkeys(types)))

    def add_budgets(self, grantee: iam.IGrantable, budgets: tuple[str, ...]) -> None:
        """Let a role or user share budgets."""
        self._let_share(grantee, "budgets", budgets, budget_partition, ["dynamodb:GetItem", "dynamodb:UpdateItem"])

    def add_jobs(self, grantee: iam.IGrantable, jobs: tuple[str, ...]) -> None:
        """Let a role or user work on jobs."""
        actions = ["dynamodb:GetItem", "dynamodb:Query", "dynamodb:UpdateItem"]
        self._let_share(grantee, "jobs", jobs, job_partition, actions)
        self.add_budgets(grantee, jobs)

    def _let_share(
        self,
        grantee: iam.IGrantable,
        what: str,
        names: tuple[str, ...],
        partition: Callable[[str], str],
        actions: list[str],
    ) -> None:
        require_grantee(grantee)
        if not names:
            message = f"{what}: got none, allowed: names of {what}; give the names that its workers share"
            raise ValueError(message)
        for name in names:
            require(what, name, str, f"names of {what}", "give the names in quotes")
            if not 1 <= len(name) <= MOST_BUDGET_CHARACTERS:
                message = f"{what}: got {name[:120]!r}, allowed: names of 1 to {MOST_BUDGET_CHARACTERS} characters"
                raise ValueError(message)
        compare = "StringLike" if any(name.endswith("*") for name in names) else "StringEquals"
        conditions = {
            f"ForAllValues:{compare}": {"dynamodb:LeadingKeys": [partition(name) for name in names]},
            "Null": {"dynamodb:LeadingKeys": "false"},
        }
        allow(grantee, actions, [self._table.table_arn], conditions)
        self._let_find(grantee)

    def _let_find(self, grantee: iam.IGrantable) -> None:
        """Let a role or user find the coordinator's table."""
        _allow_parameter(grantee, self._stack, pulses_parameter(self._name))
        if isinstance(grantee, lambda_.Function):
            grantee.add_environment(PULSES_VARIABLE, self._table.table_name)

    def _add_rule(self) -> None:
        """Add the rule for events of fleets whose network has no way to the URL."""
        rule = events.Rule(
            self._scope,
            _PULSE_EVENTS,
            description="Highwater: events of fleets that need capacity",
            event_pattern=events.EventPattern(source=[PULSE_SOURCE], detail={"pulses": [self._table.table_name]}),
            targets=[
                # a fleet that still needs help asks again, so a late event is worth nothing
                targets.LambdaFunction(self._function.function, retry_attempts=2, max_event_age=cdk.Duration.minutes(1))
            ],
        )
        acknowledge(rule, PULSE_EVENT_RULES)

    def _store(
        self,
        place: IConstruct,
        call: str,
        of: str,
        caller: str,
        max_write: int,
        max_read: int,
        tables: Iterable[object] | None,
    ) -> None:
        """Create the parameter of a grant in the stack of *place*, where a table that is not managed is reported."""
        stack = cdk.Stack.of(place)
        names = None
        if tables is not None:
            listed = tables_of(tables)
            names = [name_of_table(table, stack) for table in listed]
            known = tuple(each if isinstance(each, str) else subject_of_table(each) for each in listed)
            granted = Granted(
                coordinator=self._scope, manager=self._manager, call=call, tables=known, max_write=max_write
            )
            annotate_at_end(self._scope, place, granted.findings)
        # the name of a grant does not depend on other callers' grants; one caller may have several
        id = next(id for id in chain([of], (f"{of}-{number}" for number in count(2))) if id not in self._ids)
        self._ids.add(id)
        document = {"caller": caller, "max_write": max_write, "max_read": max_read, "tables": names}
        ssm.CfnParameter(
            stack,
            f"HighwaterBoostGrant-{self._name}-{id}",
            name=f"{boost_caps_path(self._name)}{id}",
            type="String",
            tier="Intelligent-Tiering",
            description="Highwater: who may boost what",
            value=stack.to_json_string(document),
        )


def require_units(**units: object) -> None:
    """Raise `ValueError` if one of these arguments is not a whole number of 0 or more, or all of them are 0."""
    are_whole = all(isinstance(value, int) and is_whole(value) and value >= 0 for value in units.values())
    if not are_whole or not any(units.values()):
        given = " and ".join(f"{name} is {_units_text(value)}" for name, value in units.items())
        message = f"{given}; allowed: whole numbers, 0 or more, and one above 0"
        raise ValueError(message)


def _units_text(units: object) -> str:
    if is_deploy_time(units):
        return "known only at deploy time"
    return f"{units:,}" if is_whole(units) else repr(units)


def tables_of(tables: object) -> tuple[object, ...]:
    """Return the argument *tables*; raises `TypeError` if it is not a list, such as the name of one table."""
    return items_of("tables", tables, "tables", "give the tables in brackets")


def _id_of(place: Construct, arn: str) -> str:
    """Return an id that depends on the caller only."""
    known = place.node.path if cdk.Token.is_unresolved(arn) else arn
    return hashlib.sha256(known.encode()).hexdigest()[:16]


def _arn_of(grantee: iam.IGrantable) -> str:
    """Return the ARN of a role or user, by which the coordinator identifies the caller."""
    require_grantee(grantee)
    found = grantee.grant_principal.policy_fragment.principal_json.get("AWS", [])
    arns = found if isinstance(found, list) else [found]
    if len(arns) != 1:
        message = f"grantee must be a role or a user, or have a role, got {type(grantee).__name__}"
        raise TypeError(message)
    return str(arns[0])


def require_grantee(grantee: object) -> None:
    """Raise `TypeError` if *grantee* is neither a role nor a user, and has neither."""
    fix = "give its construct; that of an existing role is iam.Role.from_role_name(...)"
    require("grantee", grantee, "grant_principal", "a role or a user, or have a role", fix)


def name_of_table(table: object, stack: cdk.Stack) -> str:
    """Return the table's name as jobs use it, in a form that *stack* may refer to."""
    return table if isinstance(table, str) else subject_of_table(table).seen_from(stack).name


def subject_of_table(table: object) -> Subject:
    """Return the subject of a table's construct, or of its managed capacity; raises `TypeError` for anything else."""
    if isinstance(table, TableCapacity) or isinstance(getattr(table, "capacity", None), TableCapacity):
        return capacity_of(table).subject
    refuse_other_than_tables(table)
    return subject_of(table)


def grant_table(function: lambda_.IFunction, subject: Subject, actions: list[str], *more: str) -> None:
    """Let *function* do *actions* on a table, on the ARNs *more*, and use the table's own key."""
    allow(function, actions, [subject.arn, *more])
    encryption_key = getattr(subject.construct, "encryption_key", None)
    if encryption_key is not None:
        encryption_key.grant(function, "kms:Decrypt", "kms:DescribeKey")


def allow(
    grantee: iam.IGrantable, actions: list[str], resources: list[str], conditions: Mapping[str, Any] | None = None
) -> None:
    """Add a statement with these members to the policies of a role or user."""
    statement = iam.PolicyStatement(actions=actions, resources=resources, conditions=conditions)
    grantee.grant_principal.add_to_principal_policy(statement)


def _allow_parameter(grantee: iam.IGrantable, stack: cdk.Stack, parameter: str) -> None:
    """Let a role or user read a parameter by its name, or among those of its path."""
    path = parameter.rpartition("/")[0]
    arns = [parameter_arn(stack, name) for name in (parameter, path)]
    allow(grantee, ["ssm:GetParameter", "ssm:GetParametersByPath"], arns)


def _allow_events(grantee: iam.IGrantable, stack: cdk.Stack, source: str, detail_type: str | list[str]) -> None:
    """Let a role or user put events of this source and of these types on the default bus."""
    bus = stack.format_arn(service="events", resource="event-bus", resource_name="default")
    conditions = {"StringEquals": {"events:source": source, "events:detail-type": detail_type}}
    allow(grantee, ["events:PutEvents"], [bus], conditions)


def _pulse_detail_types(name: str) -> list[str]:
    """Return the types that the events of a table may have; how long a generated name is shows when it is deployed."""
    if cdk.Token.is_unresolved(name):
        return [f"{LONG_NAME_DETAIL_TYPE} {name}", LONG_NAME_DETAIL_TYPE]
    return [pulse_detail_type(name)]
