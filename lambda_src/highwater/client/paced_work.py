"""What paced scans and paced writes share: how they end early, wait before they send again, and keep their place."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from highwater.core.errors import HighwaterError

GOES_ON: Final = "start it again with the same checkpoint to go on"
# Tries of a request that fails without being throttled
TRIES: Final = 8
MOST_WORKERS: Final = 16
_FORMAT: Final = 1
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.05, 20.0


class PacedWorkError(HighwaterError):
    """A scan, or writes, that cannot begin or go on."""


def paced_client(session: Any) -> Any:
    """Return a DynamoDB client of a boto3 session, by default a new one, that sends each request once.

    Each attempt is paid for, so whoever uses it sends again itself.
    """
    retries: Any = {"mode": "standard", "total_max_attempts": 1}
    config = Config(retries=retries, max_pool_connections=MOST_WORKERS)
    return (session or boto3.Session()).client("dynamodb", config=config)


def describe_table(client: Any, table: str, what: str) -> Mapping[str, Any]:
    """Return what DescribeTable says; raises `PacedWorkError`, which names *what* is to be done."""
    try:
        found: Mapping[str, Any] = client.describe_table(TableName=table)["Table"]
    except client.exceptions.ResourceNotFoundException:
        region = client.meta.region_name
        raise PacedWorkError(f"{what}: there is no table {table!r} in {region}; give its name and region") from None
    except (ClientError, BotoCoreError) as error:
        raise PacedWorkError(f"{what}: table {table!r} cannot be described: {error}") from error
    return found


def check_workers(workers: int | None, what: str) -> None:
    """Raise `PacedWorkError` for a number of threads that is not allowed; `None` is."""
    if workers is not None and not 1 <= workers <= MOST_WORKERS:
        raise PacedWorkError(f"{what}: workers: got {workers}, allowed: 1 to {MOST_WORKERS}")


def pause_before(tries: int) -> float:
    """Return how many seconds to wait before a request is sent again for the so-manieth time: up to twenty, random."""
    longest = min(_SHORTEST_PAUSE * 2.0 ** min(tries, 10), _LONGEST_PAUSE)
    return random.uniform(longest / 2, longest)  # noqa: S311 - not for security


def read_checkpoint(path: Path, kind: str) -> dict[str, Any] | None:
    """Return what a checkpoint has, `None` where there is no file.

    Raises `PacedWorkError` for a file that cannot be read, or is no checkpoint of that kind.
    """
    try:
        document: Any = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise PacedWorkError(f"checkpoint {path}: cannot be read: {error.strerror}") from error
    except ValueError:
        document = None
    if not isinstance(document, dict) or (document.get("format"), document.get("kind")) != (_FORMAT, kind):
        raise PacedWorkError(f"checkpoint {path}: is no checkpoint of {kind}; give another file")
    return document


def write_checkpoint(path: Path, kind: str, document: Mapping[str, Any]) -> None:
    """Write a checkpoint, whole or not at all; raises `PacedWorkError` where that is not possible."""
    beside = path.with_name(f"{path.name}.new")
    try:
        with beside.open("w") as file:
            json.dump({"format": _FORMAT, "kind": kind, **document}, file)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        raise PacedWorkError(f"checkpoint {path}: cannot be written: {error.strerror}") from error
