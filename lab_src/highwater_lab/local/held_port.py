"""A port of loopback, held from the moment it is chosen until a server has it."""

from __future__ import annotations

import errno
import socket
from types import TracebackType
from typing import Final

from highwater_lab.local.control import CloudError

_V4: Final = (socket.AF_INET, "127.0.0.1")
_V6: Final = (socket.AF_INET6, "::1")
_ATTEMPTS: Final = 20


class HeldPort:
    """Listening sockets on *port* of loopback, in both families where both exist: `localhost` may mean either.

    Port 0 takes any that is free. A server that inherits the sockets is the only one that can answer there: no other
    process can take the port between choosing and serving. What connects before the server is ready, waits.

    Raises `CloudError` where the port is in use.
    """

    def __init__(self, port: int = 0) -> None:
        self._sockets = self._any() if port == 0 else _listening(port)
        self.port = int(self._sockets[0].getsockname()[1])

    def __enter__(self) -> HeldPort:
        """Hold it for the length of a block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let go of it; a process that has inherited the sockets keeps it."""
        for each in self._sockets:
            each.close()

    @property
    def descriptors(self) -> tuple[int, ...]:
        """The sockets, for a process that is to inherit them."""
        return tuple(each.fileno() for each in self._sockets)

    @staticmethod
    def _any() -> list[socket.socket]:
        for _ in range(_ATTEMPTS):
            try:
                return _listening(0)
            except CloudError:
                # free in one family, taken in the other
                continue
        raise CloudError("no port of loopback is free in both IPv4 and IPv6")


def _listening(port: int) -> list[socket.socket]:
    sockets = [_listen(*_V4, port)]
    try:
        sockets.append(_listen(*_V6, int(sockets[0].getsockname()[1])))
    except CloudError:
        sockets[0].close()
        raise
    except OSError:
        # this machine has no IPv6
        pass
    return sockets


def _listen(family: int, address: str, port: int) -> socket.socket:
    held = socket.socket(family, socket.SOCK_STREAM)
    try:
        # connections of a cloud that has just ended do not hold its port
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if family == socket.AF_INET6:
            held.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        held.bind((address, port))
        held.listen(1024)
    except OSError as wrong:
        held.close()
        if wrong.errno == errno.EADDRINUSE:
            raise CloudError(f"port {port} is in use; choose another") from wrong
        if wrong.errno == errno.EACCES:
            raise CloudError(f"port {port} is not allowed to this user; choose one above 1023") from wrong
        raise
    return held
