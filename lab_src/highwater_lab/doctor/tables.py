"""Checks of the tables of an app, and of those that a scaler manages: owners, costs, leftovers, drift, alarms."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import groupby
from typing import Final

from botocore.exceptions import BotoCoreError, ClientError

from highwater.core import Dimension, Plan
from highwater.core.names import ALARM_PREFIX, TargetName
from highwater.core.plan.plan import marks_of
from highwater.core.scaler import Mode
from highwater.core.scaler.plan import MANAGED_TAG, ScaledPlan
from highwater_lab.audit.deviations import (
    DeclaredTarget,
    Deviation,
    DeviationKind,
    aws_command,
    drift_of,
    left_alarms,
    left_plans,
    left_queues,
    left_targets,
    target_command,
)
from highwater_lab.doctor.place import CheckedPlace
from highwater_lab.doctor.result import Result, State, unread
from highwater_lab.doctor.stacks import find_owner
from highwater_lab.rehearse import Conditions, rehearse_app
from highwater_lab.template import ListedTable
from highwater_lab.traffic import Stream, Traffic

_IDLE_DAYS: Final = 7
# So many tables are rehearsed in this process: others take a second to start
_FEW_TABLES: Final = 8
_MOST_LISTED: Final = 4


def owners(place: CheckedPlace) -> Iterator[Result]:
    """Whether something else scales the app's tables: AWS has one scalable target for each dimension."""
    name, found = "owners", 0
    tables = () if place.app is None else place.app.listed.tables
    for table in tables:
        physical = place.physical(table)
        # CloudFormation itself makes the targets of a global table, in no stack's list
        if physical is None or table.is_global:
            continue
        declared = table.deployed.owners
        for target in sorted((each for each in place.scaling if each.table == physical), key=str):
            if _target_id(target) in place.stacks.targets:
                continue
            found += 1
            stack, owner, fix = _owner(place, target)
            is_declared = (target.index, target.dimension) in declared
            consequence = (
                "the app declares it too, so its deploy fails" if is_declared else "the app does not declare it"
            )
            yield Result(
                check=name,
                state=State.FAILURE if is_declared else State.WARNING,
                text=f"target {target} of table {table.name} is registered and not the app's: {owner}; {consequence}",
                fix=fix,
                details={"target": str(target), "stack": stack},
            )
    for result in _tagged(place):
        found += 1
        yield result
    planned = [each for each in place.plans.plans if not each.is_released]
    plans = sorted((*planned, *place.tagged.plans), key=lambda each: each.label)
    for label, same in groupby(plans, key=lambda each: each.label):
        scalers = [each.scaler or f"that of tables with the tag {MANAGED_TAG}" for each in same]
        if len(scalers) > 1:
            found += 1
            yield Result(
                check=name,
                state=State.FAILURE,
                text=f"table {label} has {len(scalers)} scalers, {', '.join(scalers)}; each undoes the other's floors",
                fix="remove it from all but one, and deploy their stacks",
                details={"table": label, "scalers": scalers},
            )
    if not found:
        others = f"nothing else scales {_tables(len(tables))} of the app, and " if tables else ""
        yield Result(check=name, state=State.OK, text=f"{others}no table has two scalers")


def _owner(place: CheckedPlace, target: TargetName) -> tuple[str | None, str, str]:
    """Return the stack that has a scalable target, whose it is in words, and how to end that."""
    stack = find_owner(place.client("cloudformation"), _target_id(target))
    owner = f"stack {stack} has it" if stack else "no stack has it: it is somebody's by hand, or Terraform's"
    leave = f"remove it from stack {stack} and deploy that" if stack else "take it out of what made it"
    return stack, owner, f"{leave}, or {target_command('deregister-scalable-target', target, place.region)}"


def _tagged(place: CheckedPlace) -> Iterator[Result]:
    """Yield what contradicts the tags of tables: targets in DIRECT mode, none in FLOOR mode, tags that are wrong."""
    name = "owners"
    for unreadable in place.tagged.unreadable:
        fix = "correct its tags; docs/scaler.md has them"
        yield Result(check=name, state=State.WARNING, text=f"no scaler manages {unreadable}", fix=fix)
    for plan in sorted(place.tagged.plans, key=lambda each: each.table):
        because = f"and the table has the tag {MANAGED_TAG} = {plan.mode}, so"
        registered = sorted((each for each in place.scaling if each.table == plan.table), key=str)
        own = {TargetName(plan.table, None, dimension) for dimension in Dimension}
        for target in registered if plan.mode is Mode.DIRECT else ():
            stack, owner, fix = _owner(place, target)
            yield Result(
                check=name,
                state=State.FAILURE,
                text=f"target {target} is registered, {because} no scaler changes it: {owner}",
                fix=f"{fix}; or set the tag to {Mode.FLOOR}",
                details={"target": str(target), "stack": stack},
            )
        for target in sorted(own.difference(registered), key=str) if plan.mode is Mode.FLOOR else ():
            yield Result(
                check=name,
                state=State.FAILURE,
                text=f"target {target} is not registered, {because} nothing scales it",
                fix=f"give it target tracking where the table is made, or set the tag to {Mode.DIRECT}",
                details={"target": str(target)},
            )


