"""Laws that hold after any sequence of deploys, rollbacks, windows, edits by hand and hours without a scaler."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.core.examples import examples
from tests.sequences.story import Sequences, function_id

# Stories of at most *_STEPS* steps; some end earlier.
_STORIES_BY_DEFAULT = examples(96)
_STORIES = int(os.environ.get("HIGHWATER_SEQUENCES", _STORIES_BY_DEFAULT))
_STEPS = 60
_STEPS_OF_A_STORY = 39


@pytest.mark.xdist_group("sequences")
def test_laws_over_sequences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", f"arn:aws:any:us-east-1:000000000000:{function_id()}")
    run_state_machine_as_test(
        Sequences,
        settings=settings(
            max_examples=_STORIES,
            stateful_step_count=_STEPS,
            # the same stories in every run of make test; make sequences draws new ones each time
            derandomize=_STORIES == _STORIES_BY_DEFAULT,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert Sequences.steps_taken >= _STORIES * _STEPS_OF_A_STORY, Sequences.steps_taken
