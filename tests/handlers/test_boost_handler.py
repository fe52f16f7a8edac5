"""What the function answers, and when it fails so that Lambda tries an event again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from highwater.handlers.coordinator.handler import handler, read_pulse_event
from highwater.handlers.coordinator.refusals import RefusedError
from tests.handlers.test_boost_calls import ROOT, request_of

LIST = '{"do": "list", "table": "orders"}'
EVENT = {"detail-type": "Highwater Boost", "source": "acme.loader", "id": "0-1-2", "detail": {"table": "orders"}}


@pytest.fixture(autouse=True)
def nothing_is_set_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HIGHWATER_SCALER", raising=False)


@pytest.fixture
def metrics_of_nightly(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function that publishes metrics, as the scaler of this name."""
    monkeypatch.setenv("HIGHWATER_SCALER", "nightly")
    monkeypatch.setenv("POWERTOOLS_METRICS_DISABLED", "false")


@pytest.mark.usefixtures("metrics_of_nightly")
def test_refusal_is_an_answer_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    answer = handler(request_of(LIST, ROOT), None)
    assert (answer["statusCode"], json.loads(answer["body"])) == (
        403,
        {
            "error": f"only roles and users may boost or pulse, and the caller is {ROOT}; assume a role that has "
            "grant_boost or grant_pulse"
        },
    )
    published = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (published["service"], published["BoostsRefused"]) == ("nightly", [1])
    assert published["_aws"]["CloudWatchMetrics"][0]["Namespace"] == "Highwater"


def test_failure_is_told_a_job_without_its_details() -> None:
    answer = handler(request_of(LIST), None)
    assert (answer["statusCode"], json.loads(answer["body"])) == (
        500,
        {"error": "the coordinator failed, its log says why: KeyError"},
    )


def test_event_that_fails_fails_the_invocation() -> None:
    with pytest.raises(KeyError, match="HIGHWATER_SCALER"):
        handler(EVENT, None)


@pytest.mark.usefixtures("metrics_of_nightly")
def test_event_that_makes_no_sense_does_not_fail_the_invocation() -> None:
    assert handler(EVENT | {"detail": "x"}, None)["statusCode"] == 400


def test_event_of_a_fleet_names_the_table_that_its_type_names() -> None:
    event = {"source": "highwater.pulse", "detail-type": "Highwater Pulse carts", "detail": {"table": "orders"}}
    with pytest.raises(RefusedError) as refused:
        read_pulse_event(event)
    assert str(refused.value) == (
        "pulse: the detail type is 'Highwater Pulse carts', and the table 'orders'; they must agree"
    )
    fits, longer = "e" * 112, "e" * 113
    assert read_pulse_event({"detail-type": f"Highwater Pulse {fits}", "detail": {"table": fits}}) == fits
    assert read_pulse_event({"detail-type": "Highwater Pulse", "detail": {"table": longer}}) == longer


@pytest.mark.parametrize("detail", [None, 7, [], {}, {"table": 7}, {"table": ""}])
def test_event_of_a_fleet_without_a_table_is_dropped(detail: Any) -> None:
    event = {"source": "highwater.pulse", "detail-type": "Highwater Pulse ", "detail": detail}
    with pytest.raises(RefusedError, match="they must agree"):
        read_pulse_event(event)


def test_all_else_is_the_scalers() -> None:
    with pytest.raises(KeyError, match="HIGHWATER_SCALER"):
        handler({"highwater": "tick"}, None)
