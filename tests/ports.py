"""Servers that tests start: ports for them, and which are left."""

from __future__ import annotations

from pathlib import Path

from highwater_lab.local.process import HeldPort


def free_port() -> int:
    """A port of loopback that was free just now."""
    with HeldPort() as held:
        return held.port


def servers(home: Path) -> set[int]:
    """The living local clouds that `highwater local up` has started with this home."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
            environment = (process / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"highwater-local" in command and f"HOME={home}".encode() in environment:
            found.add(int(process.name))
    return found
