"""What AWS answers late or not at all: a role, a floor that was just set, the lowest floor; and who sends pulses."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest

import highwater
from acceptance.parts.functions import _Caller
from acceptance.report import Check
from acceptance.tables import LowestFloor, read_floor
from highwater import CoordinatorClient
from highwater.core import Dimension
from highwater.core.names import TargetName
from tests.acceptance.fake_place import FakePlace, refusal, stage_of

NAME = TargetName("orders", None, Dimension.WRITE)


class _Spreading:
    """STS, which refuses a role until a time; CloudFormation, with a coordinator's outputs; an endpoint of DynamoDB."""

    def __init__(self, place: FakePlace, seconds: int, code: str = "AccessDenied") -> None:
        self.place, self.code = place, code
        self.from_then = place.at + timedelta(seconds=seconds)
        self.meta = boto3.client("dynamodb", region_name="eu-west-1").meta

    def assume_role(self, RoleArn: str, RoleSessionName: str) -> dict[str, Any]:
        assert (RoleArn, RoleSessionName) == ("arn:caller", "highwater-acceptance")
        if self.place.at < self.from_then:
            raise refusal(self.code, "not yet", "AssumeRole")
        return {"Credentials": {"AccessKeyId": "A", "SecretAccessKey": "B", "SessionToken": "C"}}

    def describe_stacks(self, StackName: str) -> dict[str, Any]:
        assert StackName.endswith("-Boosts")
        outputs = {"CallerRole": "arn:caller", "Url": "https://boosts.example/", "LeaseTable": "leases"}
        return {"Stacks": [{"Outputs": [{"OutputKey": key, "OutputValue": text} for key, text in outputs.items()]}]}


def _place(seconds: int, code: str = "AccessDenied") -> FakePlace:
    place = FakePlace()
    place.clients = dict.fromkeys(("sts", "cloudformation", "dynamodb"), _Spreading(place, seconds, code))
    return place


@pytest.fixture
def _answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The coordinator answers whoever has the role."""
    monkeypatch.setattr(CoordinatorClient, "send", lambda *_, **__: {})


@pytest.mark.usefixtures("_answers")
def test_role_that_spreads_is_taken_again_and_its_pulses_are_sent_once_as_by_the_library(tmp_path: Path) -> None:
    place = _place(seconds=17)
    stage = stage_of(place, tmp_path)
    caller = _Caller(stage, "Boosts", "list", "orders")
    assert stage.report.checks == [Check("any", "the role may call the coordinator", "within 3 minutes", "17", True)]
    pulse, own = caller.pulse(stage), highwater.pulse(caller.session)
    for setting in ("retries", "connect_timeout", "read_timeout"):
        assert getattr(pulse.dynamodb.meta.config, setting) == getattr(own.dynamodb.meta.config, setting)
    assert pulse.dynamodb.meta.config.retries["total_max_attempts"] == 1
    own.stop()


@pytest.mark.usefixtures("_answers")
def test_another_error_than_a_missing_permission_ends_the_part(tmp_path: Path) -> None:
    place = _place(seconds=17, code="RegionDisabledException")
    with pytest.raises(Exception, match="RegionDisabledException"):
        _Caller(stage_of(place, tmp_path), "Boosts", "list", "orders")


class _Late:
    """Application Auto Scaling, which shows a floor of 10 from so many seconds on, and 50 before."""

    def __init__(self, place: FakePlace, seconds: int) -> None:
        self.place, self.from_then = place, place.at + timedelta(seconds=seconds)

    def describe_scalable_targets(self, **_: Any) -> dict[str, Any]:
        floor = 10 if self.place.at >= self.from_then else 50
        return {"ScalableTargets": [{"MinCapacity": floor, "MaxCapacity": 200}]}


@pytest.mark.parametrize(("late", "took", "seen"), [(0, 0, 10), (4, 4, 10), (9, None, 50)])
def test_floor_that_was_just_set_is_looked_for_five_seconds(
    tmp_path: Path, late: int, took: int | None, seen: int
) -> None:
    place = FakePlace()
    place.clients["application-autoscaling"] = _Late(place, late)
    stage = stage_of(place, tmp_path)
    assert stage.settle("floor", 10, read_floor, NAME) == took
    assert stage.report.checks == [Check("any", "floor", "10", str(seen), seen == 10)]


class _AutoScaling:
    """Answers with these floors, one after the other; a call of `None` is throttled."""

    def __init__(self, floors: list[int | None]) -> None:
        self._floors = iter(floors)

    def describe_scalable_targets(self, **_: Any) -> dict[str, Any]:
        if (floor := next(self._floors)) is None:
            raise refusal("ThrottlingException", "Rate exceeded")
        return {"ScalableTargets": [{"MinCapacity": floor, "MaxCapacity": 100}]}


@pytest.mark.parametrize(
    ("floors", "lowest", "seconds"),
    [
        pytest.param([40, 10, 40], 10, 1, id="low-for-a-second"),
        pytest.param([40, None, 10, 40], 10, 1, id="a-refusal-is-left-out"),
        pytest.param([None, None, None], None, None, id="never-seen"),
        pytest.param([40, None, 45], 40, 0, id="never-too-low"),
    ],
)
def test_lowest_floor(floors: list[int | None], lowest: int | None, seconds: int | None) -> None:
    place = FakePlace({"application-autoscaling": _AutoScaling(floors)})
    seen = LowestFloor(place, NAME, 40)
    for _ in floors:
        before = place.at
        place.let_pass(timedelta(seconds=1))
        seen.look(before)
    assert (seen.floor, seen.seconds) == (lowest, seconds)
