"""What Python's `logging` writes in a function, which Lambda's runtime puts into the function's log.

Lambda's runtime gives the root logger a handler before it imports the function, with the level WARNING and lines of
level, time, request and message, divided by tabs ("Log and monitor Python Lambda functions", AWS Lambda Developer
Guide, read 2026-11). MiniStack's runtime does not, so that a function's own lines would be lost.
"""

from __future__ import annotations

from typing import Final

from highwater_local import ministack

_PROLOGUE: Final = """
import logging as _hw_logging, sys as _hw_sys, time as _hw_time

class _HwHandler(_hw_logging.StreamHandler):
    request = ""

    def format(self, record):
        at = _hw_time.strftime("%Y-%m-%dT%H:%M:%S", _hw_time.gmtime(record.created))
        text = record.getMessage()
        if record.exc_info:
            text += chr(10) + _hw_logging.Formatter().formatException(record.exc_info)
        return chr(9).join((f"[{record.levelname}]", f"{at}.{int(record.msecs):03}Z", self.request, text))

_hw_handler = _HwHandler(_hw_sys.stderr)
_hw_logging.getLogger().addHandler(_hw_handler)
"""
_NOTE_REQUEST: Final = """
        _hw_handler.request = _ms_ctx.get("request_id", "")"""


def log_as_lambda_does() -> None:
    """Have functions in Python log like that from now on."""
    line = ministack.PYTHON_WORKER_CONTEXT
    script: str = ministack.PYTHON_WORKER.now
    ministack.PYTHON_WORKER.replace(_PROLOGUE + script.replace(line, line + _NOTE_REQUEST))
