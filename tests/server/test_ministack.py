"""What the local cloud needs of MiniStack: looked for at its start, and said in one line where it is not there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib

import pytest

pytest.importorskip("ministack", reason="run by make test-cloud, in the environment of the local cloud")

from highwater_local import ministack
from tests.cdk_cli import ROOT

ANOTHER_VERSION = "from importlib import metadata; metadata.version = lambda name: '1.6.0'"
NONE = (
    "from importlib import metadata\n"
    "def version(name): raise metadata.PackageNotFoundError(name)\n"
    "metadata.version = version"
)
MOVED = (
    "from ministack.services import cloudwatch, dynamodb\n"
    "from ministack.services.cloudformation import provisioners\n"
    "del dynamodb._set_item\n"
    "dynamodb._update_table = 3\n"
    "cloudwatch._alarms = object()\n"
    "del provisioners._RESOURCE_HANDLERS['AWS::DynamoDB::GlobalTable']['update']"
)
NO_MODULE = "import sys; sys.modules['ministack.services.scheduler'] = None"
FIX = "install highwater-local anew, in an environment of its own"


def _python(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ | {"LOG_LEVEL": "ERROR"},
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(NONE, f"the local cloud needs MiniStack 1.5.33, but none is installed; {FIX}", id="not-installed"),
        pytest.param(
            "sys.modules['uvicorn'] = None",
            f"the local cloud lacks the library uvicorn; {FIX}",
            id="no-web-server",
        ),
        pytest.param(
            ANOTHER_VERSION,
            f"the local cloud needs MiniStack 1.5.33, but 1.6.0 is installed; {FIX}",
            id="another-version",
        ),
        pytest.param(
            MOVED,
            "the local cloud needs MiniStack 1.5.33, but 1.5.33 is installed, without "
            "ministack.services.dynamodb._update_table as a function, ministack.services.dynamodb._set_item, "
            "ministack.services.cloudwatch._alarms._data, ministack.services.cloudwatch._alarms.values, "
            "ministack.services.cloudformation.provisioners._RESOURCE_HANDLERS['AWS::DynamoDB::GlobalTable']['update'] "
            f"as a function; {FIX}",
            id="names-moved",
        ),
        pytest.param(
            f"{ANOTHER_VERSION}\n{NO_MODULE}",
            "the local cloud needs MiniStack 1.5.33, but 1.6.0 is installed, without "
            "ministack.services.scheduler.start_scheduler, ministack.services.scheduler._tick_schedules, "
            "ministack.services.scheduler._create_schedule, ministack.services.scheduler._update_schedule, "
            "ministack.services.scheduler._get_schedule, ministack.services.scheduler._schedule_last_fired, "
            "ministack.services.scheduler.time; "
            f"{FIX}",
            id="module-gone-in-another-version",
        ),
    ],
)
def test_cloud_that_lacks_something_of_ministack_says_so_and_does_not_start(change: str, message: str) -> None:
    start = "from highwater_local.server import main; sys.exit(main(['--port=1', '--socket=0', '--lifeline=0']))"
    ended = _python(f"import sys\n{change}\n{start}")
    assert (ended.returncode, ended.stderr.strip().splitlines()[-1]) == (1, message)


def test_process_that_loads_ministack_keeps_its_recursion_limit() -> None:
    """One of its libraries raises it to 10,000; documents that are nested deeper than the limit are refused by it."""
    load = "import sys; from highwater_local import ministack; sys.setrecursionlimit(1_234); ministack.load()"
    ended = _python(f"{load}; print(sys.getrecursionlimit())")
    assert (ended.returncode, ended.stdout.split()[-1]) == (0, "1234")


def test_version_that_is_wanted_is_the_one_that_is_pinned() -> None:
    pinned = tomllib.loads((ROOT / "local_src" / "pyproject.toml").read_text())
    assert f"ministack=={ministack.WANTED}" in pinned["project"]["dependencies"]
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    assert f"ministack=={ministack.WANTED}" in groups["local"]


def test_page_lists_each_private_name_of_ministack_once_with_the_reason() -> None:
    page = (ROOT / "docs" / "local-cloud-and-aws.md").read_text().partition("## What it uses of MiniStack's inside")[2]
    rows = re.findall(r"^\| `([\w.]+)` \| (.+?) \| .{10,} \| .{5,} \|$", page, re.MULTILINE)
    listed = [f"ministack.{module}.{name}" for module, names in rows for name in re.findall(r"`(\w+)`", names)]
    declared = [value.path for value in ministack.DECLARED]
    assert sorted(listed) == sorted(path for path in declared if path.rpartition(".")[2].startswith("_"))
