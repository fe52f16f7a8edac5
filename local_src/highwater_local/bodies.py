"""Bodies of requests: read once, and judged before a service sees them."""

from __future__ import annotations

import json
from typing import Any, Final

# AWS's JSON protocols carry an object. Python's parser gives up somewhere above this many levels
_DEEP: Final = 900


async def read_body(receive: Any) -> bytes:
    """The whole body of a request."""
    body = b""
    while True:
        message = await receive()
        body += bytes(message.get("body", b""))
        if not message.get("more_body"):
            return body


def again(body: bytes, receive: Any) -> Any:
    """Receive a body that was read already, and then what else comes, such as the end of the connection."""
    is_read = False

    async def receive_again() -> Any:
        nonlocal is_read
        if is_read:
            return await receive()
        is_read = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_again


def is_object(body: bytes) -> bool:
    """Whether a body of AWS's JSON protocols is a JSON object, as far as this cloud can read it; none is an empty one.

    A service looks at the rest. Parsing every body twice would cost more than most requests do, so that only those are
    parsed here that may be nested too deeply.
    """
    text = body.lstrip()
    if not text:
        return True
    if not text.startswith(b"{"):
        return False
    if text.count(b"[") + text.count(b"{") > _DEEP:
        try:
            json.loads(text)
        except (RecursionError, ValueError):
            return False
    return True
