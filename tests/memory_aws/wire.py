"""A wire to clients in memory, on which any call can be counted, and any answer lost, delayed or replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import EndpointConnectionError

from tests.memory_aws.tables import Document, refused


@dataclass(frozen=True)
class Call:
    """One request on its way: its place among all of the wire's, its operation and content, and how to carry it out."""

    number: int
    operation: str
    body: Document
    send: Callable[[], Any]


# Answers a call, of this wire or of one to a cloud, or raises; `None` lets it through.
Fault = Callable[[Any], Any]


def go_through(_call: object) -> Any:
    """No fault."""
    return None


@dataclass
class Wire:
    """Counts the calls of the clients around which it is, and gives each to a fault, which may answer or raise."""

    calls: list[Call] = field(default_factory=list)
    fault: Fault = go_through

    def around(self, client: Any) -> Any:
        """The client, speaking over this wire."""
        return _Wired(client, self)

    def reset(self) -> None:
        """Forget the calls and go through from now on."""
        self.calls, self.fault = [], go_through

    @property
    def operations(self) -> list[str]:
        """The calls made, in order."""
        return [call.operation for call in self.calls]

    def bodies(self, operation: str) -> list[Document]:
        """What was asked of that operation, in order."""
        return [call.body for call in self.calls if call.operation == operation]

    def carry(self, operation: str, body: Document, send: Callable[[], Any]) -> Any:
        """Let the fault answer a call, or carry it out."""
        call = Call(len(self.calls) + 1, operation, body, send)
        self.calls.append(call)
        answer = self.fault(call)
        return call.send() if answer is None else answer


@dataclass
class _Wired:
    client: Any
    wire: Wire

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.client, name)
        if name == "exceptions" or not callable(found):
            return found
        if name == "get_paginator":
            return lambda operation: _WiredPages(found(operation), self.wire, _title(operation))
        return lambda **body: self.wire.carry(_title(name), body, lambda: found(**body))


@dataclass
class _WiredPages:
    """A paginator. The clients in memory have one page for every answer."""

    pages: Any
    wire: Wire
    operation: str

    def paginate(self, **body: Any) -> Iterator[Any]:
        def send() -> Any:
            (page,) = self.pages.paginate(**body)
            return page

        yield self.wire.carry(self.operation, body, send)


def _title(method: str) -> str:
    return "".join(word.title() for word in method.split("_"))


def at(number: int, fault: Fault, operation: str | None = None) -> Fault:
    """The fault at just one call: the wire's *number*-th, or the *number*-th of that operation."""
    seen = 0

    def one(call: Any) -> Any:
        nonlocal seen
        if operation is not None and call.operation != operation:
            return None
        seen += 1
        return fault(call) if seen == number else None

    return one


def each(fault: Fault, *operations: str) -> Fault:
    """The fault at every call of these operations."""
    return lambda call: fault(call) if call.operation in operations else None


def refusal(code: str, message: str, status: int = 400) -> Fault:
    """An error answer; nothing is carried out."""

    def refuse(call: Call) -> Any:
        raise refused(code, message, status, call.operation)

    return refuse


def no_connection(_call: Call) -> Any:
    """AWS is not reached."""
    raise EndpointConnectionError(endpoint_url="https://dynamodb.us-east-1.amazonaws.com/")


def lost_answer(call: Call) -> Any:
    """The call is carried out, and its answer does not arrive."""
    call.send()
    return no_connection(call)


def rewritten(change: Callable[[Document], None]) -> Fault:
    """The answer, changed on the way back."""

    def rewrite(call: Call) -> Any:
        document = deepcopy(call.send())
        change(document)
        return document

    return rewrite
