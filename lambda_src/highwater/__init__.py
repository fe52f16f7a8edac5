"""Highwater's runtime: provisioned capacity for DynamoDB, declared and kept.

`highwater.boost` asks for capacity before a job starts; it is imported when it is first used, so that what needs the
core alone does not import boto3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from highwater.client.boost import boost

__all__ = ["boost"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from highwater.client.boost import boost

        return boost
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)
