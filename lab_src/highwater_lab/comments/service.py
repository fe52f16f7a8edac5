"""Requests of a web service: its pages, its rate limits, and errors in one line that never have the token."""

from __future__ import annotations

import http.client
import json
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from email.message import Message
from typing import Any, Final

from highwater.core import HighwaterError

_SECONDS_TO_ANSWER: Final = 30
# a whole run waits no longer than this for rate limits to end
MOST_SECONDS_TO_WAIT: Final = 300
_MOST_TRIES: Final = 10
# what GitHub asks for where an answer does not say how long to wait
_SECONDS_OF_A_LIMIT: Final = 60
_LONGEST_REASON: Final = 300
_TRIES_OF_A_FAILURE: Final = 3
_FAILURES: Final = (500, 502, 503, 504)
_REFUSALS: Final = (401, 403, 404)
# far more than a request of anybody's has
_MOST_PAGES: Final = 1_000


class CommentError(HighwaterError):
    """A service cannot be reached, or answers with what is not expected."""


class MayNotWriteError(CommentError):
    """The token may not do what is needed, or there is none."""


@dataclass(frozen=True, slots=True)
class ServiceAnswer:
    """An answer of the service.

    Attributes:
        status: Its HTTP status.
        headers: Its headers.
        document: Its JSON, `None` if it has no content.
    """

    status: int
    headers: Message
    document: Any


