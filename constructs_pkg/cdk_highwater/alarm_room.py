"""The room that an account has for alarms in a region, and how many an app takes there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from weakref import WeakKeyDictionary

import jsii
from constructs import Construct, IConstruct, IValidation

from cdk_highwater.annotations import annotate
from highwater.core import Target
from highwater.core.findings import caution

# By default; AWS raises it on request (Amazon CloudWatch User Guide, "CloudWatch service quotas", read 2026-11)
_MOST_ALARMS: Final = 5_000
# Application Auto Scaling watches a DynamoDB target with two alarms on consumption and two on provisioned capacity
# (Application Auto Scaling User Guide, "How target tracking scaling works", read 2026-11).
TRACKING_ALARMS: Final = 4

# For each app, the alarms by account and region
_ALARMS: WeakKeyDictionary[IConstruct, dict[tuple[str, str], int]] = WeakKeyDictionary()


def count_alarms(construct: Construct, place: tuple[str, str], targets: Iterable[Target], *, of_each: int) -> None:
    """Note that each autoscaled one of *targets* has *of_each* alarms in *place*, an account and a region.

    The first construct of a place is told, at the end of synth, if its app has more alarms there than an account may.
    """
    added = of_each * sum(target.capacity.is_autoscaled for target in targets)
    alarms = _ALARMS.setdefault(construct.node.root, {})
    if place not in alarms:
        construct.node.add_validation(_AlarmsFitTheAccount(construct, place))
    alarms[place] = alarms.get(place, 0) + added


@jsii.implements(IValidation)
class _AlarmsFitTheAccount:
    def __init__(self, construct: Construct, place: tuple[str, str]) -> None:
        self._construct = construct
        self._place = place

    def validate(self) -> list[str]:
        alarms = _ALARMS[self._construct.node.root][self._place]
        if alarms > _MOST_ALARMS:
            problem = (
                f"target tracking and the scalers have {alarms:,} alarms there, and an account may have "
                f"{_MOST_ALARMS:,} in a region unless AWS has raised its quota"
            )
            fix = (
                "ask AWS for more alarms before the deploy, or use tagged tables of a ThrottleAwareScaler, which have "
                "no alarm of the scaler; docs/fleets.md tells how"
            )
            annotate(
                self._construct,
                [caution("tooManyAlarms", "the app's tables in the region of this one", problem, fix)],
            )
        return []
