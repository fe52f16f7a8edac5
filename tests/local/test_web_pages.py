"""What a page in a browser on the developer's machine may ask of the local cloud: nothing, unless it was named."""

from __future__ import annotations

import http.client
import json
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from highwater_lab.local import LocalCloud
from tests.local.world import keyed

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.xdist_group("web pages")
BROWSER = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no chromium on this machine; Debian's package has it")
FRIEND = "http://friend.example"
TABLE = {"TableName": "made-by-a-page", **keyed("id"), "BillingMode": "PAY_PER_REQUEST"}


class _Pages(BaseHTTPRequestHandler):
    """A web server whose every page is empty."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>page</title>")

    def log_message(self, *_: Any) -> None:
        """Nothing on the terminal."""


@pytest.fixture(scope="module")
def pages() -> Iterator[int]:
    """The port of a web server on loopback."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Pages)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def cloud(pages: int) -> Iterator[LocalCloud]:
    with LocalCloud(allowed_origins=(f"{FRIEND}:{pages}",)) as running:
        yield running


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # names that somebody else owns and that resolve to loopback
        rules = "--host-resolver-rules=MAP *.example 127.0.0.1"
        # browsers may ask before a page reaches loopback; here nothing but the cloud is in the way
        direct = "--disable-features=LocalNetworkAccessChecks,BlockInsecurePrivateNetworkRequests"
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", rules, direct])
        yield browser.new_page()
        browser.close()


def _ask(
    cloud: LocalCloud, method: str, path: str, headers: dict[str, str], body: bytes = b""
) -> tuple[int, str, dict[str, str]]:
    connection = http.client.HTTPConnection("127.0.0.1", cloud.port, timeout=30)
    connection.putrequest(method, path, skip_host=True)
    for name, value in ({"Content-Length": str(len(body))} | headers).items():
        connection.putheader(name, value)
    connection.endheaders(body)
    answer = connection.getresponse()
    found = answer.status, answer.read().decode(), {name.lower(): value for name, value in answer.getheaders()}
    connection.close()
    return found


def _message(answer: tuple[int, str, dict[str, str]]) -> str:
    status, body, headers = answer
    assert status == 403
    assert not any(name.startswith("access-control-") for name in headers)
    return str(json.loads(body)["message"])


@pytest.mark.parametrize(
    "host", ["evil.example:{port}", "localhost:1", "localhost", "127.0.0.1.evil.example:{port}", ""]
)
def test_host_must_be_loopback_with_the_clouds_port(cloud: LocalCloud, host: str) -> None:
    shown = host.format(port=cloud.port)
    assert _message(_ask(cloud, "GET", "/_highwater/status", {"Host": shown})) == (
        f"refused: Host is {shown!r}; expected localhost, 127.0.0.1 or [::1] with port {cloud.port}"
    )


@pytest.mark.parametrize("name", ["localhost", "LOCALHOST", "127.0.0.1", "[::1]", "bucket.s3.localhost"])
def test_every_name_of_loopback_will_do(cloud: LocalCloud, name: str) -> None:
    assert _ask(cloud, "GET", "/_highwater/status", {"Host": f"{name}:{cloud.port}"})[0] == 200


def test_request_without_a_host_is_refused(cloud: LocalCloud) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", cloud.port, timeout=30)
    connection.putrequest("GET", "/_highwater/status", skip_host=True)
    connection.endheaders()
    assert connection.getresponse().status in (400, 403)
    connection.close()


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:1", "https://localhost:{port}"])
def test_pages_of_other_origins_are_refused(cloud: LocalCloud, origin: str) -> None:
    shown = origin.format(port=cloud.port)
    headers = {"Host": f"localhost:{cloud.port}", "Origin": shown}
    assert _message(_ask(cloud, "POST", "/", headers)) == (
        f"refused: Origin is {shown!r}; a page may call this cloud only with --allow-origin"
    )


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_pictures_and_scripts_of_other_pages_are_refused(cloud: LocalCloud, site: str) -> None:
    headers = {"Host": f"localhost:{cloud.port}", "Sec-Fetch-Site": site}
    assert _message(_ask(cloud, "GET", "/?Action=ListTopics", headers)) == (
        f"refused: Sec-Fetch-Site is {site!r}; a page of another origin may not call this cloud"
    )


