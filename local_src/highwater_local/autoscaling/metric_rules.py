"""Which metrics a target tracking policy of DynamoDB may follow.

Source: Application Auto Scaling API Reference, "PredefinedMetricSpecification", read 2026-11. That a metric may have
one policy only is told as users of AWS report it, the rest in words of this cloud's own.
"""

from __future__ import annotations

from typing import Any, Final

from highwater_local.autoscaling.records import PolicyRecord, ServiceError, TargetKey

_PREDEFINED: Final = "PredefinedMetricSpecification"
_CUSTOMIZED: Final = "CustomizedMetricSpecification"
_ONE_POLICY: Final = "Only one TargetTrackingScaling policy for a given metric specification is allowed."


def refuse_wrong_metric(key: TargetKey, name: str, settings: dict[str, Any], known: dict[str, PolicyRecord]) -> None:
    """Raise `ServiceError` where the policy *name* cannot follow its metric, beside those that are *known*."""
    predefined, customized = settings.get(_PREDEFINED), settings.get(_CUSTOMIZED)
    if bool(predefined) is bool(customized):
        got = "both" if predefined else "none"
        message = f"Exactly one of {_PREDEFINED} and {_CUSTOMIZED} is required, got {got}"
        raise ServiceError("ValidationException", message)
    wanted = f"DynamoDB{key.dimension.title()}CapacityUtilization"
    if predefined and predefined.get("PredefinedMetricType") != wanted:
        message = (
            f"Unsupported predefined metric type for {key.wording}: {predefined.get('PredefinedMetricType')}; it must "
            f"be {wanted}"
        )
        raise ServiceError("ValidationException", message)
    if any(_metric(other.configuration) == _metric(settings) for known_as, other in known.items() if known_as != name):
        raise ServiceError("ValidationException", _ONE_POLICY)


def _metric(settings: dict[str, Any]) -> tuple[Any, Any]:
    return settings.get(_PREDEFINED), settings.get(_CUSTOMIZED)
