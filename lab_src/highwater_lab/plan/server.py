"""The planner's web server, on loopback alone: the page, what it begins with, and the answer to each change."""

from __future__ import annotations

import hmac
import html
import json
import secrets
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from typing import Any, Final

from highwater_lab.plan.engine import Engine, ProposalError
from highwater_lab.report.page import fill_page, word

_LOOPBACK: Final = "127.0.0.1"
_MOST_BYTES: Final = 64 * 1024
_WORDS: Final = {
    "floor": "The least units per second that are provisioned, and paid for, at all times.",
    "ceiling": "The most units per second that auto scaling provisions.",
    "target": "Auto scaling provisions as much as keeps the consumed share of it at this percentage.",
    "window": "A higher floor at certain hours. It opens five minutes early, and again each week.",
    "boost": "A higher floor that a job asks for when it begins, once.",
}


class PlannerServer(ThreadingHTTPServer):
    """Serves the planner to the user of this machine: other sites and other users do not know its address.

    Args:
        engine: What simulates.
        port: The port of 127.0.0.1, 0 for one that is free.

    Raises:
        OSError: The port is in use, or may not be used.
    """

    daemon_threads = True

    def __init__(self, engine: Engine, port: int = 0) -> None:
        super().__init__((_LOOPBACK, port), _Handler)
        self.engine = engine
        self.token = secrets.token_urlsafe(24)

    @property
    def url(self) -> str:
        """The page's address, whose secret part nobody else can guess."""
        return f"http://{_LOOPBACK}:{self.server_port}/{self.token}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report what fails, but for a browser that has closed its page before the answer."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Refused(Exception):
    """A request that gets no answer but a status and a line."""

    def __init__(self, status: HTTPStatus, line: str) -> None:
        super().__init__(line)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    server: PlannerServer
    # a client that sends nothing does not hold its thread
    timeout = 30

    def do_GET(self) -> None:
        self._respond(self._get)

    def do_POST(self) -> None:
        self._respond(self._post)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing: the terminal is the user's."""

    def _respond(self, answer: Any) -> None:
        try:
            self._check_origin()
            kind, body = answer(self._place())
            status = HTTPStatus.OK
        except _Refused as refused:
            status, kind, body = refused.status, "application/json", json.dumps({"error": str(refused)}).encode()
        except ProposalError as wrong:
            status, kind = HTTPStatus.UNPROCESSABLE_ENTITY, "application/json"
            body = json.dumps({"error": str(wrong)}).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Content-Security-Policy", "frame-ancestors 'none'")
        self.end_headers()
        self.wfile.write(body)

    def _check_origin(self) -> None:
        """Refuse a name that resolves to this machine, and the scripts of other sites."""
        hosts = [f"{name}:{self.server.server_port}" for name in (_LOOPBACK, "localhost")]
        host, origin = self.headers.get("Host"), self.headers.get("Origin")
        if host not in hosts:
            raise _Refused(HTTPStatus.FORBIDDEN, f"Host: got {host!r}, allowed: {' or '.join(hosts)}")
        if origin is not None and origin != f"http://{host}":
            raise _Refused(HTTPStatus.FORBIDDEN, f"Origin: got {origin!r}, allowed: the planner's own page")

    def _place(self) -> str:
        """Return the path behind the token."""
        token, slash, place = self.path.removeprefix("/").partition("/")
        if not slash or not hmac.compare_digest(token.encode(), self.server.token.encode()):
            raise _Refused(HTTPStatus.NOT_FOUND, "no such page; open the address that highwater plan prints")
        return place

    def _get(self, place: str) -> tuple[str, bytes]:
        if place == "":
            return "text/html; charset=utf-8", page_of(self.server.engine.traffic.name)
        if place == "opening":
            return "application/json", json.dumps(self.server.engine.opening()).encode()
        raise _Refused(HTTPStatus.NOT_FOUND, f"no page {place!r}; open the address that highwater plan prints")

    def _post(self, place: str) -> tuple[str, bytes]:
        if place != "simulate":
            raise _Refused(HTTPStatus.NOT_FOUND, f"nothing to post to {place!r}; plans are posted to 'simulate'")
        # a form of another site cannot send this type
        if self.headers.get("Content-Type") != "application/json":
            got = self.headers.get("Content-Type")
            raise _Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"Content-Type: got {got!r}, allowed: application/json")
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()):
            raise _Refused(HTTPStatus.LENGTH_REQUIRED, f"Content-Length: got {length!r}, allowed: a number of bytes")
        if len(length) > len(str(_MOST_BYTES)) or int(length) > _MOST_BYTES:
            raise _Refused(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"body: got {length} bytes, allowed: up to {_MOST_BYTES:,}"
            )
        try:
            proposal = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            raise _Refused(HTTPStatus.BAD_REQUEST, "body: is not JSON; send a plan as a JSON object") from None
        return "application/json", json.dumps(self.server.engine.answer(proposal)).encode()


def page_of(name: str) -> bytes:
    """Return the page of a planner for the traffic of this name."""
    parts = resources.files("highwater_lab.plan")
    body = parts.joinpath("page.html").read_text(encoding="utf-8")
    for each in _WORDS:
        body = body.replace(f"@@{each}@@", word(each, _WORDS))
    body = body.replace("@@NAME@@", html.escape(name))
    script = parts.joinpath("page.js").read_text(encoding="utf-8")
    return fill_page(f"A plan for {name}", body, script, connects="'self'")
