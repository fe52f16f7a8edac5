"""`highwater pulses`: what a fleet reported, beside what CloudWatch counted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from highwater.cli.pulses import Minute, TargetPulses
from highwater.client.fleet import FleetTable
from highwater.core import Dimension
from highwater.core.names import leases_parameter
from highwater.core.pulses import SLOTS_PER_MINUTE, Slots, slot_at
from highwater.core.scaler import Observation
from tests.command import Command, refused
from tests.handlers.stage import Stage
from tests.memory_aws.stage import MINUTE

pytestmark = pytest.mark.xdist_group("cloud-scaler")
NOW = datetime(2027, 3, 4, 10, 20, 25, tzinfo=UTC)
PRESENT = int(NOW.timestamp()) // 60
WRITE = (None, Dimension.WRITE)


def _pulses(each_slot: int, counted: list[int | None], *, silent_slots: int = 0, minutes: int = 2) -> TargetPulses:
    """Pulses of so many units in each slot of the last five minutes, but none in the newest ones."""
    newest = slot_at(NOW)
    first = (PRESENT - 4) * SLOTS_PER_MINUTE
    length = newest + 1 - first
    consumed = [each_slot] * (length - silent_slots) + [None] * silent_slots
    refused_units = [0] * (length - silent_slots - 1) + [7] + [0] * silent_slots
    seen = Observation.of(PRESENT - 1, counted)
    return TargetPulses.of(WRITE, Slots(newest, consumed, refused_units), seen, NOW, minutes)


def test_minutes_have_what_was_reported_and_what_was_counted() -> None:
    found = _pulses(10, [40, 80, None])
    assert (found.target, found.coverage_percent) == ("table write", 100)
    start = NOW.replace(second=0)
    assert found.minutes == (Minute(start - MINUTE, 60, 0, None), Minute(start, 30, 7, None))
    assert _pulses(10, [40, 80, None], minutes=4).minutes[:2] == (
        Minute(start - 3 * MINUTE, 60, 0, 40),
        Minute(start - 2 * MINUTE, 60, 0, 80),
    )
    silent = _pulses(10, [60], silent_slots=9)
    assert silent.minutes == (Minute(start - MINUTE, None, 0, 60), Minute(start, None, 0, None))


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (_pulses(10, [60, 80]), "coverage: 85 % of what CloudWatch counted in 15 minutes"),
        (
            _pulses(1, [60, 60]),
            "coverage: 10 % of what CloudWatch counted in 15 minutes: below 25 %, so pulses cause raises and nothing "
            "else; meter more clients with highwater.pulse(session)",
        ),
        (
            _pulses(30, [60, 60]),
            "coverage: 300 % of what CloudWatch counted in 15 minutes; a client with grant_pulse reports units that "
            "were not consumed",
        ),
        (_pulses(10, [None]), "coverage: not known, as no minute has both pulses and a count of CloudWatch"),
    ],
)
def test_coverage_is_told_with_what_it_means(found: TargetPulses, said: str) -> None:
    assert list(found.lines(NOW)) == [said, "last report: 10:20:25 UTC, 0 s ago"]


def test_silence_is_told() -> None:
    found = _pulses(10, [60], silent_slots=14)
    assert list(found.lines(NOW))[1] == "last report: 10:18:10 UTC, 2 minutes ago"


@pytest.fixture
def fleet(stage: Stage) -> Iterator[Stage]:
    """The table of a coordinator of the stage's scaler."""
    dynamodb, ssm = stage.client("dynamodb"), stage.client("ssm")
    dynamodb.create_table(
        TableName="fleet",
        KeySchema=[{"AttributeName": "table", "KeyType": "HASH"}, {"AttributeName": "item", "KeyType": "RANGE"}],
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("table", "item")],
        BillingMode="PAY_PER_REQUEST",
    )
    ssm.put_parameter(Name=leases_parameter("scaler"), Type="String", Value="fleet")
    yield stage
    ssm.delete_parameter(Name=leases_parameter("scaler"))
    dynamodb.delete_table(TableName="fleet")


def test_command_shows_what_the_fleet_reported(fleet: Stage, highwater: Command) -> None:
    table = fleet.table()
    nothing = highwater("pulses", table)
    assert (nothing.returncode, nothing.stdout) == (
        1,
        f"{table}: nothing was reported in the last 20 minutes; meter its clients with highwater.pulse(session), and "
        "give their role grant_pulse\n",
    )
    fleet.write(table, 5)
    # the time at which CloudWatch has that minute
    fleet.cloud.advance(timedelta(minutes=4))
    minute = int(fleet.now().timestamp()) // 60
    written = (minute - 4) * SLOTS_PER_MINUTE
    of_fleet = FleetTable(fleet.client("dynamodb"), "fleet", table)
    of_fleet.add({(written, WRITE, False): 245.0, (written, ("by-day", Dimension.WRITE), True): 9.0})
    done = highwater("pulses", table, "--minutes", "6")
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.split() for line in done.stdout.splitlines() if line.strip()]
    at = datetime.fromtimestamp((minute - 4) * 60, UTC)
    assert lines[0] == [f"{table},", "table", "write"]
    assert lines[1] == ["coverage:", "50", "%", "of", "what", "CloudWatch", "counted", "in", "15", "minutes"]
    assert lines[2][:2] == ["last", "report:"]
    assert lines[3] == ["minute,", "UTC", "reported", "throttled", "CloudWatch"]
    assert [f"{at:%a}", f"{at:%H:%M}", "245", "0", "490"] in lines
    assert f"{table}, index 'by-day' write".split() in lines
    told = json.loads(highwater("pulses", table, "--minutes", "6", "--json").stdout)
    assert [(each["target"], each["coverage_percent"]) for each in told["targets"]] == [
        ("table write", 50),
        ("index 'by-day' write", None),
    ]
    of_minute = {
        "minute": at.isoformat(),
        "reported_units": 245,
        "throttled_units": 0,
        "cloudwatch_units": 490,
    }
    assert of_minute in told["targets"][0]["minutes"]


def test_table_without_a_coordinator_and_without_a_scaler_is_told(stage: Stage, highwater: Command) -> None:
    table = stage.table()
    assert refused(highwater("pulses", table)) == (
        f"highwater: {table}: its scaler has no BoostCoordinator, so there is nowhere to report pulses; add "
        "BoostCoordinator(stack, id, scaler=scaler), grant_pulse, and deploy"
    )
    assert refused(highwater("pulses", "nowhere")) == (
        "highwater: no scaler manages a table 'nowhere' in this region; list the managed tables with: highwater "
        "status, or give --region"
    )
    dublin = stage.elsewhere("eu-west-1")
    there = dublin.table()
    assert refused(highwater("pulses", there)) == (
        f"highwater: eu-west-1/{there}: a table in another region than its coordinator has no pulses"
    )
    dublin.forget()
