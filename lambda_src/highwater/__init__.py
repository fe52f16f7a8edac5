"""Highwater's runtime: provisioned capacity for DynamoDB, declared and kept.

`highwater.boost` asks for capacity before a job starts, `highwater.pulse` has a process say what it asks for,
`highwater.pace` keeps it within a budget, and `highwater.scan`, `highwater.write` and `highwater.transform` read and
write many items within one. They are imported when they are first used, so that what needs the core alone does not
import boto3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from highwater.client.boost import boost
    from highwater.client.pace import pace
    from highwater.client.pulse import pulse
    from highwater.client.scan import scan
    from highwater.client.transform import transform
    from highwater.client.write import write

__all__ = ["boost", "pace", "pulse", "scan", "transform", "write"]


def __getattr__(name: str) -> Any:
    if name == "boost":
        from highwater.client.boost import boost

        return boost
    if name == "pace":
        from highwater.client.pace import pace

        return pace
    if name == "pulse":
        from highwater.client.pulse import pulse

        return pulse
    if name == "scan":
        from highwater.client.scan import scan

        return scan
    if name == "transform":
        from highwater.client.transform import transform

        return transform
    if name == "write":
        from highwater.client.write import write

        return write
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)
