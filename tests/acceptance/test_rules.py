"""The policy that is too long for a role is a valid one, so that only its length is refused."""

from __future__ import annotations

import json

from acceptance.parts.rules import _statement_of


def test_statement_is_as_long_as_asked_and_allows_nothing() -> None:
    statement = _statement_of(300)
    assert len(json.dumps(statement)) > 300
    assert (sorted(statement), statement["Effect"]) == (["Action", "Effect", "Resource"], "Deny")
