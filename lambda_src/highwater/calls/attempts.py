"""How often a call is sent, and how long to wait between: botocore's retries, pauses before retries, and rests."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, Final

from botocore.config import Config

_RANDOM: Final = random.SystemRandom()
# Attempts of a request that botocore makes at most, the first included; by what the call is for.
# The caller repeats the call itself: it has to pay for each attempt, or what was added could count twice, or DynamoDB
# rejects an excess decrease for up to an hour.
ONCE: Final = 1
# The record of a budget, which is asked for again within a second
RENEWED: Final = 2
# A job or a run of the scaler waits for the answer.
AWAITED: Final = 3
# Metrics: late ones are of little use.
OBSERVED: Final = 4
# Objects of S3 and the records of jobs: a worker has minutes, and does not finish without them.
WORKED_ON: Final = 6
# Calls that an account may make few of in a second: ten of FilterLogEvents, 40 of GetParameter, and many stacks that
# are deployed at once make them (AWS General Reference, quotas of each service, read 2026-11).
RARE: Final = 8


def client_config(attempts: int, timeouts: tuple[float, float] | None = None, **more: Any) -> Config:
    """Return the configuration of a client that sends each request *attempts* times at most.

    Args:
        attempts: The number of attempts, the first included.
        timeouts: Seconds to wait for a connection, and for an answer. By default those of botocore.
        **more: What else `Config` takes.
    """
    retries: Any = {"mode": "standard", "total_max_attempts": attempts}
    if timeouts is not None:
        more |= {"connect_timeout": timeouts[0], "read_timeout": timeouts[1]}
    return Config(retries=retries, **more)


@dataclass(frozen=True, slots=True)
class Pauses:
    """Pauses that double with each attempt: *shortest*, twice that and so on up to *longest*, in seconds.

    A part of each is left out at random, so that callers that failed together do not try again together.

    Attributes:
        shortest: The first pause.
        longest: The longest pause.
        least: The least part of a pause that is left, and the most, of 1.
        most: See *least*.
    """

    shortest: float
    longest: float
    least: float = 0.5
    most: float = 1.0

    def seconds(self, attempt: int) -> float:
        """Return the pause after attempt number *attempt*, the first being 1, has failed."""
        # more doublings would only overflow
        whole = min(self.shortest * 2.0 ** min(attempt - 1, 20), self.longest)
        return whole * _RANDOM.uniform(self.least, self.most)


# A request that was throttled or failed, and is paid for again from a budget
PAID_REQUEST: Final = Pauses(0.1, 20.0)
# A coordinator that does not answer a job: requests are idempotent by the boost's id, so one whose answer may have been
# lost can be sent again. Six attempts have the five pauses of 1, 2, 4, 8 and 16 s between them.
COORDINATOR_ATTEMPTS: Final = 6
COORDINATOR_REQUEST: Final = Pauses(1.0, 16.0)
# The record of a budget that does not answer, or has no share left, and pulses that could not be written, are tried
# again after this time: a worker has nothing to spend meanwhile, and a slot of pulses is as long.
BUDGET_SECONDS: Final = 1.0
PULSE_SECONDS: Final = 10
# A record that another process has written since it was read: the other is done, so the next try comes soon
LOST_WRITE: Final = Pauses(0.04, 0.5, least=0.0)
_REST: Final = Pauses(15.0, 900.0, least=0.75, most=1.25)


@dataclass(slots=True)
class Rest:
    """How long to leave alone what failed: 15 s, then 30 s, up to 15 minutes, each up to a quarter less or more.

    The share is chosen at random, and anew in forked processes, so that a fleet does not try again in one moment. A
    clock that is set back ends a rest.
    """

    _failures: int = 0
    _since: float = 0.0
    _seconds: float = 0.0

    def fail(self, now: float) -> float:
        """Note a failure; return the seconds of the rest that begins *now*."""
        self._failures += 1
        self._since, self._seconds = now, _REST.seconds(self._failures)
        return self._seconds

    def succeed(self) -> None:
        """Forget the failures."""
        self._failures, self._seconds = 0, 0.0

    @property
    def ends_at(self) -> float:
        """When the rest is over, by the clock of `fail`."""
        return self._since + self._seconds

    def is_resting(self, now: float) -> bool:
        """Whether the rest is not over."""
        return self._since <= now < self.ends_at
