"""Rejects requests of web pages to the local cloud, which runs code for any client that can reach it.

A browser on the developer's machine can reach loopback, and sends requests there for any page. Three headers, which
pages cannot set, distinguish such requests from those of AWS's tools: `Host` is the name by which a page reached the
cloud, and shows a rebound DNS name; `Origin` and `Sec-Fetch-Site` say where a page is from (Fetch Standard, and Fetch
Metadata Request Headers, read 2026-11).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

# browsers and resolvers resolve every name below localhost to loopback (RFC 6761); S3 puts a bucket's name in front
_LOOPBACK: Final = re.compile(r"(?:[a-z0-9_.-]+\.)?localhost|127\.0\.0\.1|\[::1\]")
_FROM_ELSEWHERE: Final = frozenset({"cross-site", "same-site"})
_CORS: Final = b"access-control-"
_LONGEST_ECHO: Final = 80
Headers = list[tuple[bytes, bytes]]


class Guard:
    """ASGI middleware that rejects requests of web pages, and removes CORS headers from answers.

    The host of a request must be loopback with *port*. A page may call the cloud only if it is from the cloud itself or
    from one of the *origins*, which get CORS headers.
    """

    def __init__(self, app: Any, port: int, origins: Sequence[str] = ()) -> None:
        self._app = app
        self._port = port
        self._origins = frozenset(origins)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Reject one request, or pass it on."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = _read(scope["headers"])
        refusal = self.refusal(headers)
        if refusal is not None:
            await _refuse(scope["type"], send, refusal)
            return
        origin = next((each for each in headers.get("origin", ()) if each in self._origins), None)
        if origin is not None and "access-control-request-method" in headers and scope["method"] == "OPTIONS":
            await send({"type": "http.response.start", "status": 204, "headers": _cors(origin, headers)})
            await send({"type": "http.response.body", "body": b""})
            return
        await self._app(scope, receive, _with_cors(send, [] if origin is None else _cors(origin, headers)))

    def refusal(self, headers: dict[str, list[str]]) -> str | None:
        """Return why a request with these headers is rejected; `None` for one that is not."""
        hosts = headers.get("host", [])
        if not hosts or not all(self._is_own(host) for host in hosts):
            return f"refused: Host is {_shown(hosts)}; expected localhost, 127.0.0.1 or [::1] with port {self._port}"
        own = {f"http://{host.lower()}" for host in hosts}
        origins = headers.get("origin", [])
        if not all(origin in self._origins or origin in own for origin in origins):
            return f"refused: Origin is {_shown(origins)}; a page may call this cloud only with --allow-origin"
        site = headers.get("sec-fetch-site", [])
        if _FROM_ELSEWHERE.intersection(site) and not origins:
            return f"refused: Sec-Fetch-Site is {_shown(site)}; a page of another origin may not call this cloud"
        return None

    def _is_own(self, host: str) -> bool:
        name, colon, port = host.lower().rpartition(":")
        if not colon or port.endswith("]"):
            name, port = host.lower(), "80"
        return _LOOPBACK.fullmatch(name) is not None and port == str(self._port)


def _read(headers: Headers) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in headers:
        found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return found


def _shown(values: list[str]) -> str:
    return repr(", ".join(values))[:_LONGEST_ECHO] if values else "missing"


async def _refuse(kind: str, send: Any, why: str) -> None:
    if kind == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": why[:100]})
        return
    body = json.dumps({"message": why}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _cors(origin: str, headers: dict[str, list[str]]) -> Headers:
    asked = headers.get("access-control-request-headers", ["*"])
    return [
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"access-control-allow-methods", b"GET, HEAD, POST, PUT, PATCH, DELETE"),
        (b"access-control-allow-headers", ", ".join(asked).encode("latin-1")),
        (b"access-control-expose-headers", b"*"),
        (b"vary", b"Origin"),
    ]


def _with_cors(send: Any, cors: Headers) -> Any:
    """Send answers with these CORS headers and no others: MiniStack's allow every page."""

    async def sending(message: Any) -> None:
        if message["type"] == "http.response.start":
            kept = [(name, value) for name, value in message["headers"] if not name.lower().startswith(_CORS)]
            message = {**message, "headers": [*kept, *cors]}
        await send(message)

    return sending
