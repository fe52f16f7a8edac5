"""The checks of the doctor: each a function of a place, in one list, in the order in which they are worth reading."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from itertools import groupby
from typing import Final, TypeAlias

from botocore.exceptions import BotoCoreError, ClientError

from highwater.core import Dimension, Plan
from highwater.core.names import TargetName
from highwater.core.plan.plan import marks_of
from highwater.core.scaler.plan import ScaledPlan
from highwater_lab.audit.deviations import (
    DeclaredTarget,
    Deviation,
    drift_of,
    left_alarms,
    left_plans,
    left_schedules,
    left_targets,
    target_command,
)
from highwater_lab.doctor.app import Bootstrap
from highwater_lab.doctor.place import Place
from highwater_lab.doctor.result import Result, State, unread
from highwater_lab.doctor.stacks import find_owner
from highwater_lab.rehearse import Conditions, rehearse_app
from highwater_lab.services.prices import PriceError
from highwater_lab.template import ListedTable
from highwater_lab.traffic import Stream, Traffic

Check: TypeAlias = Callable[[Place], Iterator[Result]]
Said: TypeAlias = Iterator[Result]

_ROLE: Final = "AWSServiceRoleForApplicationAutoScaling_DynamoDBTable"
_ROLE_SERVICE: Final = "dynamodb.application-autoscaling.amazonaws.com"
# The parameter of `cdk bootstrap` with the qualifier that apps have by default (AWS CDK Developer Guide, "Customize AWS
# CDK bootstrapping", read 2026-11)
_USUAL_BOOTSTRAP: Final = Bootstrap("/cdk-bootstrap/hnb659fds/version", 1, ())
# What an account keeps unreserved (AWS Lambda Developer Guide, "Configuring reserved concurrency for a function", read
# 2026-11). Accounts with a quota of 10 are said to keep 10, so that they can reserve nothing either.
_UNRESERVED: Final = 100
_CONCURRENCY_QUOTA: Final = "L-B99A9384"
# What the scaler, boosts and deploys need beside an app's workers
_OWN_RUNS: Final = 5
_IDLE_DAYS: Final = 7
# So many tables are rehearsed in this process: others take a second to start
_FEW_TABLES: Final = 8
_MOST_LISTED: Final = 4


def service_linked_role(place: Place) -> Said:
    """Whether Application Auto Scaling has its role for DynamoDB: without it, the first deploy may fail."""
    name, iam = "service-linked-role", place.client("iam")
    try:
        iam.get_role(RoleName=_ROLE)
    except iam.exceptions.NoSuchEntityException:
        yield Result(
            check=name,
            state=State.FAILURE,
            text=f"there is no role {_ROLE}; the first target makes it, and others may fail until it is in effect",
            fix=f"aws iam create-service-linked-role --aws-service-name {_ROLE_SERVICE}",
        )
    else:
        yield Result(check=name, state=State.OK, text=f"{_ROLE} is there")


def bootstrap(place: Place) -> Said:
    """Whether `cdk bootstrap` was run, with a version that suffices, and its buckets are still there."""
    name, where = "bootstrap", f"aws://{place.account}/{place.region}"
    for needed in (_USUAL_BOOTSTRAP,) if place.app is None else place.app.bootstraps:
        qualifier = needed.parameter.split("/")[2:3]
        more = "" if qualifier in ([], ["hnb659fds"]) else f" --qualifier {qualifier[0]}"
        fix = f"cdk bootstrap {where}{more}"
        text = place.parameter(needed.parameter)
        if text is None:
            missing = f"{where} is not bootstrapped: there is no parameter {needed.parameter}"
            yield Result(check=name, state=State.FAILURE, text=missing, fix=fix)
            continue
        if not text.isdigit() or int(text) < needed.version:
            old = f"{where} is bootstrapped with version {text}, and the app needs {needed.version}"
            yield Result(check=name, state=State.FAILURE, text=old, fix=fix)
            continue
        gone = [bucket for bucket in needed.buckets if not place.has_bucket(bucket)]
        for bucket in gone:
            deleted = f"{where} is bootstrapped, and its bucket {bucket} is gone"
            again = f"delete the stack CDKToolkit of that region, then {fix}"
            yield Result(check=name, state=State.FAILURE, text=deleted, fix=again)
        if not gone:
            yield Result(check=name, state=State.OK, text=f"{where} is bootstrapped, version {text}")


def concurrency(place: Place) -> Said:
    """How many concurrent runs of functions the account has, and whether the app may reserve what it wants to."""
    name, client = "concurrency", place.client("lambda")
    limits = client.get_account_settings()["AccountLimit"]
    quota, unreserved = limits["ConcurrentExecutions"], limits["UnreservedConcurrentExecutions"]
    reservable = max(0, unreserved - _UNRESERVED)
    reservations = () if place.app is None else place.app.reservations
    wanted, workers = sum(each.runs for each in reservations), 0 if place.app is None else place.app.workers
    # what the app's own functions have reserved is given back where a deploy changes it
    own = 0
    if wanted > reservable:
        for each in reservations:
            function = place.stacks.physical(each.stacks, each.logical_id)
            if function is not None:
                own += client.get_function_concurrency(FunctionName=function).get("ReservedConcurrentExecutions", 0)
    raise_quota = (
        f"aws service-quotas request-service-quota-increase --region {place.region} --service-code lambda "
        f"--quota-code {_CONCURRENCY_QUOTA} --desired-value 1000"
    )
    has = f"{quota:,} concurrent runs, {unreserved:,} not reserved, of which {reservable:,} may be"
    details = {"quota": quota, "unreserved": unreserved, "reservable": reservable, "workers": workers}
    if wanted - own > reservable:
        yield Result(
            check=name,
            state=State.FAILURE,
            text=f"the app reserves {wanted:,} concurrent runs, and the account has {has}, so the deploy fails",
            fix=f"lower reserved_concurrency, or {raise_quota}",
            details=details,
        )
    elif workers + _OWN_RUNS > unreserved - wanted + own:
        yield Result(
            check=name,
            state=State.WARNING,
            text=f"the app's jobs and queues may take {workers:,} concurrent runs, and the account has {has}; while "
            "they do, Lambda throttles the scaler, boosts and deploys",
            fix=f"fewer workers, or {raise_quota}",
            details=details,
        )
    else:
        uses = f"; the app reserves {wanted:,}, and its jobs and queues take {workers:,}" if place.app else ""
        yield Result(check=name, state=State.OK, text=f"the account has {has}{uses}", details=details)


def owners(place: Place) -> Said:
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
            id = f"{target.resource_id}|{target.scalable_dimension}|dynamodb"
            if id in place.stacks.targets:
                continue
            found += 1
            stack = find_owner(place.client("cloudformation"), id)
            owner = f"stack {stack} has it" if stack else "no stack has it: it is somebody's by hand, or Terraform's"
            leave = f"remove it from stack {stack} and deploy that" if stack else "take it out of what made it"
            is_declared = (target.index, target.dimension) in declared
            consequence = (
                "the app declares it too, so its deploy fails" if is_declared else "the app does not declare it"
            )
            yield Result(
                check=name,
                state=State.FAILURE if is_declared else State.WARNING,
                text=f"target {target} of table {table.name} is registered and not the app's: {owner}; {consequence}",
                fix=f"{leave}, or {target_command('deregister-scalable-target', target, place.region)}",
                details={"target": str(target), "stack": stack},
            )
    plans = sorted((each for each in place.plans.plans if not each.is_released), key=lambda each: each.label)
    for label, same in groupby(plans, key=lambda each: each.label):
        scalers = [each.scaler for each in same]
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


def cost(place: Place) -> Said:
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


def leftovers(place: Place) -> Said:
    """What tables that are gone have left: scalable targets, alarms, plans, schedules of boosts."""
    name, found = "leftovers", 0
    # several parts may fail for the same permission
    failed: dict[str, Result] = {}

    def targets() -> Iterable[Deviation]:
        indexed = frozenset(each.table for each in place.scaling if each.index is not None)
        return left_targets(place.scaling, place.with_indexes(indexed), place.prices)

    def alarms() -> Iterable[Deviation]:
        seen = list(place.alarms())
        indexed = frozenset(each.table for each in seen if each.index is not None)
        return left_alarms(seen, place.scaling, place.with_indexes(indexed), place.prices)

    def plans() -> Iterable[Deviation]:
        return left_plans(place.plans.plans, place.with_indexes(frozenset()), place.region)

    def schedules() -> Iterable[Deviation]:
        return left_schedules(place.schedules(), place.with_indexes(frozenset()), place.prices)

    for part in (targets, alarms, plans, schedules):
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
        text = "no target, alarm, plan or boost's schedule is of a table that is gone"
        yield Result(check=name, state=State.OK, text=text)


def drift(place: Place) -> Said:
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
                text = f"target {target.name} is declared, and the index is gone"
                found += 1
                yield Result(check=name, state=State.WARNING, text=text, fix="deploy the table's stack again")
                continue
            targets += 1
            differences = list(drift_of(target, live, prices, place.region))
            found += len(differences)
            yield from (_told(name, difference) for difference in differences)
    if not found:
        said = f"{targets} targets of {_tables(len(declared))} are as declared" if targets else "nothing is deployed"
        yield Result(check=name, state=State.OK, text=said)


# in order of worth
CHECKS: Final[Mapping[str, Check]] = {
    "service-linked-role": service_linked_role,
    "bootstrap": bootstrap,
    "concurrency": concurrency,
    "owners": owners,
    "cost": cost,
    "leftovers": leftovers,
    "drift": drift,
}


def run_checks(place: Place, names: Iterable[str] = CHECKS) -> Said:
    """Run the checks of these names; one that may not be read is a warning that names the missing permission."""
    for name in names:
        try:
            yield from CHECKS[name](place)
        except (ClientError, BotoCoreError) as error:
            yield unread(name, error)
        except PriceError as unknown:
            yield Result(check=name, state=State.WARNING, text=str(unknown), fix="give a file with --prices")


def _told(name: str, deviation: Deviation) -> Result:
    return Result(
        check=name,
        state=State.FAILURE if deviation.can_throttle else State.WARNING,
        text=deviation.text,
        fix=deviation.command,
        details=deviation.document(),
    )


def _declared(place: Place) -> dict[str, list[DeclaredTarget]]:
    """Return what is declared of each table by name: by its scaler's plan, by its own plan, or by its template."""
    scaled = {
        plan.table: plan
        for plan in place.plans.plans
        if plan.region in (None, place.region) and not plan.is_released and not plan.is_tagged
    }
    found: dict[str, list[DeclaredTarget]] = defaultdict(list)
    app = place.stacks.app()
    for table in () if app is None else app.tables:
        physical = place.physical(table)
        if physical is None or table.setup is None or table.setup.is_on_demand:
            continue
        plan = scaled.pop(physical, None)
        own = _planned(place, physical, plan.plan if plan else table.plan, plan)
        for resource in table.setup.resources:
            for dimension in Dimension:
                name = TargetName(physical, resource.index, dimension)
                is_read = dimension is Dimension.READ
                mark = resource.warm_read_units if is_read else resource.warm_write_units
                setup = DeclaredTarget.of_setup(name, resource.target(dimension), mark)
                by_plan = own.get(name)
                found[physical].append(setup if by_plan is None else by_plan.with_actions(setup.actions))
    for physical, plan in scaled.items():
        found[physical] = list(_planned(place, physical, plan.plan, plan).values())
    return found


def _planned(
    place: Place, table: str, plan: Plan | None, scaled: ScaledPlan | None
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
