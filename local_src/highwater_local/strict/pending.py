"""Changes of scalable targets that are under way, during which AWS refuses other changes of the same target."""

from __future__ import annotations

import asyncio
from typing import Final

from highwater_local.autoscaling.operations import Answer, Request, answer
from highwater_local.autoscaling.records import ServiceError
from highwater_local.autoscaling.service import AutoScaling

# AWS tells no length; this is short beside what a call over the network takes
_SECONDS: Final = 0.02
_CHANGES: Final = frozenset(
    {
        "DeleteScalingPolicy",
        "DeleteScheduledAction",
        "DeregisterScalableTarget",
        "PutScalingPolicy",
        "PutScheduledAction",
        "RegisterScalableTarget",
    }
)


class PendingUpdates:
    """The scalable targets that a call is changing, in all accounts and regions.

    The cloud carries out a change at once. Here it holds the answer back for a moment, so that two callers who change a
    target at the same time meet, as in AWS. A caller who waits for each answer is never refused.
    """

    def __init__(self) -> None:
        self._changed: set[tuple[AutoScaling, str, str]] = set()

    async def answer(self, service: AutoScaling, operation: str, request: Request) -> Answer:
        """Carry out one operation of *service*, which is that of an account and region.

        Raises:
            ServiceError: Another call is changing the same scalable target, or the service refuses the operation.
        """
        if operation not in _CHANGES:
            return answer(service, operation, request)
        target = (service, str(request.get("ResourceId")), str(request.get("ScalableDimension")))
        if target in self._changed:
            # the text as users of AWS report it
            message = "You already have a pending update to an Auto Scaling resource."
            raise ServiceError("ConcurrentUpdateException", message)
        self._changed.add(target)
        try:
            answered = answer(service, operation, request)
            await asyncio.sleep(_SECONDS)
        finally:
            self._changed.remove(target)
        return answered
