"""Throttling as clients see it: which exception, what it says, and its reasons.

Amazon DynamoDB Developer Guide, "Error handling with DynamoDB" and "Diagnosing throttling", read 2026-11; members as in
the API's model of botocore 1.43.
"""

from __future__ import annotations

import json
from typing import Any, Final

from highwater_lab.physics import Cause
from highwater_local.capacity.table_meters import Refusal

Answer = tuple[int, dict[str, str], bytes]
_LIMITS: Final = {
    Cause.PROVISIONED: "ProvisionedThroughputExceeded",
    Cause.KEY_RANGE: "KeyRangeThroughputExceeded",
    Cause.ACCOUNT: "AccountLimitExceeded",
    Cause.MAX_ON_DEMAND: "MaxOnDemandThroughputExceeded",
}
_OF_TABLE: Final = (
    "The level of configured provisioned throughput for the table was exceeded. Consider increasing your provisioning "
    "level with the UpdateTable API."
)
_OF_INDEX: Final = (
    "The level of configured provisioned throughput for one or more global secondary indexes of the table was "
    "exceeded. Consider increasing your provisioning level for the under-provisioned global secondary indexes with the "
    "UpdateTable API"
)
_ON_DEMAND: Final = (
    "Throughput exceeds the current capacity of your table or index. DynamoDB is automatically scaling your table or "
    "index so please try again shortly."
)
_ACCOUNT: Final = "Throughput exceeds the current throughput limit for your account."


class Throttled(Exception):
    """A request that is held back; carries who held it back, and the table's ARN."""

    def __init__(self, refusals: list[Refusal], table_arn: str) -> None:
        super().__init__()
        self.refusals = refusals
        self._table_arn = table_arn

    @property
    def table_name(self) -> str:
        """The table that the request was for."""
        return self._table_arn.rpartition("/")[2]

    @property
    def code(self) -> str:
        """The exception that clients see."""
        causes = {refusal.cause for refusal in self.refusals}
        if causes == {Cause.ACCOUNT}:
            return "RequestLimitExceeded"
        on_demand = any(refusal.is_on_demand for refusal in self.refusals)
        return "ThrottlingException" if on_demand else "ProvisionedThroughputExceededException"

    @property
    def message(self) -> str:
        """What the exception says."""
        if self.code == "RequestLimitExceeded":
            return _ACCOUNT
        if self.code == "ThrottlingException":
            return _ON_DEMAND
        return _OF_TABLE if any(refusal.index is None for refusal in self.refusals) else _OF_INDEX

    @property
    def reasons(self) -> list[dict[str, str]]:
        """A reason and the ARN of the resource, for each that held the request back."""
        return [
            {
                "reason": f"{'Table' if refusal.index is None else 'Index'}{refusal.dimension.title()}"
                f"{_LIMITS[refusal.cause]}",
                "resource": self._table_arn if refusal.index is None else f"{self._table_arn}/index/{refusal.index}",
            }
            for refusal in self.refusals
        ]

    def answer(self) -> Answer:
        """The HTTP answer."""
        member = "throttlingReasons" if self.code == "ThrottlingException" else "ThrottlingReasons"
        body = {"__type": self.code, "message": self.message, member: self.reasons}
        return _answer(self.code, body)


def cancelled(count: int, throttled: dict[int, Throttled]) -> Answer:
    """The answer of a transaction of *count* actions, of which some were held back."""
    reasons: list[dict[str, Any]] = [{"Code": "None"} for _ in range(count)]
    for number, held in throttled.items():
        code = "ThrottlingError" if held.code == "ThrottlingException" else held.code.removesuffix("Exception")
        reasons[number] = {"Code": code, "Message": held.message}
    codes = ", ".join(reason["Code"] for reason in reasons)
    code = "TransactionCanceledException"
    text = f"Transaction cancelled, please refer cancellation reasons for specific reasons [{codes}]"
    return _answer(code, {"__type": code, "message": text, "CancellationReasons": reasons})


def _answer(code: str, body: dict[str, Any]) -> Answer:
    headers = {"Content-Type": "application/x-amz-json-1.0", "x-amzn-errortype": code}
    return 400, headers, json.dumps(body).encode()
