"""The planner's server over real HTTP: what it answers, and what it refuses to whom."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import threading
from collections.abc import Iterator, Mapping

import pytest

from highwater_lab.plan.engine import Engine
from highwater_lab.plan.server import PlannerServer
from highwater_lab.services.prices import load_prices
from tests.command import Command, refused
from tests.plan.test_engine import ENGINE, WRITES, proposal
from tests.ports import free_port
from tests.simulation.tables import writes

JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def server() -> Iterator[PlannerServer]:
    with PlannerServer(ENGINE) as serving:
        threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield serving
        serving.shutdown()


def _ask(
    server: PlannerServer,
    place: str = "",
    body: bytes | None = None,
    headers: Mapping[str, str] = JSON,
    token: str | None = None,
) -> tuple[int, Mapping[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    method = "GET" if body is None else "POST"
    connection.request(method, f"/{server.token if token is None else token}/{place}", body, dict(headers))
    response = connection.getresponse()
    answer = response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
    connection.close()
    return answer


def _refusal(answer: tuple[int, Mapping[str, str], bytes]) -> tuple[int, str]:
    status, headers, body = answer
    assert headers["content-type"] == "application/json"
    return status, json.loads(body)["error"]


def test_page_loads_nothing_and_asks_nobody_but_its_server(server: PlannerServer) -> None:
    status, headers, body = _ask(server)
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    policy = re.search('Content-Security-Policy" content="(.*?)"', body.decode())
    assert policy is not None
    assert policy[1] == (
        "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; connect-src 'self'"
    )
    assert headers["content-security-policy"] == "frame-ancestors 'none'"
    assert (headers["referrer-policy"], headers["cache-control"]) == ("no-referrer", "no-store")
    assert b"@@" not in body


def test_opening_and_answers_are_the_engines(server: PlannerServer) -> None:
    opening = ENGINE.opening()
    assert json.loads(_ask(server, "opening")[2]) == json.loads(json.dumps(opening))
    status, _, body = _ask(server, "simulate", json.dumps(proposal()).encode())
    assert (status, json.loads(body)) == (200, json.loads(json.dumps(ENGINE.answer(proposal()))))


def test_plan_that_cannot_work_is_refused_with_its_line(server: PlannerServer) -> None:
    wrong = proposal(write=WRITES | {"max_capacity": 40_001})
    status, line = _refusal(_ask(server, "simulate", json.dumps(wrong).encode()))
    assert (status, line) == (
        422,
        "plan: table write max_capacity: got 40001, allowed: up to 40000, the account's quota for a table or "
        "index; lower the value, or request a higher quota from AWS and give it as table_quota_units "
        "[highwater:aboveQuota]",
    )


def test_address_without_its_secret_shows_nothing(server: PlannerServer) -> None:
    line = "no such page; open the address that highwater plan prints"
    for token in ("", "x", server.token[:-1], server.token.swapcase()):
        assert _refusal(_ask(server, token=token)) == (404, line)
        assert _refusal(_ask(server, "simulate", b"{}", token=token)) == (404, line)
    for path in (b"*", b"/", b"/" + "é".encode() + b"/opening", b"http://x", server.token.encode()):
        with socket.create_connection(("127.0.0.1", server.server_port), timeout=30) as raw:
            raw.sendall(b"GET " + path + b" HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % server.server_port)
            assert raw.makefile("rb").read().endswith(json.dumps({"error": line}).encode())


def test_page_that_is_closed_before_its_answer_leaves_nothing_on_the_terminal(
    server: PlannerServer, capfd: pytest.CaptureFixture[str]
) -> None:
    for error in (BrokenPipeError(), ConnectionResetError(), KeyError("unforeseen")):
        try:
            raise error
        except (OSError, KeyError):
            server.handle_error(None, ("127.0.0.1", 7))
    said = capfd.readouterr().err
    assert "KeyError: 'unforeseen'" in said
    assert "Pipe" not in said
    assert "Reset" not in said


def test_other_pages_of_the_planner_are_not_there(server: PlannerServer) -> None:
    line = "no page '../x'; open the address that highwater plan prints"
    assert _refusal(_ask(server, "../x")) == (404, line)
    line = "nothing to post to 'opening'; plans are posted to 'simulate'"
    assert _refusal(_ask(server, "opening", b"{}")) == (404, line)


def test_name_that_resolves_to_this_machine_is_refused(server: PlannerServer) -> None:
    port = server.server_port
    own = f"127.0.0.1:{port} or localhost:{port}"
    line = f"Host: got 'evil.example:{port}', allowed: {own}"
    assert _refusal(_ask(server, headers={"Host": f"evil.example:{port}"})) == (403, line)
    assert _refusal(_ask(server, "simulate", b"{}", JSON | {"Host": f"evil.example:{port}"})) == (403, line)
    assert _refusal(_ask(server, headers={"Host": "127.0.0.1"})) == (403, f"Host: got '127.0.0.1', allowed: {own}")
    assert _ask(server, headers={"Host": f"localhost:{port}"})[0] == 200


def test_script_of_another_site_is_refused(server: PlannerServer) -> None:
    line = "Origin: got 'http://evil.example', allowed: the planner's own page"
    assert _refusal(_ask(server, "simulate", b"{}", JSON | {"Origin": "http://evil.example"})) == (403, line)
    form = {"Content-Type": "text/plain"}
    line = "Content-Type: got 'text/plain', allowed: application/json"
    assert _refusal(_ask(server, "simulate", b"{}", form)) == (415, line)


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 60_000, b"9" * 5_000])
def test_body_that_is_not_json_is_refused(server: PlannerServer, body: bytes) -> None:
    line = "body: is not JSON; send a plan as a JSON object"
    assert _refusal(_ask(server, "simulate", body)) == (400, line)


@pytest.mark.parametrize(
    ("length", "status", "line"),
    [
        ("65537", 413, "body: got 65537 bytes, allowed: up to 65,536"),
        ("9" * 5_000, 413, f"body: got {'9' * 5_000} bytes, allowed: up to 65,536"),
        ("-1", 411, "Content-Length: got '-1', allowed: a number of bytes"),
        ("²", 411, "Content-Length: got '²', allowed: a number of bytes"),
    ],
)
def test_body_of_a_bad_or_too_great_length_is_not_read(
    server: PlannerServer, length: str, status: int, line: str
) -> None:
    assert _refusal(_ask(server, "simulate", b"{}", JSON | {"Content-Length": length})) == (status, line)


def test_two_planners_have_two_secrets() -> None:
    engine = Engine(traffic=writes(70), prices=load_prices())
    with PlannerServer(engine) as one, PlannerServer(engine) as other:
        assert one.token != other.token
        assert len(one.token) == 32


def test_command_serves_until_it_is_interrupted(command: Command) -> None:
    run = command.start("plan", "--scenario", "step", "--no-browser")
    assert run.stdout is not None
    url = run.stdout.readline().strip()
    found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)(/[\w-]{32}/)", url)
    assert found is not None
    connection = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=30)
    connection.request("GET", found[2] + "opening")
    assert json.loads(connection.getresponse().read())["name"] == "step"
    connection.close()
    run.send_signal(signal.SIGINT)
    assert run.communicate(timeout=30) == ("", "Ctrl-C ends the page\n")
    assert run.returncode == 0


def test_command_refuses_with_one_line(command: Command) -> None:
    zone = ("plan", "--scenario", "step", "--timezone", "Berlin")
    assert refused(command(*zone)) == (
        "highwater plan: --timezone: unknown timezone 'Berlin'; use an IANA name such as 'Europe/Berlin'"
    )
    assert refused(command("plan")) == (
        "highwater plan: give the traffic with exactly one of --traffic FILE, --scenario NAME and --live-table NAME"
    )
    with PlannerServer(ENGINE, free_port()) as taken:
        port = str(taken.server_port)
        assert refused(command("plan", "--scenario", "step", "--port", port)) == (
            f"highwater plan: --port {port}: cannot be used: Address already in use; leave it out for one that is free"
        )
