"""What AWS says to a call that it may refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from botocore.exceptions import ClientError

ACCEPTED: Final = "accepted"


def words_of(call: Callable[[], object]) -> str:
    """Make a call; return code and message of its refusal, or `accepted`."""
    try:
        call()
    except ClientError as refused:
        error: Any = refused.response["Error"]
        return f"{error['Code']}: {error['Message']}"
    return ACCEPTED
