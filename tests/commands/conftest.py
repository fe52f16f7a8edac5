"""The command as people run it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def command(tmp_path: Path) -> Run:
    """`highwater` with a home of its own and no credentials."""

    def run(*arguments: str, columns: str = "140") -> subprocess.CompletedProcess[str]:
        hidden = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        return subprocess.run(
            [str(Path(sys.executable).parent / "highwater"), *arguments],
            env=hidden | {"HOME": str(tmp_path), "AWS_EC2_METADATA_DISABLED": "true", "COLUMNS": columns},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    return run
