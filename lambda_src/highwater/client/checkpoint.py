"""Where a scan is, in a file: what is done, and where to go on."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from highwater.client.paced_work import PacedWorkError, read_checkpoint, write_checkpoint

_KIND: Final = "a scan"
_SAVED_EVERY: Final = 5.0


@dataclass(frozen=True, slots=True)
class ScanHeader:
    """Which scan a checkpoint is of.

    Attributes:
        table: The table's name and region.
        index: The index, `None` for the table.
        segments: Into how many segments it is divided.
        is_consistent: Whether its reads are strongly consistent.
        request: A digest of filter, projection and their values, which the file need not have.
    """

    table: str
    index: str | None
    segments: int
    is_consistent: bool
    request: str

    @classmethod
    def of(cls, region: str, arguments: Mapping[str, Any]) -> ScanHeader:
        """The header of a scan with these arguments of `Scan`."""
        others = {"TableName", "IndexName", "TotalSegments", "ConsistentRead"}
        rest = {name: _encoded(value) for name, value in arguments.items() if name not in others}
        digest = hashlib.sha256(json.dumps(rest, sort_keys=True, default=str).encode()).hexdigest()
        return cls(
            f"{region} {arguments['TableName']}",
            arguments.get("IndexName"),
            int(arguments["TotalSegments"]),
            bool(arguments["ConsistentRead"]),
            digest,
        )

    def differences(self, other: ScanHeader) -> list[str]:
        """What another scan has otherwise, in words."""
        named = {
            "table": self.table != other.table,
            "index": self.index != other.index,
            "consistency": self.is_consistent != other.is_consistent,
            "filter or projection": self.request != other.request,
        }
        return [name for name, differs in named.items() if differs]


class Checkpoint:
    """Keeps a scan's place in a file, which it writes every five seconds and at the end of a block.

    Args:
        path: The file; `None` for a scan that need not go on.
        header: The scan. A file that is of another one is refused.
        save: Called before the file is written; returns how many bytes of the caller's output are safe.
        clock: Seconds that do not go back.

    Raises:
        PacedWorkError: The file is of another scan, cannot be read, or is no checkpoint.
    """

    def __init__(
        self,
        path: Path | None,
        header: ScanHeader,
        save: Callable[[], int] | None = None,
        clock: Callable[[], float] = lambda: time.monotonic(),
    ) -> None:
        self._path = path
        self._header = header
        self._save = save
        self._clock = clock
        self._saved_at = clock()
        self._keys: dict[int, Mapping[str, Any]] = {}
        self.done: set[int] = set()
        self.scanned = 0
        self.units = 0.0
        known = None if path is None else read_checkpoint(path, _KIND)
        if known is not None:
            self._load(known)

    @staticmethod
    def segments_of(path: Path | None) -> int | None:
        """Into how many segments the scan of a file is divided; `None` where there is no file."""
        known = None if path is None else read_checkpoint(path, _KIND)
        return None if known is None else int(known["header"]["segments"])

    @staticmethod
    def output_of(path: Path) -> int | None:
        """How many bytes of the caller's output are safe; `None` where there is no file."""
        known = read_checkpoint(path, _KIND)
        return None if known is None else int(known["output"])

    def __enter__(self) -> Checkpoint:
        """Begin; the file is written at once, so that a place that cannot be written to is told before the scan."""
        self.write()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Write the file, or delete it if the scan is done."""
        if len(self.done) == self._header.segments and kind is None:
            if self._save is not None:
                self._save()
            if self._path is not None:
                self._path.unlink(missing_ok=True)
        else:
            self.write()

    def pending(self) -> dict[int, Mapping[str, Any] | None]:
        """Where each segment that is not done goes on."""
        return {each: self._keys.get(each) for each in range(self._header.segments) if each not in self.done}

    def note(self, segment: int, key: Mapping[str, Any] | None, scanned: int, units: float) -> None:
        """A page of a segment is done, and the next one comes after *key*; none comes for `None`."""
        self.scanned += scanned
        self.units += units
        if key is None:
            self.done.add(segment)
            self._keys.pop(segment, None)
        else:
            self._keys[segment] = key
        if self._clock() - self._saved_at >= _SAVED_EVERY:
            self.write()

    def write(self) -> None:
        """Write the file, whole or not at all; raises `PacedWorkError` where that is not possible."""
        output = self._save() if self._save is not None else 0
        self._saved_at = self._clock()
        if self._path is None:
            return
        document = {
            "header": {name: getattr(self._header, name) for name in ScanHeader.__slots__},
            "done": sorted(self.done),
            "keys": {str(segment): _encoded(key) for segment, key in sorted(self._keys.items())},
            "scanned": self.scanned,
            "units": self.units,
            "output": output,
        }
        write_checkpoint(self._path, _KIND, document)

    def _load(self, document: Mapping[str, Any]) -> None:
        known = ScanHeader(**document["header"])
        differs = known.differences(self._header)
        if differs:
            message = (
                f"checkpoint {self._path}: is of a scan with another {', '.join(differs)}; give the same arguments, or "
                "another file to begin anew"
            )
            raise PacedWorkError(message)
        self.done = {int(segment) for segment in document["done"]}
        self._keys = {int(segment): _decoded(key) for segment, key in document["keys"].items()}
        self.scanned, self.units = int(document["scanned"]), float(document["units"])


def _encoded(value: Any) -> Any:
    """A key in what JSON has: bytes as base64."""
    if isinstance(value, bytes | bytearray):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, Mapping):
        return {name: _encoded(each) for name, each in value.items()}
    return [_encoded(each) for each in value] if isinstance(value, list) else value


def _decoded(value: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() == {"base64"}:
            return base64.b64decode(value["base64"])
        return {name: _decoded(each) for name, each in value.items()}
    return [_decoded(each) for each in value] if isinstance(value, list) else value
