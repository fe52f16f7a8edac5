"""A local cloud with tables of orders, and the commands that read and write them."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zstandard

from highwater_lab.local import LocalCloud
from tests.command import Command


@dataclass(frozen=True)
class Stage:
    """A cloud, and the commands as a user runs them."""

    cloud: LocalCloud
    command: Command

    def run(self, *arguments: str, given: str = "") -> tuple[int, str, str]:
        """Run `highwater`; its status, standard output and standard error."""
        done = self.command(*arguments, given=given)
        return done.returncode, done.stdout, done.stderr

    def make(self, table: str, units: int = 4_000) -> None:
        """Create a table with the key `pk`."""
        dynamodb = self.cloud.client("dynamodb")
        dynamodb.create_table(
            TableName=table,
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            ProvisionedThroughput={"ReadCapacityUnits": units, "WriteCapacityUnits": units},
        )
        dynamodb.close()

    def items(self, table: str) -> list[dict[str, Any]]:
        """All items, by key."""
        dynamodb = self.cloud.client("dynamodb")
        pages = dynamodb.get_paginator("scan").paginate(TableName=table, ConsistentRead=True)
        found = [item for page in pages for item in page["Items"]]
        dynamodb.close()
        return sorted(found, key=lambda item: str(item["pk"]["S"]))


def read_items(path: Path) -> list[dict[str, Any]]:
    """The items of a file that a scan wrote."""
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    elif path.suffix == ".zst":
        with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as reader:
            data = reader.read()
    return [json.loads(line)["Item"] for line in data.decode().splitlines()]