def _target_id(target: TargetName) -> str:
    """Return the physical id of a target in stacks.

    CloudFormation Template Reference, ScalableTarget, "Return values", read 2026-11; seen in an account by others
    (go-to-k/cdk-real-drift, issue 1562, 2026-07).
    """
    return f"{target.resource_id}|{target.scalable_dimension}|dynamodb"


def cost(place: CheckedPlace) -> Iterator[Result]:
    """What the app costs in a month in which nothing is requested: floors, windows, alarms, scalers."""
    name = "cost"
    if place.app is None:
        return
    end_of_idle = _IDLE_DAYS * 24 * 60

    def idle(table: ListedTable) -> Traffic | None:
        if table.setup is None:
            return None
        streams = {Stream(each.index, dimension) for each in table.setup.resources for dimension in Dimension}
        start = place.now.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
        counts = {stream: [0.0] * end_of_idle for stream in streams}
        return Traffic.from_counts("nothing", counts, bin_seconds=60, start=start)

    processes = 1 if len(place.app.listed.tables) <= _FEW_TABLES else None
    conditions = Conditions(region=place.region, prices_file=place.prices_file)
    rehearsal = rehearse_app(place.app.listed, idle, conditions=conditions, processes=processes)
    parts = {table.name: table.after.cost_per_month for table in rehearsal.tables if table.after is not None}
    parts["alarms and scalers"] = sum(each.after * each.usd for each in rehearsal.fixed)
    largest = sorted(((usd, what) for what, usd in parts.items() if usd >= 0.005), key=lambda each: (-each[0], each[1]))
    listed = [f"{what} {usd:,.2f}" for usd, what in largest[:_MOST_LISTED]]
    if len(largest) > _MOST_LISTED:
        listed.append(f"{len(largest) - _MOST_LISTED} more {sum(usd for usd, _ in largest[_MOST_LISTED:]):,.2f}")
    once = f", and {rehearsal.after.warm_up:,.2f} USD once for high-water marks" if rehearsal.after.warm_up else ""
    total = rehearsal.after.cost_per_month
    prices = f"prices of {place.region}, {place.prices.dated}"
    yield Result(
        check=name,
        state=State.OK,
        text=f"{total:,.2f} USD in a month without a single request ({', '.join(listed) or 'nothing'}){once}; {prices}",
        details={
            "usd_month": round(total, 2),
            "usd_once": round(rehearsal.after.warm_up, 2),
            "usd_month_of": {what: round(usd, 2) for what, usd in parts.items()},
        },
    )
    for table in rehearsal.unknown():
        text = f"what table {table.name} costs is not known: {table.unknown}"
        yield Result(check=name, state=State.WARNING, text=text, fix=f"highwater rehearse {place.app.folder}")


def leftovers(place: CheckedPlace) -> Iterator[Result]:
    """What tables that are gone have left: scalable targets, alarms, plans, queues."""
    name, found = "leftovers", 0
    # several parts may fail for the same permission
    failed: dict[str, Result] = {}

    def targets() -> Iterable[Deviation]:
        tables = place.tables_of((each.table, each.index) for each in place.scaling)
        return left_targets(place.scaling, tables, place.prices)

    def alarms() -> Iterable[Deviation]:
        seen = list(place.alarms())
        tables = place.tables_of((each.table, each.index) for each in seen)
        return left_alarms(seen, place.scaling, tables, place.prices)

    def plans() -> Iterable[Deviation]:
        tables = place.tables_of((each.table, None) for each in place.plans.plans)
        return left_plans(place.plans.plans, tables, place.region)

    def queues() -> Iterable[Deviation]:
        seen = list(place.queues())
        return left_queues(seen, place.tables_of((each.table, None) for each in seen), place.region)

    for part in (targets, alarms, plans, queues):
        try:
            left = list(part())
        except (ClientError, BotoCoreError) as error:
            result = unread(name, error)
            failed[result.text] = result
            continue
        found += len(left)
        yield from (_told(name, each) for each in left)
    yield from failed.values()
    if not found and not failed:
        text = "no target, alarm, plan or queue is of a table that is gone"
        yield Result(check=name, state=State.OK, text=text)


