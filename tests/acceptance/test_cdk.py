"""The CDK CLI is stopped when its part has to end."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from acceptance import cdk
from acceptance.cdk import CdkError
from tests.acceptance.fake_place import FakePlace, stage_of


@pytest.fixture
def _endless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A CLI that never ends."""
    program = tmp_path / "node_modules" / ".bin" / "cdk"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\nexec sleep 3600\n")
    program.chmod(0o755)
    monkeypatch.setattr(cdk, "ROOT", tmp_path)


@pytest.mark.usefixtures("_endless")
def test_deploy_that_does_not_end_is_stopped_at_the_parts_deadline(tmp_path: Path) -> None:
    stage = stage_of(FakePlace(), tmp_path)
    stage.deadline = stage.now() + timedelta(microseconds=1)
    with pytest.raises(CdkError) as stopped:
        stage.deploy("Surge")
    assert stage.ledger.stacks == ["HwAccept20310304050607-Surge"]
    assert str(stopped.value) == "cdk deploy did not end in the 0 s that its part had left; it was stopped"
