"""Names that no index can have, and DynamoDB's words for them (API Reference, GlobalSecondaryIndex, read 2026-11)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from highwater_local.autoscaling.records import ServiceError

Document = dict[str, Any]
_FEWEST, _MOST = 3, 255
_CHARACTERS: Final = "[a-zA-Z0-9_.-]+"


def index_name_refusal(request: Document) -> ServiceError | None:
    """The refusal of a CreateTable or UpdateTable that names such an index, `None` of any other."""
    unmet = [
        f"Value '{name}' at '{place}' failed to satisfy constraint: Member must {what}"
        for place, name in _names(request)
        for what in _unmet(name)
    ]
    if not unmet:
        return None
    told = f"{len(unmet)} validation error{'s' if len(unmet) > 1 else ''} detected: {'; '.join(unmet)}"
    return ServiceError("ValidationException", told)


def _names(request: Document) -> Iterator[tuple[str, str]]:
    """Where a name of a new index is in the request, and the name; anything but text is refused elsewhere."""
    for kind in ("Global", "Local"):
        for number, index in enumerate(request.get(f"{kind}SecondaryIndexes") or [], 1):
            if isinstance(index.get("IndexName"), str):
                yield f"{kind.lower()}SecondaryIndexes.{number}.member.indexName", index["IndexName"]
    for number, update in enumerate(request.get("GlobalSecondaryIndexUpdates") or [], 1):
        name = (update.get("Create") or {}).get("IndexName")
        if isinstance(name, str):
            yield f"globalSecondaryIndexUpdates.{number}.member.create.indexName", name


def _unmet(name: str) -> Iterator[str]:
    if len(name) < _FEWEST:
        yield f"have length greater than or equal to {_FEWEST}"
    if len(name) > _MOST:
        yield f"have length less than or equal to {_MOST}"
    if not re.fullmatch(_CHARACTERS, name):
        yield f"satisfy regular expression pattern: {_CHARACTERS}"
