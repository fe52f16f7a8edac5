"""A rehearsal as a JSON document."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from highwater_lab.rehearse import Outcome, Rehearsal
from highwater_lab.services.billing import Bill
from highwater_lab.simulation import JobRun, QueueRun, Run
from highwater_lab.simulation.remedies import remedies
from highwater_lab.simulation.run import Event


def rehearsal_document(rehearsal: Rehearsal) -> dict[str, Any]:
    """Return the figures of the terminal's summary and the events of every run, ready for `json.dumps`.

    Units and USD are numbers, times are ISO 8601.
    """
    traffic = rehearsal.traffic
    return {
        "table": rehearsal.setup.name,
        "notes": list(rehearsal.setup.notes),
        "traffic": {
            "name": traffic.name,
            "start": traffic.start.isoformat(),
            "minutes": traffic.minutes,
            "bin_seconds": traffic.bin_seconds,
            "source_bin_seconds": traffic.source_bin_seconds,
            "is_coarse": traffic.is_coarse,
            "mean_units_per_second": round(traffic.mean_units_per_second(), 3),
        },
        "prices_region": rehearsal.prices.region,
        "prices_dated": rehearsal.prices.dated,
        "runs": [run_document(run) for run in rehearsal.runs],
    }


def run_document(run: Run) -> dict[str, Any]:
    """Return the figures and events of one run."""
    worst = run.worst_minute()
    return {
        "policy": run.policy,
        "demanded_units": round(run.demanded_units, 3),
        "throttled_units": round(run.throttled_units, 3),
        "throttled_percent": run.throttled_percent,
        "throttled_minutes": len(run.throttled_minutes()),
        "throttled_by_cause": {str(cause): round(units, 3) for cause, units in run.throttled_by_cause().items()},
        "remedies": [
            {
                "cause": str(remedy.cause),
                "index": remedy.target.index,
                "dimension": str(remedy.target.dimension),
                "bottleneck": str(remedy.bottleneck),
                "throttled_units": round(remedy.units, 3),
                "text": remedy.text,
            }
            for remedy in remedies(run)
        ],
        "worst_minute": None
        if worst is None
        else {
            "at": (run.start + timedelta(minutes=worst[0])).isoformat(),
            "minute": worst[0],
            "throttled_units": round(worst[1], 3),
        },
        "cost_per_month_usd": round(run.bill.per_month, 2),
        "warm_up_once_usd": round(run.bill.warm_up, 2),
        "cost_usd": {
            "hours": run.bill.hours,
            "provisioned": round(run.bill.provisioned, 4),
            "on_demand": round(run.bill.on_demand, 4),
            "scaler": round(run.bill.scaler, 4),
        },
        "config": config_document(run.bill),
        "utilization_percent": None if run.utilization_percent is None else round(run.utilization_percent, 2),
        "decreases": run.decreases,
        "refused_decreases": run.refused_decreases,
        "targets": [
            {
                "index": target.index,
                "dimension": str(target.dimension),
                "consumed_units": round(target.consumed_units, 3),
                "throttled_units": round(target.throttled_units, 3),
                "highest_provisioned": max(units for _, units in target.capacity),
                "cost_per_month_usd": round(usd, 2),
            }
            for target, usd in zip(run.targets, run.bill.targets_per_month, strict=True)
        ],
        "queue": None if run.queue is None else _queue(run, run.queue),
        "jobs": [_job(run, each) for each in run.jobs],
        "events": [_event(run, event) for event in run.events],
    }


def config_document(costs: Bill | Outcome) -> dict[str, Any]:
    """Return what AWS Config costs a month for the changes of capacity, and whether that is part of the costs."""
    return {
        "items_per_month": round(costs.config_items_per_month, 1),
        "cost_per_month_usd": round(costs.config_per_month, 4),
        "is_included": costs.has_config_recorder,
    }


def _queue(run: Run, queue: QueueRun) -> dict[str, Any]:
    def moment(second: int) -> str:
        return (run.start + timedelta(seconds=second)).isoformat()

    return {
        "units_per_second": queue.buffer.units,
        "drain_seconds": queue.buffer.drain_seconds,
        "most_waiting_units": queue.most_units,
        "most_waiting_at": moment(queue.most_at),
        "oldest_seconds": queue.oldest_seconds,
        "oldest_at": moment(queue.oldest_at),
        "empty_at": None if queue.empty_at is None else moment(queue.empty_at),
        "left_units": queue.left_units,
        "written_units": round(queue.written_units, 3),
        "throttled_units": round(queue.throttled_units, 3),
    }


def _job(run: Run, each: JobRun) -> dict[str, Any]:
    return {
        "name": each.job.name,
        "start": (run.start + timedelta(seconds=each.start)).isoformat(),
        "seconds": None if each.end is None else each.end - each.start,
        "seconds_to_full_rate": None if each.full_at is None else each.full_at - each.start,
        "workers": each.job.workers,
        "most_units_in_a_second": each.most_units,
        "units": round(each.units, 3),
        "throttled_units": round(each.throttled_units, 3),
        "others_throttled_units": round(each.others_throttled_units, 3),
    }


def _event(run: Run, event: Event) -> dict[str, Any]:
    return {
        "at": (run.start + timedelta(seconds=event.at)).isoformat(),
        "index": event.index,
        "dimension": None if event.dimension is None else str(event.dimension),
        "kind": str(event.kind),
        "text": event.text,
        "before": event.before,
        "after": event.after,
    }
