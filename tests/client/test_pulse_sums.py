"""What processes counted is what arrives, whatever is refused, answered late, told out of order or cut off."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from botocore.exceptions import ClientError, ReadTimeoutError
from hypothesis import event, given
from hypothesis import strategies as st

from highwater import Pulse
from highwater.core import Dimension
from tests.client.scripted import Nobody, driven_pulse

TARGETS = ((None, Dimension.READ), (None, Dimension.WRITE), ("by_day", Dimension.WRITE))
BEGAN = 1_795_436_760.0


class Fate(Enum):
    """What becomes of a write."""

    ARRIVES = "arrives"
    REFUSED = "refused"
    ANSWER_LOST = "answer lost"
    CUT_OFF = "cut off"
    FAILED = "failed"


class Table:
    """Adds up what arrives, by process."""

    def __init__(self) -> None:
        self.fate = Fate.ARRIVES
        self.sums: dict[str, float] = {}
        self.lost_answers = self.cut_off = 0.0

    def update_item(self, **request: Any) -> dict[str, Any]:
        if "ConditionExpression" in request:
            return {}
        names, values = request["ExpressionAttributeNames"], request["ExpressionAttributeValues"]
        amounts = {a: float(values[n.replace("#", ":")]["N"]) for n, a in names.items() if n.startswith("#a")}
        if self.fate is Fate.REFUSED:
            raise ClientError({"Error": {"Code": "ProvisionedThroughputExceededException"}}, "UpdateItem")
        if self.fate is Fate.FAILED:
            # DynamoDB may have written it or not
            self.cut_off += sum(amounts.values())
            where = {"HTTPStatusCode": 500}
            error: Any = {"Error": {"Code": "InternalServerError"}, "ResponseMetadata": where}
            raise ClientError(error, "UpdateItem")
        if self.fate is Fate.CUT_OFF:
            self.cut_off += sum(amounts.values())
            raise ReadTimeoutError(endpoint_url="")
        for name, units in amounts.items():
            self.sums[name] = self.sums.get(name, 0.0) + units
        if self.fate is Fate.ANSWER_LOST:
            self.lost_answers += sum(amounts.values())
            raise ReadTimeoutError(endpoint_url="")
        return {"Attributes": {name: {"N": str(units)} for name, units in self.sums.items()}}


@dataclass
class Process:
    """One process of the fleet, which counts by its own clock."""

    table: Table
    now: float
    counted: float = 0.0
    since_told: float = 0.0
    pulse: Pulse = field(init=False)

    def __post_init__(self) -> None:
        self.pulse = driven_pulse(self.table, Nobody(), lambda: self.now, _spread=0.5)

    def ask(self, target: int, units: float, *, refused: bool) -> None:
        self.pulse.counts.add("orders", int(self.now) // 10, TARGETS[target], units, refused=refused)
        self.counted += units

    def left(self) -> float:
        return sum(self.pulse.counts.peek("orders").values())


_step = st.tuples(
    st.integers(0, 2),  # which process
    st.integers(0, 2),  # which target
    st.integers(1, 400).map(lambda units: units / 2),
    st.booleans(),
    st.integers(0, 25),  # seconds until then
    st.sampled_from(Fate),
)


@given(st.lists(_step, max_size=40), st.lists(st.integers(-20, 20), min_size=3, max_size=3), st.sets(st.integers(0, 2)))
def test_each_unit_arrives_once_but_those_of_a_pulse_that_was_cut_off_and_the_last_of_a_killed_process(
    steps: list[tuple[int, int, float, bool, int, Fate]], skews: list[int], killed: set[int]
) -> None:
    table = Table()
    fleet = [Process(table, BEGAN + skew) for skew in skews]
    refused_since = 0
    for number, target, units, refused, seconds, fate in steps:
        for process in fleet:
            process.now += seconds
        # what is refused for over two minutes is old, and given up
        refused_since = refused_since + seconds if fate is Fate.REFUSED else 0
        table.fate = fate if refused_since < 90 else Fate.ARRIVES
        fleet[number].ask(target, units, refused=refused)
        for process in fleet:
            process.pulse.beat()
    table.fate = Fate.ARRIVES
    counted = sum(process.counted for process in fleet)
    lost = sum(process.left() for number, process in enumerate(fleet) if number in killed)
    for number, process in enumerate(fleet):
        if number not in killed:
            process.pulse.beat(is_last=True)
            assert process.left() == 0
    arrived = sum(table.sums.values())
    event("lost answers" if table.lost_answers else "all answered")
    assert arrived == counted - table.cut_off - lost


@given(st.permutations(range(6)), st.lists(st.integers(1, 90), min_size=6, max_size=6))
def test_the_order_in_which_processes_tell_does_not_matter(order: list[int], units: list[int]) -> None:
    def told(numbers: list[int]) -> dict[str, float]:
        table = Table()
        for number in numbers:
            process = Process(table, BEGAN + 7 * number)
            process.ask(number % 3, units[number], refused=number == 4)
            process.pulse.beat(is_last=True)
        return table.sums

    assert told(list(order)) == told(list(range(6)))
