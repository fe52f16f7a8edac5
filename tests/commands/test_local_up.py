"""Whatever becomes of `highwater local up` or of its server: no server is left that nobody knows of."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from highwater_lab.local.process import HeldPort
from tests.command import Command
from tests.ports import servers

pytestmark = pytest.mark.cloud

Begin = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture(autouse=True)
def begin(tmp_path: Path) -> Iterator[Begin]:
    """Start `highwater local`, with a home of its own unless another is given; ends what is left of it."""
    homes = {tmp_path}

    def start(*arguments: str, home: Path = tmp_path) -> subprocess.Popen[str]:
        homes.add(home)
        home.mkdir(exist_ok=True)
        return Command(home).start("local", *arguments)

    yield start
    for home in homes:
        for pid in servers(home):
            os.killpg(pid, signal.SIGKILL)


def _end(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    said, wrong = process.communicate(timeout=120)
    return process.returncode, said, wrong


def _run(command: Command, *arguments: str) -> tuple[int, str, str]:
    done = command("local", *arguments)
    return done.returncode, done.stdout, done.stderr


def _await(condition: Callable[[], object]) -> None:
    """Return once the condition holds; the test's time limit ends a wait that is in vain."""
    while not condition():
        os.sched_yield()


def _state(home: Path) -> Path:
    return home / ".local" / "state" / "highwater"


MOMENTS: dict[str, Callable[[Path], object]] = {
    "claimed": lambda home: (_state(home) / "local-cloud.lock").exists(),
    "started": servers,
    "noted": lambda home: (_state(home) / "local-cloud.json").exists(),
}


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_up_that_is_interrupted_leaves_no_server_that_down_does_not_end(
    begin: Begin, command: Command, tmp_path: Path, number: signal.Signals, moment: str
) -> None:
    process = begin("up", "--port", "0")
    _await(lambda: MOMENTS[moment](tmp_path))
    process.send_signal(number)
    status, _, wrong = _end(process)
    assert "Traceback" not in wrong
    assert status in (0, 130, -number), "0 where it had ended before"
    status, said, wrong = _run(command, "down")
    if status == 0:
        assert said.startswith("stopped the local cloud at http://localhost:")
    else:
        assert status == 2
        assert wrong.startswith("highwater local: no local cloud is running")
    _await(lambda: not servers(tmp_path))


def test_of_two_ups_at_once_one_starts_and_the_other_is_told_of_it(
    begin: Begin, command: Command, tmp_path: Path
) -> None:
    ended = sorted(_end(process) for process in [begin("up", "--port", "0", "--json") for _ in range(2)])
    assert [status for status, _, _ in ended] == [0, 2]
    started = json.loads(ended[0][1])
    assert ended[1][2] == (
        f"highwater local: a local cloud is already running at {started['endpoint']} (process {started['pid']}); stop "
        "it with: highwater local down\n"
    )
    assert servers(tmp_path) == {started["pid"]}
    assert json.loads(_run(command, "status", "--json")[1])["pid"] == started["pid"]


def test_of_two_users_at_one_port_one_is_refused(begin: Begin, tmp_path: Path) -> None:
    with HeldPort() as held:
        port = held.port
    homes = [tmp_path / "ada", tmp_path / "grace"]
    ended = sorted(
        _end(process) for process in [begin("up", "--port", str(port), "--json", home=home) for home in homes]
    )
    assert [status for status, _, _ in ended] == [0, 2]
    assert ended[1][2] == f"highwater local: port {port} is in use; choose another\n"
    assert {pid for home in homes for pid in servers(home)} == {json.loads(ended[0][1])["pid"]}


def test_down_and_status_wait_for_a_cloud_that_is_being_started(begin: Begin, command: Command, tmp_path: Path) -> None:
    up = begin("up", "--port", "0", "--json")
    _await(lambda: servers(tmp_path))
    status = _run(command, "status", "--json")
    down = _run(command, "down")
    endpoint = json.loads(_end(up)[1])["endpoint"]
    assert json.loads(status[1])["endpoint"] == endpoint
    assert down[:2] == (0, f"stopped the local cloud at {endpoint}\n")
    assert not servers(tmp_path)


def test_after_a_kill_each_command_says_what_is_gone(command: Command, tmp_path: Path) -> None:
    first = json.loads(_run(command, "up", "--port", "0", "--json")[1])

    os.killpg(first["pid"], signal.SIGKILL)
    _await(lambda: not servers(tmp_path))
    gone = (
        f"the one at {first['endpoint']} (process {first['pid']}) ended without highwater local down, and its tables "
        "are gone"
    )
    assert _run(command, "status") == (
        2,
        "",
        f"highwater local: no local cloud is running: {gone}; start one with: highwater local up\n",
    )
    status, said, wrong = _run(command, "up", "--port", "0", "--json")
    assert (status, wrong) == (0, f"highwater local: {gone}\n")
    assert json.loads(said)["tables"] == 0
    _run(command, "down")
    assert _run(command, "status")[2] == (
        "highwater local: no local cloud is running; start one with: highwater local up\n"
    )