def drift(place: CheckedPlace) -> Iterator[Result]:
    """Whether live bounds, scaling and marks are those of the deployed plans and templates."""
    name, found = "drift", 0
    declared = _declared(place)
    for unreadable in place.plans.unreadable:
        fix = "deploy the scaler's stack again"
        yield Result(check=name, state=State.WARNING, text=f"a plan cannot be read: {unreadable}", fix=fix)
    targets = 0
    for table, each in sorted(declared.items()):
        described = place.described(table)
        if described is None:
            # one of the leftovers
            continue
        class_ = described.get("TableClassSummary", {}).get("TableClass")
        prices = place.prices.throughput(is_infrequent_access=class_ == "STANDARD_INFREQUENT_ACCESS")
        for target in each:
            live = place.live(target.name)
            if live is None:
                found += 1
                gone = Deviation(
                    kind=DeviationKind.DRIFT,
                    subject=f"target {target.name}",
                    problem="is declared, and the index is gone",
                    command="deploy the table's stack again",
                )
                yield _told(name, gone)
                continue
            targets += 1
            differences = list(drift_of(target, live, prices, place.region))
            found += len(differences)
            yield from (_told(name, difference) for difference in differences)
    if not found:
        said = f"{targets} targets of {_tables(len(declared))} are as declared" if targets else "nothing is deployed"
        yield Result(check=name, state=State.OK, text=said)


def alarms(place: CheckedPlace) -> Iterator[Result]:
    """Whether the actions of the app's alarms, and of those that wake a scaler, are on."""
    name, count = "alarms", 0
    off: dict[State, list[str]] = defaultdict(list)
    for alarm in place.own_alarms():
        count += 1
        if not alarm["ActionsEnabled"]:
            wakes = alarm["AlarmName"].startswith(ALARM_PREFIX)
            off[State.FAILURE if wakes else State.WARNING].append(alarm["AlarmName"])
    for state, names in off.items():
        whom = "the scaler is not woken" if state is State.FAILURE else "nobody is told"
        listed = ", ".join(repr(each) for each in names[:_MOST_LISTED])
        more = f" and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else ""
        yield Result(
            check=name,
            state=state,
            text=f"{whom} by alarms whose actions are off: {listed}{more}",
            fix=aws_command("cloudwatch enable-alarm-actions", place.region, "--alarm-names", *names),
            details={"alarms": names},
        )
    if not off:
        text = (
            f"the actions of all {count:,} alarms of the app and its scalers are on" if count else "there is no alarm"
        )
        yield Result(check=name, state=State.OK, text=text)


def _told(name: str, deviation: Deviation) -> Result:
    return Result(
        check=name,
        state=State.FAILURE if deviation.can_throttle else State.WARNING,
        text=deviation.text,
        fix=deviation.command,
        deviation=deviation,
    )


def _declared(place: CheckedPlace) -> dict[str, list[DeclaredTarget]]:
    """Return what is declared of each table by name: by its scaler's plan, by its own plan, or by its template."""
    scaled = {
        plan.table: plan
        for plan in place.plans.plans
        if plan.region in (None, place.region) and not plan.is_released and not plan.is_tagged
    }
    tagged = {plan.table: plan for plan in place.tagged.plans}
    found: dict[str, list[DeclaredTarget]] = defaultdict(list)
    app = place.stacks.app()
    for table in () if app is None else app.tables:
        physical = place.physical(table)
        if physical is None or table.setup is None or table.setup.is_on_demand:
            continue
        plan = scaled.pop(physical, None)
        own = _planned(place, physical, plan.plan if plan else table.plan, plan)
        tags = tagged.get(physical)
        by_tags = (
            {}
            if tags is None
            else _planned(place, physical, tags.with_indexes(filter(None, table.setup.indexes)).plan, tags)
        )
        for resource in table.setup.resources:
            for dimension in Dimension:
                name = TargetName(physical, resource.index, dimension)
                is_read = dimension is Dimension.READ
                mark = resource.warm_read_units if is_read else resource.warm_write_units
                setup = DeclaredTarget.of_setup(name, resource.target(dimension), mark)
                if name in by_tags:
                    # the table's own stack has target and policy, and the scaler moves the bounds
                    setup = replace(setup, floors=by_tags[name].floors, ceilings=by_tags[name].ceilings)
                by_plan = own.get(name)
                found[physical].append(setup if by_plan is None else by_plan.with_actions(setup.actions))
    for physical, plan in scaled.items():
        found[physical] = list(_planned(place, physical, plan.plan, plan).values())
    return found


def _planned(
    place: CheckedPlace, table: str, plan: Plan | None, scaled: ScaledPlan | None
) -> dict[TargetName, DeclaredTarget]:
    if plan is None or any(target.capacity.is_deploy_time for target in plan.targets()):
        return {}
    marks = {each.index: each for each in marks_of(plan.without_past(place.now))}
    found = {}
    for target in plan.targets():
        name, mark = TargetName(table, *target.key), marks.get(target.index)
        units = 0 if mark is None else mark.read if target.dimension is Dimension.READ else mark.write
        found[name] = DeclaredTarget.of_plan(name, target, scaled, units, place.now)
    return found


def _tables(count: int) -> str:
    return f"{count:,} table{'' if count == 1 else 's'}"
