"""Ports for processes that choose none themselves."""

from __future__ import annotations

from highwater_lab.local.held_port import HeldPort


def free_port() -> int:
    """A port of loopback that was free just now."""
    with HeldPort() as held:
        return held.port