def test_answers_have_no_cors_headers(cloud: LocalCloud) -> None:
    status, _, headers = _ask(cloud, "GET", "/bucket-that-is-not-there", {"Host": f"localhost:{cloud.port}"})
    assert status == 404
    assert not any(name.startswith("access-control-") for name in headers)


@pytest.mark.parametrize(("method", "command"), [("GET", "speed"), ("GET", "advance"), ("POST", "status")])
def test_commands_take_the_method_that_fits(cloud: LocalCloud, method: str, command: str) -> None:
    wanted = "POST" if method == "GET" else "GET"
    status, body, _ = _ask(cloud, method, f"/_highwater/{command}", {"Host": f"localhost:{cloud.port}"}, b"{}")
    assert (status, json.loads(body)) == (405, {"message": f"{command} wants {wanted}"})


def test_page_that_was_named_is_told_so(cloud: LocalCloud, pages: int) -> None:
    friend = f"{FRIEND}:{pages}"
    headers = {"Host": f"localhost:{cloud.port}", "Origin": friend, "Sec-Fetch-Site": "cross-site"}
    status, _, told = _ask(cloud, "GET", "/_highwater/status", headers)
    assert (status, told["access-control-allow-origin"]) == (200, friend)
    asked = headers | {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "x-amz-target"}
    status, _, told = _ask(cloud, "OPTIONS", "/", asked)
    assert (status, told["access-control-allow-headers"]) == (204, "x-amz-target")


# asks in each way that needs no leave of the cloud, and in the one that does; tells which of them were answered
ATTACK = """
async ([cloud, table]) => {
  const aws = {"x-amz-target": "DynamoDB_20120810.CreateTable", "content-type": "application/x-amz-json-1.0"};
  const told = [];
  const attempt = async (name, path, options) => {
    try {
      const answer = await fetch(cloud + path, options);
      told.push(name + " " + (answer.type === "opaque" ? "sent" : answer.status));
    } catch (refused) {
      told.push(name + " refused");
    }
  };
  await attempt("aws", "/", {method: "POST", headers: aws, body: table});
  await attempt("plain", "/_highwater/speed", {method: "POST", mode: "no-cors", body: '{"speed": 77}'});
  await attempt("get", "/_highwater/speed", {mode: "no-cors"});
  await attempt("invoke", "/2015-03-31/functions", {method: "POST", mode: "no-cors", body: "{}"});
  return told;
}
"""


@needs_browser
def test_page_on_another_name_of_loopback_can_do_nothing(cloud: LocalCloud, page: Page, pages: int) -> None:
    page.goto(f"http://evil.example:{pages}/")
    told = page.evaluate(ATTACK, [cloud.endpoint, json.dumps(TABLE)])
    assert told == ["aws refused", "plain sent", "get sent", "invoke sent"], "a page cannot read what it was answered"
    assert cloud.status().speed == 1
    assert cloud.client("dynamodb").list_tables()["TableNames"] == []


@needs_browser
def test_page_whose_name_was_rebound_to_loopback_can_do_nothing(cloud: LocalCloud, page: Page) -> None:
    """After DNS rebinding the attacker's name is of the same origin as the cloud, and no CORS rule applies."""
    answer = page.goto(f"http://evil.example:{cloud.port}/_highwater/status")
    assert answer is not None
    assert answer.status == 403
    told = page.evaluate(ATTACK, [f"http://evil.example:{cloud.port}", json.dumps(TABLE)])
    assert told == ["aws 403", "plain 403", "get 403", "invoke 403"]
    assert cloud.status().speed == 1
    assert cloud.client("dynamodb").list_tables()["TableNames"] == []


@needs_browser
def test_page_that_was_named_can_use_the_cloud(cloud: LocalCloud, page: Page, pages: int) -> None:
    page.goto(f"{FRIEND}:{pages}/")
    told = page.evaluate(ATTACK, [cloud.endpoint, json.dumps(TABLE)])
    assert told[0] == "aws 200"
    dynamodb = cloud.client("dynamodb")
    assert dynamodb.list_tables()["TableNames"] == [TABLE["TableName"]]
    dynamodb.delete_table(TableName=TABLE["TableName"])
    cloud.run_at(1)
