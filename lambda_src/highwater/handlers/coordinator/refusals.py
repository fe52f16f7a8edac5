"""What the coordinator refuses: each refusal with the status of the answer and its words.

A request that makes no sense is refused in the words of `core/boosts/request.py`, and a boost that is granted in part
has its reasons from `core/boosts/lease.py`.
"""

from __future__ import annotations

from collections.abc import Iterable

from highwater.core.boosts import Caller, LeaseError


class RefusedError(Exception):
    """A call is rejected.

    Attributes:
        status: The HTTP status code: 400, 405 or 413 malformed, 403 not granted, 404 unknown, 409 conflicts with the
            table's state or another caller's boost, 410 ended, 429 too many, 503 temporarily not possible.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def no_json(what: str = "the body is no JSON") -> RefusedError:
    """The body, or an event's detail, is no JSON, or no object."""
    return RefusedError(400, what)


def body_too_long(characters: int, most: int) -> RefusedError:
    """The body is longer than any request."""
    return RefusedError(413, f"the body has {characters:,} characters; allowed: {most:,}")


def malformed(error: LeaseError) -> RefusedError:
    """A member of the request is not allowed."""
    return RefusedError(400, str(error))


def unknown_action(action: str, allowed: Iterable[str]) -> RefusedError:
    """`do` is none of the calls."""
    return RefusedError(400, f"boost: do is {action[:40]!r}; allowed: {', '.join(allowed)}")


def other_detail_type(detail_type: object, table: object) -> RefusedError:
    """An event asks for help for another table than its detail type, by which IAM allowed it."""
    of, named = repr(detail_type), repr(str(table)[:60])
    return RefusedError(400, f"pulse: the detail type is {of}, and the table {named}; they must agree")


def other_method(method: object) -> RefusedError:
    """The request is no POST."""
    return RefusedError(405, f"the method is {method}; allowed: POST")


def no_identity(identity: object) -> RefusedError:
    """The caller is not authenticated, or neither a role nor a user."""
    fix = "assume a role that has grant_boost or grant_pulse"
    who = identity or "not authenticated"
    return RefusedError(403, f"only roles and users may boost or pulse, and the caller is {who}; {fix}")


def not_granted(caller: Caller, table: str, may: Iterable[str], *, to_boost: bool) -> RefusedError:
    """The caller has no grant for the table; *may* are the tables that it has one for."""
    listed = ", ".join(may)
    has = f"; its grants are for {listed}" if listed else ""
    act, grant = ("boost", "grant_boost") if to_boost else ("pulse", "grant_pulse")
    fix = f"give it {grant} in the CDK app, and deploy"
    return RefusedError(403, f"{caller.name} may not {act} {table}{has}; {fix}")


def unknown_table(label: str, why: str) -> RefusedError:
    """The coordinator has no such table."""
    return RefusedError(404, f"{label}: {why}; add the table to it and deploy")


def table_gone(label: str) -> RefusedError:
    """The table was deleted."""
    return RefusedError(404, f"{label}: the table does not exist")


def index_missing(label: str) -> RefusedError:
    """The index is not built yet."""
    return RefusedError(409, f"{label}: the table has no such index yet; boost it when it is built")


def on_demand(label: str) -> RefusedError:
    """The table has no provisioned capacity."""
    return RefusedError(409, f"{label}: the table is on demand, so it has no capacity to boost")


def replicated_writes(label: str, regions: Iterable[str]) -> RefusedError:
    """Writes go to the table's replicas too."""
    return RefusedError(
        409,
        f"{label}: the table has replicas in {', '.join(regions)}, which take the same writes and would not be raised; "
        "boost reads only, and declare a window for the writes",
    )


def second_owner(label: str) -> RefusedError:
    """The scaler sets capacity itself, and auto scaling has a target too."""
    fix = "deregister it, or have the scaler move floors with add_table"
    return RefusedError(409, f"{label}: auto scaling has a scalable target, so nobody sets its capacity; {fix}")


def no_target(label: str) -> RefusedError:
    """Nothing scales what is to be boosted."""
    return RefusedError(409, f"{label}: no scalable target is registered; deploy the table's stack again")


def no_room_to_renew(label: str, id: str, why: str) -> RefusedError:
    """A lease cannot be extended: other leases are booked, or the caller's cap was lowered."""
    return RefusedError(409, f"{label}: boost {id} cannot be renewed: {why}")


def over(label: str, id: str) -> RefusedError:
    """The boost has ended, or there was none."""
    return RefusedError(410, f"{label}: boost {id} is over, or never was; begin one with an id of its own")


def too_many_boosts(label: str, error: Exception) -> RefusedError:
    """No more boosts of the table can be kept."""
    return RefusedError(429, f"{label}: {error}")


def too_many_at_once() -> RefusedError:
    """Other requests wrote the table's boosts again and again, until the invocation had no time left."""
    return RefusedError(503, "too many boosts of the table were asked for at once; ask again")


def leases_silent(error: Exception) -> RefusedError:
    """The lease table does not answer."""
    unknown = "so it is not known what was granted; ask again with the same id"
    return RefusedError(503, f"the lease table does not answer, {unknown}: {error}")


def table_silent(label: str, error: Exception) -> RefusedError:
    """DynamoDB does not say what the table is."""
    return RefusedError(503, f"{label}: DynamoDB does not answer: {error}")