class _SameAddress(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the token would be sent wherever it leads."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Return none, so that the redirect is the answer."""


@dataclass(frozen=True, kw_only=True)
class Service:
    """The API of one service.

    Attributes:
        address: Where it is, without a slash at the end.
        variable: The variable that has the address, for messages.
        token: The token, which is in no message.
        headers: The headers of each request, among them the token's.
        pause: Waits for so many seconds.
        now: Returns the seconds since 1970.
    """

    address: str
    variable: str
    token: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    pause: Callable[[float], None] = time.sleep
    now: Callable[[], float] = time.time
    _waited: list[float] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        parts = urllib.parse.urlsplit(self.address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise CommentError(
                f"{self.variable}: is {self.address!r}, expected the address of an API, such as https://HOST/api"
            )
        if not re.fullmatch("[!-~]+", self.token):
            raise CommentError("the token has characters that no token has, such as a line break; store it again")

    def ask(self, method: str, place: str, body: Any = None, *, also: tuple[int, ...] = ()) -> ServiceAnswer:
        """Return the answer to a request; *place* is a path below the address, or a whole address.

        It waits where the service limits the rate of requests, and repeats a request that failed within the service,
        unless that could write something twice.

        Raises:
            MayNotWriteError: The status is 401, 403 or 404, and not in *also*.
            CommentError: Any other status that is not a success and not in *also*; the service cannot be reached, or
                asks to wait for more than five minutes altogether.
        """
        url = place if place.startswith("http") else f"{self.address}{place}"
        for tries in range(1, _MOST_TRIES + 1):
            answer, message = self._send(method, url, body)
            seconds = self._seconds_to_wait(method, answer, message, tries)
            if seconds is None:
                break
            if tries == _MOST_TRIES or sum(self._waited) + seconds > MOST_SECONDS_TO_WAIT:
                reason = f"{message or 'too many requests'}; it asks to wait {seconds:,.0f} s; run this again later"
                raise CommentError(self._told(method, url, answer, reason))
            self._waited.append(seconds)
            self.pause(seconds)
        if answer.status < 300 or answer.status in also:
            return answer
        reason = message or http.client.responses.get(answer.status, "")
        if answer.status in _FAILURES:
            reason = f"{reason}; run this again"
        kind = MayNotWriteError if answer.status in _REFUSALS else CommentError
        raise kind(self._told(method, url, answer, reason))

    def pages(self, path: str) -> Iterator[Any]:
        """Yield the members of a list, of all of its pages; raises as `ask` does."""
        url: str | None = f"{self.address}{path}"
        for _ in range(_MOST_PAGES):
            if url is None:
                return
            answer = self.ask("GET", url)
            members = answer.document
            if not isinstance(members, list) or not all(isinstance(each, dict) and "id" in each for each in members):
                raise CommentError(
                    self._told("GET", url, answer, f"what is not a list of comments; check {self.variable}")
                )
            yield from members
            url = self._next_page(url, answer)

    def _next_page(self, url: str, answer: ServiceAnswer) -> str | None:
        number: str | None = answer.headers.get("x-next-page")
        parts = urllib.parse.urlsplit(url)
        if number is not None:
            query = [pair for pair in urllib.parse.parse_qsl(parts.query) if pair[0] != "page"]
            new = urllib.parse.urlencode([*query, ("page", number.strip())])
            return urllib.parse.urlunsplit(parts._replace(query=new)) if number.strip() else None
        link = re.search(r'<([^<>]*)>\s*;[^,<]*\brel="?next\b', answer.headers.get("link", ""))
        if link is None:
            return None
        following: str = urllib.parse.urljoin(url, link[1])
        if urllib.parse.urlsplit(following)[:2] != parts[:2]:
            reason = f"the next page is at another host, to which no token is sent; check {self.variable}"
            raise CommentError(self._told("GET", url, answer, reason))
        return following

    def _send(self, method: str, url: str, body: Any) -> tuple[ServiceAnswer, str]:
        """Return the answer, and what it complains of."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"User-Agent": "highwater", "Content-Type": "application/json", **self.headers}
        opener = urllib.request.build_opener(_SameAddress)
        try:
            request = urllib.request.Request(url, data, headers, method=method)  # noqa: S310 - http or https, see above
            try:
                with opener.open(request, timeout=_SECONDS_TO_ANSWER) as came:
                    status, got, text = came.status, came.headers, came.read()
            except urllib.error.HTTPError as refused:
                with refused:
                    status, got, text = refused.code, refused.headers, refused.read()
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            said = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
            raise CommentError(
                self._without_token(f"{method} {url}: cannot be reached: {said}; check {self.variable} and the network")
            ) from None
        try:
            document = json.loads(text) if text.strip() else None
        except ValueError:
            document = None
            if status < 300:
                raise CommentError(
                    self._without_token(f"{method} {url}: the answer is not JSON; check {self.variable}")
                ) from None
        message = ""
        if isinstance(document, dict):
            details = document.get("errors") or ""
            message = f"{document.get('message') or document.get('error') or ''} {details}".strip()
        return ServiceAnswer(status, got, document), message

    def _seconds_to_wait(self, method: str, answer: ServiceAnswer, message: str, tries: int) -> float | None:
        """Return how long to wait before the request is repeated; `None` if it is not."""
        if answer.status in _FAILURES and method != "POST" and tries < _TRIES_OF_A_FAILURE:
            return float(2**tries)
        if answer.status not in (403, 429):
            return None
        after = answer.headers.get("retry-after", "").strip()
        if re.fullmatch("[0-9]{1,9}", after):
            return float(after)
        for family in ("x-ratelimit", "ratelimit"):
            reset = answer.headers.get(f"{family}-reset", "").strip()
            if answer.headers.get(f"{family}-remaining", "").strip() == "0" and re.fullmatch("[0-9]{1,12}", reset):
                return max(1.0, float(reset) - self.now())
        is_limit = answer.status == 429 or bool(after) or "rate limit" in message.lower()
        return float(_SECONDS_OF_A_LIMIT) if is_limit else None

    def _told(self, method: str, url: str, answer: ServiceAnswer, reason: str) -> str:
        where = url.partition("?")[0]
        # cut last, as a cut through the token would leave the half of it
        return f"{method} {where}: answered {answer.status}: {self._without_token(reason)[:_LONGEST_REASON]}"

    def _without_token(self, text: str) -> str:
        return " ".join(text.replace(self.token, "***").split())
