"""Lambda freezes a process between invocations, and restores others from a snapshot of one: by a driven clock."""

from __future__ import annotations

from typing import Any

from highwater.core.pulses import pulse_partition, pulse_sort_key
from tests.client.scripted import driven_pulse
from tests.client.test_pulse import BEGAN, WRITE, Coordinator, Process, Table

FROZEN_SECONDS = 600


def _told(table: Table, at: float) -> dict[str, float]:
    """The amounts in the item of that second's minute, by attribute."""
    item = table.items.get((pulse_partition("orders"), pulse_sort_key(int(at) // 60)), {})
    return {name: float(value["N"]) for name, value in item.items() if name[1].isdigit()}


def test_what_was_counted_before_a_freeze_is_told_after_it_for_its_own_slot() -> None:
    process = Process()
    process.now = BEGAN + 120
    process.pulse.counts.add("orders", int(process.now) // 10, WRITE, 37)
    process.now += FROZEN_SECONDS
    process.ask(5)
    process.told_all()
    assert _told(process.table, BEGAN + 120) == {"c0w": 37}
    assert _told(process.table, BEGAN + 120 + FROZEN_SECONDS) == {"c0w": 5}


def test_help_of_a_process_that_freezes_before_it_wakes_the_scaler_comes_from_another_in_the_next_slot() -> None:
    table = Table()
    elected, other = Process(table), Process(table)
    woken_meanwhile: list[list[str]] = []

    def freeze(_: float) -> None:
        other.now = elected.now
        other.surge(seconds=20)
        woken_meanwhile.append([*other.coordinator.woken])
        elected.now += FROZEN_SECONDS

    elected.pulse.pause = freeze
    while not woken_meanwhile:
        elected.ask(900, seconds=1)
    assert woken_meanwhile[0] == ["pulse orders"] * len(woken_meanwhile[0])
    assert woken_meanwhile[0], "while the elected one is frozen"
    assert elected.coordinator.woken == ["pulse orders"], "its own request goes out when it thaws, and finds help there"


def test_function_that_is_restored_from_a_snapshot_has_a_spread_and_a_connection_of_its_own() -> None:
    first, second = Table(), Table()
    connected: list[Any] = []
    now = [BEGAN]

    def connect() -> tuple[Any, Any]:
        connected.append(second)
        return second, Coordinator()

    pulse = driven_pulse(first, Coordinator(), lambda: now[0], connect=connect, has_thread=False, _spread=0.5)

    def ask(units: float) -> None:
        pulse.counts.add("orders", int(now[0]) // 10, WRITE, units)
        pulse.beat()
        now[0] += 60
        pulse.beat()

    ask(11)
    # made before the snapshot, and so the same in all that are restored from it
    pulse.counts.add("orders", int(now[0]) // 10, WRITE, 500)
    pulse.begin_anew()
    assert (connected, pulse._spread) == ([], None)
    now[0] += FROZEN_SECONDS
    restored_at = now[0]
    ask(23)
    assert connected == [second]
    assert pulse._spread not in (None, 0.5)
    assert (sum(_told(first, BEGAN).values()), _told(second, restored_at)) == (11, {"c0w": 23})
    assert len(second.items) == 1
