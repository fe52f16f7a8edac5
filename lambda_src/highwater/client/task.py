"""The function of a `BoostTask`: a step of a state machine that requests a boost, or releases it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from highwater.client.boost import Boost, BoostNotReadyError, BoostState
from highwater.client.coordinator import BoostError, BoostRefusedError, CoordinatorClient

# Fewer than for a job: the function has a minute, and the state machine retries.
_ATTEMPTS: Final = 4
_NO_MEMBERS: Final = ("do", "id", "minutes", "redrives", "retries", "table")
# of a boost that was not granted yet, or is over
_UNKNOWN: Final = 410


def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """Serve `{"do": "begin", "retries": ..., ...}` or `{"do": "release", "table": ..., "id": ..., "redrives": ...}`.

    Requests are idempotent by the boost's id, so the state machine retries until the capacity can be used. Each redrive
    of the execution has a boost of its own, because an id that was refused or released is not granted again; a release
    ends those of all redrives, because a step that succeeded, such as the one that began the boost, is not run again.

    Returns:
        The capacity that can be used, or that the lease was released.

    Raises:
        BoostNotReadyError: The capacity cannot be used yet.
        BoostRefusedError: Nothing is granted.
        CoordinatorUnavailableError: The coordinator does not answer.
    """
    members = {name: value for name, value in event.items() if name not in _NO_MEMBERS}
    # the count is missing where Step Functions does not redrive
    ids = [event["id"], *(f"{event['id']}-{number}" for number in range(1, (event.get("redrives") or 0) + 1))]
    client = CoordinatorClient(attempts=_ATTEMPTS)
    if event["do"] == "release":
        released: dict[str, Any] = {"id": ids[-1], "table": event["table"]}
        for id in ids:
            try:
                client.send("release", table=event["table"], id=id)
            except BoostError as error:
                # no error: the lease expires by itself, and the work's result matters more
                released["not_released"] = str(error)
        return released
    boost = Boost(
        table=event["table"],
        members=members,
        minutes=event["minutes"],
        client=client,
        timeout=timedelta(0),
        id=ids[-1],
    )
    # of a boost that was granted the state is enough, and costs the coordinator less than the request
    state = _known_state(boost) if event.get("retries") else None
    if state is None:
        boost.begin()
        state = boost.state()
    if not state.is_ready:
        raise BoostNotReadyError(f"{event['table']}: {state.line()}")
    return {
        "id": boost.id,
        "table": boost.table,
        "units": {each.target: each.provisioned for each in state.targets},
    }


def _known_state(boost: Boost) -> BoostState | None:
    try:
        return boost.state()
    except BoostRefusedError as refused:
        if refused.status != _UNKNOWN:
            raise
        return None
