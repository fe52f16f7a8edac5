"""The Python worker of Lambda functions: the cloud's time in `time` and `datetime`, and `logging` in the log."""

from __future__ import annotations

from typing import Final

from highwater_local import ministack

# A function's timeout is in the cloud's time; on a slow machine the run may take this many times as long in real time
PATIENCE: Final = 20
_TIME_PROLOGUE: Final = """
import concurrent.futures, http.client as _hw_http, json as _hw_json, os as _hw_os, queue, sys as _hw_sys
import time as _hw_time
import time_machine as _hw_machine

class _HwTime:
    def __init__(self):
        self.traveller = None
        self.at, self.ahead_ns = 0.0, 0
        self.request, self.deadline = "", None
        self.real_ns = _hw_time.monotonic_ns
        self.began_ns = self.seen_ns = self.real_ns()

    def begin(self, ctx):
        self.request = ctx.get("request_id", "")
        seconds = ctx.get("timeout_ms", 3000) / 1000 / __PATIENCE__
        _hw_os.environ["_LAMBDA_TIMEOUT"] = str(seconds)
        self.go_to(self.ask("GET", "time"))
        # between two runs it moves by real time, as clients may poll a function while a driven clock stands still
        self.began_ns += self.real_ns() - self.seen_ns
        self.deadline = self.at + seconds

    def ask(self, method, command, **members):
        cloud = _hw_http.HTTPConnection("127.0.0.1", __PORT__)
        cloud.request(method, "/_highwater/" + command, _hw_json.dumps(members) if members else None)
        answer = cloud.getresponse()
        answered = _hw_json.loads(answer.read())
        cloud.close()
        if answer.status != 200:
            raise RuntimeError(answered["message"])
        return answered["timestamp"]

    def go_to(self, now):
        if self.traveller is None:
            self.traveller = _hw_machine.travel(now, tick=__TICKS__).start()
        else:
            self.ahead_ns += round(max(now - self.at, 0.0) * 10**6) * 1000
            self.traveller.move_to(now, tick=__TICKS__)
        self.at = now

    def monotonic_ns(self):
        # a driven clock stands still while the function works, but an event loop needs one that moves while it waits
        loops = _hw_sys.modules.get("asyncio")
        self.seen_ns = self.real_ns()
        is_moving = __TICKS__ or (loops is not None and loops._get_running_loop() is not None)
        return (self.seen_ns if is_moving else self.began_ns) + self.ahead_ns

    def wait(self, seconds):
        # rounded up to the clock's microseconds: what sleeps until a time would else sleep again, or for ever
        seconds = -(-seconds * 10**6 // 1) / 10**6
        self.go_to(self.ask("POST", "wait", seconds=seconds, request=self.request))

    def sleep(self, seconds):
        if seconds < 0:
            raise ValueError("sleep length must be non-negative")
        left = None if self.deadline is None else self.deadline - _hw_time.time()
        if left is None or seconds <= left:
            self.wait(seconds)
            return
        self.wait(max(left, 0))
        text = f"Task timed out after {float(_hw_os.environ['_LAMBDA_TIMEOUT']):.2f} seconds"
        _hw_os.write(1, (_hw_json.dumps({"status": "error", "error": text}) + chr(10)).encode())
        _hw_os._exit(1)

_hw = _HwTime()
_hw.go_to(_hw.ask("GET", "time"))
_hw_time.sleep = _hw.sleep
_hw_time.monotonic = lambda: _hw.monotonic_ns() / 10**9
_hw_time.monotonic_ns = _hw.monotonic_ns
"""


def give_cloud_time(port: int, *, is_driven: bool) -> None:
    """Make functions in Python use the time of the cloud at *port* from now on."""
    prologue = _TIME_PROLOGUE.replace("__PORT__", str(port)).replace("__PATIENCE__", str(PATIENCE))
    _add(prologue.replace("__TICKS__", str(not is_driven)), "_hw.begin(_ms_ctx)")


def _add(prologue: str, statement: str) -> None:
    """Run *prologue* when a worker starts, and *statement* when an invocation begins."""
    line = ministack.PYTHON_WORKER_CONTEXT
    script: str = ministack.PYTHON_WORKER.now
    ministack.PYTHON_WORKER.replace(prologue + script.replace(line, f"{line}\n        {statement}"))


_LOG_PROLOGUE: Final = """
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


def log_as_lambda_does() -> None:
    """Make functions in Python log as in Lambda from now on."""
    _add(_LOG_PROLOGUE, '_hw_handler.request = _ms_ctx.get("request_id", "")')
