"""A small stand-in for the APIs of GitHub and GitLab, on loopback: the comments of one pull or merge request."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

TOKEN = "secret-token-of-the-job"
GITHUB_NOTES = "/repos/shop/infra/issues/7/comments"
GITLAB_NOTES = "/projects/42/merge_requests/7/notes"
GITHUB_NOTE = re.compile(r"/repos/shop/infra/issues/comments/(\d+)")
GITLAB_NOTE = re.compile(re.escape(GITLAB_NOTES) + r"/(\d+)")
OURS = {"login": "github-actions[bot]", "id": 1}
THEIRS = {"login": "somebody", "id": 2}


@dataclass
class Forge:
    """One request's comments, what was asked of the service, and answers that it gives instead of the usual ones.

    Attributes:
        page: The most members of a page, whatever is asked for.
        most: The most characters of a comment.
        viewer: The login that the token belongs to; `None` if GitHub does not tell.
        scripted: Answers to coming requests, by method: status, headers and JSON.
        comments: By number.
        asked: Method and path of each request.
    """

    kind: str
    page: int = 100
    most: int = 65_536
    viewer: str | None = "github-actions[bot]"
    scripted: dict[str, list[tuple[int, dict[str, str], Any]]] = field(default_factory=dict)
    comments: dict[int, dict[str, Any]] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    tokens: set[str] = field(default_factory=set)
    address: str = ""
    next_page_at: str = ""

    def has(self, body: str, author: dict[str, Any] = OURS, **more: Any) -> int:
        """Add a comment, and return its number."""
        number = max(self.comments, default=100) + 1
        self.comments[number] = {"id": number, "body": body, "user": author, "author": author, **more}
        return number

    def bodies(self) -> list[str]:
        """The texts of our comments, in their order."""
        return [each["body"] for each in self.comments.values() if (each["user"] or {}).get("id") == 1]

    def written(self) -> list[str]:
        """The methods of the requests that wrote something."""
        return [method for method, path in self.asked if method != "GET" and not path.endswith("/graphql")]

    def answer(self, method: str, target: str, body: Any) -> tuple[int, dict[str, str], Any]:
        """Do what a request asks for."""
        parts = urlsplit(target)
        self.asked.append((method, parts.path))
        if self.scripted.get(method):
            return self.scripted[method].pop(0)
        if parts.path == "/graphql":
            return (200, {}, {"data": {"viewer": {"login": self.viewer}}}) if self.viewer else (404, {}, {})
        if parts.path == "/user":
            return 200, {}, {"id": 1}
        is_github = self.kind == "github"
        if parts.path == (GITHUB_NOTES if is_github else GITLAB_NOTES):
            if method == "POST":
                return self._written(None, body, 201)
            return self._listed(parse_qs(parts.query), parts.path)
        one = (GITHUB_NOTE if is_github else GITLAB_NOTE).fullmatch(parts.path)
        if one is None or int(one[1]) not in self.comments:
            return 404, {}, {"message": "Not Found"}
        if method == "DELETE":
            del self.comments[int(one[1])]
            return 204, {}, None
        assert method == ("PATCH" if is_github else "PUT")
        return self._written(int(one[1]), body, 200)

    def _written(self, number: int | None, body: dict[str, str], status: int) -> tuple[int, dict[str, str], Any]:
        assert set(body) == {"body"}
        if len(body["body"].encode("utf-16-le")) // 2 > self.most:
            return 422, {}, {"message": "Validation Failed", "errors": [{"message": "Body is too long"}]}
        if number is None:
            number = self.has(body["body"])
        self.comments[number]["body"] = body["body"]
        return status, {}, self.comments[number]

    def _listed(self, query: dict[str, list[str]], path: str) -> tuple[int, dict[str, str], Any]:
        size = min(int(query.get("per_page", ["30"])[0]), self.page)
        number = int(query.get("page", ["1"])[0])
        every = list(self.comments.values())
        if self.kind == "gitlab":
            every.reverse()
        rest = every[number * size :]
        headers = {}
        if self.kind == "gitlab":
            headers["X-Next-Page"] = str(number + 1) if rest else ""
        elif rest:
            following = urlencode({"per_page": size, "page": number + 1})
            first = f'<{self.address}{path}?page=1>; rel="first"'
            headers["Link"] = f'{first}, <{self.next_page_at or self.address}{path}?{following}>; rel="next"'
        return 200, headers, every[(number - 1) * size :][:size]


@contextmanager
def serving(forge: Forge) -> Iterator[Forge]:
    """Serve a stand-in on a port of loopback."""

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            text = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            forge.tokens.add(self.headers.get("PRIVATE-TOKEN") or self.headers.get("Authorization") or "")
            status, headers, document = forge.answer(self.command, self.path, json.loads(text) if text else None)
            content = document if isinstance(document, bytes) else json.dumps(document).encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            if status != 204:
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if status != 204:
                self.wfile.write(content)

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _answer

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    forge.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield forge
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
