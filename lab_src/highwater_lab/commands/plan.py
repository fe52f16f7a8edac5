"""`highwater plan`: drag a plan over its traffic, on a page of this machine."""

from __future__ import annotations

import threading
import webbrowser

import click

from highwater.cli.terminal import say, stopped_by_signals
from highwater_lab.commands.options import Misuse, check_places, misuse_of_errors, table_quota_option, timezone_option
from highwater_lab.commands.traffic_source import TrafficSource, tell_notes, traffic_options
from highwater_lab.plan.engine import Engine
from highwater_lab.plan.server import PlannerServer
from highwater_lab.traffic import write_traffic


@click.command("plan", short_help="Drag a plan over its traffic, and copy the code.")
@traffic_options
@timezone_option
@table_quota_option
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port of the page. [default: one that is free]")
@click.option("--no-browser", is_flag=True, help="Print the page's address, and do not open it.")
def plan_command(source: TrafficSource, timezone: str, table_quota: int, port: int, no_browser: bool) -> None:
    """Show the traffic on a page where floor, ceiling, target utilization, windows and a boost are dragged.

    Each change is simulated, and throttled units, dollars and code follow. The page is served on 127.0.0.1 only, at an
    address that holds a secret, and sends nothing elsewhere. Ctrl-C ends it.

    \b
    highwater plan --scenario daily
    highwater plan --live-table orders --days 14 --timezone America/New_York
    highwater plan --traffic orders.csv --port 8080 --no-browser

    Exit status: 0 ended by Ctrl-C, 2 misuse.
    """  # noqa: D301 - a real backspace character, after which click keeps the line breaks
    check_places(source.inputs, {"--save": source.save})
    with misuse_of_errors():
        traffic = source.read_traffic()
        engine = Engine(
            traffic=traffic,
            prices=source.load_prices(),
            timezone=timezone,
            timing=source.timing(),
            table_quota_units=table_quota,
        )
        if source.save is not None:
            write_traffic(traffic, source.save)
    try:
        server = PlannerServer(engine, port)
    except OSError as error:
        raise Misuse(f"--port {port}: cannot be used: {error.strerror}; leave it out for one that is free") from error
    tell_notes(traffic)
    ended = threading.Event()
    with server, stopped_by_signals(ended.set):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        say(server.url)
        say("Ctrl-C ends the page", err=True)
        if not no_browser:
            webbrowser.open(server.url)
        ended.wait()
        server.shutdown()
