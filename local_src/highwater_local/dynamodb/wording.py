"""Texts of rejected requests that differ between regions, as DynamoDB's validation moves to another form.

Since June 2026 AWS moves DynamoDB's validation, region by region and operation by operation, to texts that begin with
"1 validation error detected:". MiniStack has the newer texts in all regions but for the cases that it knows. The lists
here are what the Parity Suite (github.com/paritysuite/dynamodb-conformance) captured of 33 regions on 2026-10-07; a
region that has moved since still has its older text here.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from highwater_local import ministack
from highwater_local.ministack import Answer, rejected

# captures/2026-10-07-batch-empty-request-items.json: the regions with the newer text for an empty BatchWriteItem
_NEWER_BATCH_WRITES: Final = frozenset({"ap-east-2", "ap-southeast-1", "eu-central-1", "eu-north-1", "eu-west-2"})
# the same capture, of PutItem with `NULL: false`: the regions that reject it with the bare sentence. That they have the
# older texts for other writes of one item too is concluded
_OLDER_WRITES: Final = frozenset({"eu-south-2", "me-central-1"})
_ENVELOPE: Final = "1 validation error detected: "
# a constraint on one member of the request, which has the envelope in every region
_CONSTRAINT: Final = "failed to satisfy constraint"
_NO_EXPRESSION: Final = "ExpressionAttributeValues can only be specified when using expressions"
_ABSENT: Final = {
    "PutItem": "ConditionExpression is null",
    "DeleteItem": "ConditionExpression is null",
    "UpdateItem": "UpdateExpression and ConditionExpression are null",
}
_INVALID: Final = "One or more parameter values were invalid: "


def no_batch_text() -> str | None:
    """Return the text for a BatchWriteItem without `RequestItems` in the present region; `None` for MiniStack's own."""
    if ministack.get_region() in _NEWER_BATCH_WRITES:
        return None
    return "The requestItems parameter is required for BatchWriteItem"


def written_as_before(operation: str, answer: Answer) -> Answer:
    """Return the answer to an operation on one item, with the older text if the present region still has it.

    *operation* is its name, such as `PutItem`. Reads, and answers that reject nothing, are returned as they are.
    """
    status, _, body = answer
    if status != 400 or operation not in _ABSENT or ministack.get_region() not in _OLDER_WRITES:
        return answer
    text = str(json.loads(body).get("message", ""))
    sentence = text.removeprefix(_ENVELOPE)
    if sentence == text or _CONSTRAINT in sentence:
        return answer
    if sentence == _NO_EXPRESSION:
        sentence = f"{sentence}: {_ABSENT[operation]}"
    return rejected(sentence)


def duplicates_text(newer: Callable[..., str | None], kind: str, values: list[Any]) -> str | None:
    """Return the text for a set of that kind that contains a value twice; MiniStack's own texts are the *newer* ones.

    The older texts show a set's values as they were sent, without quotation marks.
    """
    text = newer(kind, values)
    if text is None or ministack.get_region() not in _OLDER_WRITES:
        return text
    if kind == "NS":
        return "Input collection contains duplicates"
    shown = ", ".join(str(value) for value in values)
    return f"{_INVALID}Input collection [{shown}]{'of type BS' if kind == 'BS' else ''} contains duplicates."
