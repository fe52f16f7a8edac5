"""Answers to requests that a strict cloud refuses, in the protocol of the request."""

from __future__ import annotations

import json
from xml.sax.saxutils import escape

from highwater_local.strict.request import Request

Answer = tuple[int, dict[str, str], bytes]


def refused(request: Request, code: str, message: str, older_code: str) -> Answer:
    """The answer with that error, which the older protocol of forms knows by another code."""
    if "json" in request.headers.get("content-type", ""):
        body = json.dumps({"__type": code, "message": message}).encode()
        return 400, {"content-type": "application/x-amz-json-1.1"}, body
    error = f"<Error><Type>Sender</Type><Code>{older_code}</Code><Message>{escape(message)}</Message></Error>"
    return 400, {"content-type": "text/xml"}, f"<ErrorResponse>{error}</ErrorResponse>".encode()
