"""Exports of tables to S3: MiniStack describes them, and here are their conditions and the objects that they write.

An export has the items of the moment at which it is asked for, not those of its `ExportTime`: this cloud keeps no
earlier items. It is complete a second later, when it is described. Incremental exports and Amazon Ion write no objects.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable
from datetime import datetime
from typing import Final

from highwater_local import ministack
from highwater_local.ministack import Answer, Document, error_answer

_NO_RECOVERY: Final = "PointInTimeRecoveryUnavailableException"
_BAD_TIME: Final = "InvalidExportTimeException"


class Exports:
    """Wraps MiniStack's exports as soon as this is created; *now* returns the cloud's time."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        ministack.export_table.wrap(self.export)

    def export(self, own: Callable[[Document], Answer], request: Document) -> Answer:
        """ExportTableToPointInTime: rejected without point-in-time recovery, else accepted, and the objects written."""
        table = ministack.find_table(request.get("TableArn"))
        if table is None:
            return own(request)
        name = str(table["TableName"])
        if not ministack.has_recovery(name):
            return error_answer(_NO_RECOVERY, f"Point in time recovery is not enabled for table '{name}'")
        at = request.get("ExportTime")
        if at is not None and float(at) > self._now().timestamp():
            text = "The specified ExportTime is outside of the point in time recovery window."
            return error_answer(_BAD_TIME, text)
        answer = own(request)
        kind = (request.get("ExportFormat", "DYNAMODB_JSON"), request.get("ExportType", "FULL_EXPORT"))
        if answer[0] < 400 and kind == ("DYNAMODB_JSON", "FULL_EXPORT"):
            _write(ministack.export_of(json.loads(answer[2])["ExportDescription"]["ExportArn"]), table)
        return answer


def _write(export: Document, table: Document) -> None:
    """Write the objects of a full export: a file of items, the list of files, and the summary; else it has failed.

    Source: Amazon DynamoDB Developer Guide, "DynamoDB table export output format", read 2026-11.
    """
    folder = "/".join(filter(None, (export.get("S3Prefix"), "AWSDynamoDB", export["ExportArn"].rpartition("/")[2])))
    items = [item for group in table["items"].values() for item in group.values()]
    lines = "".join(json.dumps({"Item": item}, separators=(",", ":")) + "\n" for item in items)
    data = f"{folder}/data/{hashlib.sha256(lines.encode()).hexdigest()[:26]}.json.gz"
    listed = {"itemCount": len(items), "dataFileS3Key": data}
    summary = {
        "version": "2020-06-30",
        "exportArn": export["ExportArn"],
        "tableArn": export["TableArn"],
        "tableId": export["TableId"],
        "s3Bucket": export["S3Bucket"],
        "manifestFilesS3Key": f"{folder}/manifest-files.json",
        "itemCount": len(items),
        "outputFormat": "DYNAMODB_JSON",
    }
    objects = {
        data: gzip.compress(lines.encode(), mtime=0),
        f"{folder}/manifest-files.json": json.dumps(listed).encode() + b"\n",
        f"{folder}/manifest-summary.json": json.dumps(summary).encode(),
    }
    statuses = [ministack.put_object(export["S3Bucket"], key, body, {})[0] for key, body in objects.items()]
    if max(statuses) >= 400:
        export |= {"ExportStatus": "FAILED", "FailureCode": "S3NoSuchBucket"}
