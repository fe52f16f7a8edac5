"""Metrics of a scaler: one list, and for each of it a method of the construct."""

from __future__ import annotations

import re

import aws_cdk as cdk
import pytest

from cdk_highwater import ThrottleAwareScaler
from highwater.core.scaler.metrics import NAMESPACE, ScalerMetric


def _method_of(metric: ScalerMetric) -> str:
    return "metric_" + re.sub(r"(?<!^)(?=[A-Z])", "_", metric).lower()


@pytest.mark.parametrize("metric", ScalerMetric)
def test_every_metric_that_a_run_counts_has_its_method(metric: ScalerMetric) -> None:
    scaler = ThrottleAwareScaler(cdk.Stack(), "Scaler")
    made = getattr(scaler, _method_of(metric))()
    told = (made.namespace, made.metric_name, made.statistic, made.period.to_minutes())
    assert told == (NAMESPACE, metric, "Sum", 5)
    assert made.dimensions == {"service": scaler.scaler_name}


def test_no_method_is_of_a_metric_that_nobody_counts() -> None:
    methods = {name for name in dir(ThrottleAwareScaler) if name.startswith("metric_")}
    assert methods == {_method_of(metric) for metric in ScalerMetric}
