"""The scaler's function: every run looks at the world and sets what should be there now.

Nothing is remembered between runs but what CloudWatch, Application Auto Scaling and DynamoDB know: a lost event, a
crash, a deploy that reset a floor, a hand edit are healed by the next run.
"""

from __future__ import annotations

import json
import os
from typing import Any

import boto3
from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from highwater.handlers.plan_cache import PlanCache
from highwater.handlers.scaled_table import Outcome
from highwater.handlers.scaler_event import ScalerEvent
from highwater.handlers.scaler_run import ScalerRun

logger = Logger(service="highwater-scaler", log_uncaught_exceptions=False)
_NAMESPACE = "Highwater"
# What a run keeps for handing on and reporting
_MARGIN_SECONDS = 15
_MOST_ATTEMPTS = 2
_PLANS = PlanCache()


class TargetsFailedError(Exception):
    """Targets failed again; Lambda keeps the event in its dead-letter queue."""


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Serve a tick, an alarm, a deploy, or a call by hand; answers how many targets changed.

    A table that fails is handed to a run of its own, and after that to the dead-letter queue; what does not fit into
    the remaining time is handed on.

    Raises:
        TargetsFailedError: Tables failed in a run that was theirs alone.
    """
    asked = ScalerEvent.read(event)
    run = ScalerRun(
        asked,
        remaining_seconds=lambda: context.get_remaining_time_in_millis() / 1000 - _MARGIN_SECONDS,
        plan_cache=_PLANS,
        dry_run=os.environ.get("HIGHWATER_DRY_RUN") == "true",
        sees_tags=os.environ.get("HIGHWATER_SEES_TAGS") == "true",
        regions=tuple(os.environ.get("HIGHWATER_REGIONS", "").split()),
    )
    outcome = run.run()
    _report(outcome)
    if outcome.failed and asked.attempt >= _MOST_ATTEMPTS:
        raise TargetsFailedError("; ".join(f"{table}: {error}" for table, error in sorted(outcome.failed.items())))
    if outcome.failed:
        _hand_on(asked.again(sorted(outcome.failed), attempt=asked.attempt + 1))
    if outcome.left:
        _hand_on(asked.again(sorted(outcome.left), attempt=asked.attempt))
    return outcome.summary


def _hand_on(event: dict[str, Any]) -> None:
    boto3.client("lambda").invoke(
        FunctionName=os.environ["AWS_LAMBDA_FUNCTION_NAME"], InvocationType="Event", Payload=json.dumps(event).encode()
    )


def _report(outcome: Outcome) -> None:
    """One line per decision that did something or was held back, one for each failure, and metrics for alarms."""
    for told in outcome.decisions:
        logger.info("decision", extra={"decision": told})
    for table, error in outcome.failed.items():
        logger.error("table failed", extra={"table": table, "error": error})
    for line in outcome.notes:
        logger.warning(line)
    metrics = EphemeralMetrics(namespace=_NAMESPACE, service="scaler")
    for name, value in {"Runs": 1, **outcome.counts}.items():
        metrics.add_metric(name=name, unit=MetricUnit.Count, value=value)
    metrics.flush_metrics()
