"""The scaler's function: every run reads the present state and sets the floors that should apply now.

The only state between runs is what CloudWatch, Application Auto Scaling and DynamoDB have. So the next run corrects the
effects of a lost event, a crash, a deploy that reset a floor, and a change by hand.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import boto3
from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from highwater.aws.coordinator_table import LeaseTable, PulseTable
from highwater.aws.coordinator_table import client as lease_client
from highwater.aws.observe import NOTHING_KEPT, Kept
from highwater.aws.region import AwsRegion
from highwater.core.scaler.metrics import NAMESPACE, ScalerMetric
from highwater.handlers.scaler.event import ScalerEvent
from highwater.handlers.scaler.gather import RunOutcome
from highwater.handlers.scaler.run import Options, PlanCache, ScalerRun

logger = Logger(log_uncaught_exceptions=False)
# Seconds of a run's time that are reserved for handing tables on and for its report.
_MARGIN_SECONDS = 15
_MOST_ATTEMPTS = 2


class TablesFailedError(Exception):
    """Tables failed again; Lambda puts the event into the dead-letter queue."""


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Serve a tick, an alarm, a deploy, or a call by hand; return a summary of the run.

    Raises:
        ValueError: The event is none of these.
        TablesFailedError: Tables failed in a run for these tables only.
    """
    return scaler_of_environment().serve(event, lambda: context.get_remaining_time_in_millis() / 1000).summary


def scaler_of_environment() -> Scaler:
    """Return the scaler with the options in the function's environment variables."""
    leases = os.environ.get("HIGHWATER_LEASES")
    return Scaler(
        Options(
            name=os.environ["HIGHWATER_SCALER"],
            function=os.environ.get("AWS_LAMBDA_FUNCTION_NAME", ""),
            dry_run=os.environ.get("HIGHWATER_DRY_RUN") == "true",
            sees_tags=os.environ.get("HIGHWATER_SEES_TAGS") == "true",
            regions=tuple(os.environ.get("HIGHWATER_REGIONS", "").split()),
        ),
        plan_cache=_PLANS,
        kept=_kept_in(leases) if leases else NOTHING_KEPT,
    )


def _kept_in(name: str) -> Kept:
    dynamodb = _lease_client()
    return Kept(LeaseTable(name, dynamodb), PulseTable(name, dynamodb))


def hand_on(event: dict[str, Any]) -> None:
    """Invoke this function with another event, without waiting for it."""
    boto3.client("lambda").invoke(
        FunctionName=os.environ["AWS_LAMBDA_FUNCTION_NAME"], InvocationType="Event", Payload=json.dumps(event).encode()
    )


def report(outcome: RunOutcome, scaler: str) -> None:
    """Log a line for each decision that changed something or was limited and for each failure; publish metrics."""
    for document in outcome.decisions:
        logger.info("decision", extra={"decision": document})
    for table, error in outcome.failed.items():
        logger.error("table failed", extra={"table": table, "error": error})
    for line in outcome.notes:
        logger.warning(line)
    publish(outcome.counts, scaler)


def publish(counts: Mapping[ScalerMetric, int], scaler: str) -> None:
    """Publish those counts that are not 0: a metric costs money in every hour in which it has a value."""
    values = {metric: value for metric, value in counts.items() if value}
    if not values:
        return
    metrics = EphemeralMetrics(namespace=NAMESPACE, service=scaler)
    for metric, value in values.items():
        metrics.add_metric(name=str(metric), unit=MetricUnit.Count, value=value)
    metrics.flush_metrics()


@dataclass(frozen=True, slots=True)
class Scaler:
    """Serves events.

    Attributes:
        options: The scaler's options.
        region_of: Makes a region's clients; `None` is the scaler's own region.
        hand_on: Starts another run for an event.
        report: Logs the outcome of a run.
        plan_cache: Plans that earlier runs have read.
        kept: The coordinator's table; by default there is none.
        pause: Sleeps for the given number of seconds.
    """

    options: Options = field(default_factory=Options)
    region_of: Callable[[str | None], AwsRegion] = AwsRegion
    hand_on: Callable[[dict[str, Any]], None] = hand_on
    report: Callable[[RunOutcome, str], None] = report
    plan_cache: PlanCache = field(default_factory=PlanCache)
    kept: Kept = NOTHING_KEPT
    pause: Callable[[float], None] = time.sleep

    def serve(self, document: dict[str, Any], remaining_seconds: Callable[[], float]) -> RunOutcome:
        """Run for one event.

        A table that fails is handed on to a separate run; if that fails too, to the dead-letter queue. Tables for which
        there was no time are handed on to another run.

        Raises:
            ValueError: The event is not one of the scaler's.
            TablesFailedError: Tables failed in a run for these tables only.
        """
        event = ScalerEvent.read(document)
        run = ScalerRun(
            event,
            lambda: remaining_seconds() - _MARGIN_SECONDS,
            cache(self.region_of),  # a run makes the clients of a region only once
            plan_cache=self.plan_cache,
            options=self.options,
            kept=self.kept,
            pause=self.pause,
        )
        outcome = run.run()
        self.report(outcome, self.options.name)
        if outcome.failed and event.attempt >= _MOST_ATTEMPTS:
            raise TablesFailedError("; ".join(f"{table}: {error}" for table, error in sorted(outcome.failed.items())))
        if outcome.failed:
            self.hand_on(event.again(sorted(outcome.failed), attempt=event.attempt + 1))
        if outcome.left:
            self.hand_on(event.again(sorted(outcome.left), attempt=event.attempt))
        return outcome


# cached while the function is warm
_PLANS = PlanCache()
_lease_client = cache(lease_client)
