"""The function of a `BoostTask`: a step of a state machine that requests a boost, or releases it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from highwater.client.boost import Boost, BoostNotReadyError
from highwater.client.coordinator import BoostError, CoordinatorClient

# Fewer than for a job: the function has a minute, and the state machine retries.
_ATTEMPTS: Final = 4


def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """Serve `{"do": "begin", ...}` or `{"do": "release", "table": ..., "id": ...}`.

    Requests are idempotent by the boost's id, so the state machine retries until the capacity can be used.

    Returns:
        The units granted, or that the lease was released.

    Raises:
        BoostNotReadyError: The capacity cannot be used yet.
        BoostRefusedError: Nothing is granted.
        CoordinatorUnavailableError: The coordinator does not answer.
    """
    members = {name: value for name, value in event.items() if name not in ("do", "id", "table", "minutes")}
    client = CoordinatorClient(attempts=_ATTEMPTS)
    if event["do"] == "release":
        try:
            client.send("release", table=event["table"], id=event["id"])
        except BoostError as error:
            # no error: the lease expires by itself, and the work's result matters more
            return {"id": event["id"], "table": event["table"], "not_released": str(error)}
        return {"id": event["id"], "table": event["table"]}
    boost = Boost(
        table=event["table"],
        members=members,
        minutes=event["minutes"],
        client=client,
        timeout=timedelta(0),
        id=event["id"],
    )
    answer = boost.begin()
    state = boost.state()
    if not state.is_ready:
        raise BoostNotReadyError(f"{event['table']}: {state.line()}")
    return {
        "id": answer.id,
        "table": answer.table,
        "outcome": answer.outcome,
        "end": answer.end.isoformat(),
        "units": {each.target: each.units for each in answer.targets},
    }
