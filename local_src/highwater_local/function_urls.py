"""Function URLs of Lambda: an address on this machine, and the caller's identity, as AWS gives it to the function.

MiniStack serves URLs, with addresses below `on.aws`, and does not tell a function who calls. AWS does (AWS Lambda
Developer Guide, "Invoking Lambda function URLs", request payload, read 2026-11): `authorizer.iam`.
"""

from __future__ import annotations

from typing import Any

from highwater_local import ministack
from highwater_local.strict.permissions import URL_PATH, role_of_token

Document = dict[str, Any]


class FunctionUrls:
    """Stands in front of MiniStack's function URLs, of a cloud on *port*."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._build = ministack.function_url_event.replace(self._with_identity)
        self._attributes = ministack.function_url_attributes.replace(self._here)

    def _here(self, config: Document) -> Document:
        """The attributes of a URL in CloudFormation, with an address that leads to this cloud."""
        found: Document = self._attributes(config)
        id = str(found["FunctionUrl"]).split("://", 1)[-1].split(".", 1)[0]
        return found | {"FunctionUrl": f"http://localhost:{self._port}{URL_PATH}{id}/"}

    def _with_identity(self, url_id: str, account: str, *more: Any, **named: Any) -> Document:
        event: Document = self._build(url_id, account, *more, **named)
        identity = caller_of(event["headers"], account)
        if identity is not None:
            event["requestContext"]["authorizer"] = {"iam": identity}
        return event


def caller_of(headers: Document, account: str) -> Document | None:
    """Who signed a request, by its session token or access key; `None` for one that is not signed.

    Keys that this cloud did not give out are taken for those of the account's root, as everywhere in it.
    """
    role = role_of_token(headers.get("x-amz-security-token", ""))
    key = ministack.access_key_of(headers)
    if not key:
        return None
    if role is not None:
        name, function = role
        arn = f"arn:aws:sts::{account}:assumed-role/{name}/{function}"
        return _identity(key, account, arn, f"AROA{name.upper()[:16]}:{function}")
    known = ministack.caller_identity(key)
    if known is not None:
        return _identity(key, account, known["userArn"], known["userId"])
    return _identity(key, account, f"arn:aws:iam::{account}:root", account)


def _identity(key: str, account: str, arn: str, user: str) -> Document:
    # members without a value are null in AWS's events too
    return {
        "accessKey": key,
        "accountId": account,
        "callerId": user,
        "cognitoIdentity": None,
        "principalOrgId": None,
        "userArn": arn,
        "userId": user,
    }
