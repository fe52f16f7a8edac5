"""Every snippet of README.md and docs/ runs, and prints what the page says that it prints."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
import yaml
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam

import cdk_highwater
from highwater.client.fleet import FleetTable
from highwater.core import Dimension, Plan, bounds_at
from highwater.core.pulses import pulse_detail_type
from highwater.handlers.coordinator.handler import read_pulse_event, read_request
from highwater.queues.messages import BufferedAction, Message, read_action
from tests.cdk_cli import CDK, ROOT
from tests.constructs.template_view import EVERY_TABLE_SAYS, messages, new_stack
from tests.ports import free_port

_PARTS = ("constructs_pkg", "lambda_src", "lab_src", "local_src")
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Snippet:
    """A fenced block of a page, and what stands in the `text` block right behind it."""

    page: str
    number: int
    language: str
    code: str
    said: str | None


def _snippets() -> Iterator[Snippet]:
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted(ROOT.glob("examples/*/README.md"))]:
        blocks = [(match[1], match[2]) for match in _FENCE.finditer(path.read_text())]
        for number, (language, code) in enumerate(blocks):
            behind = blocks[number + 1] if number + 1 < len(blocks) else ("", "")
            said = behind[1] if behind[0] == "text" else None
            yield Snippet(str(path.relative_to(ROOT)), number, language, code, said)


def _of(language: str) -> list[Any]:
    return [
        pytest.param(
            snippet,
            id=f"{snippet.page}-{snippet.number}",
            marks=[pytest.mark.cloud] if "LocalCloud(" in snippet.code else [],
        )
        for snippet in _snippets()
        if snippet.language == language
    ]


@pytest.mark.parametrize("snippet", _of("python"))
def test_python_snippet_runs_and_says_what_the_page_says(snippet: Snippet) -> None:
    stack = new_stack()
    names: dict[str, Any] = {name: getattr(cdk_highwater, name) for name in cdk_highwater.__all__}
    names |= {
        "cdk": cdk,
        "dynamodb": dynamodb,
        "iam": iam,
        "stack": stack,
        "Plan": Plan,
        "bounds_at": bounds_at,
        "datetime": datetime,
        "__name__": "snippet",
    }
    exec(compile(snippet.code, snippet.page, "exec"), names)  # noqa: S102 - the project's own pages
    told = [text for kind in ("error", "warning", "info") for text in messages(names["stack"], kind)]
    said = [text for text in told if not text.endswith(EVERY_TABLE_SAYS)]
    if snippet.said is not None:
        assert said == snippet.said.splitlines()
    else:
        assert [text for text in said if "warmUpCharge" not in text] == [], "a snippet works, unless the page says not"


def test_every_text_block_stands_behind_a_snippet_that_says_it() -> None:
    blocks = list(_snippets())
    texts = [snippet for snippet in blocks if snippet.language == "text"]
    compared = [snippet for snippet in blocks if snippet.said is not None and snippet.language == "python"]
    assert len(texts) == len(compared) > 0


def test_pages_hold_no_other_kind_of_block() -> None:
    # what is ts or hcl is used in tests/deploys/test_tables_of_others.py
    assert {snippet.language for snippet in _snippets()} <= {"python", "text", "sh", "json", "yaml", "ts", "hcl"}


def _steps(document: dict[str, Any]) -> list[dict[str, Any]]:
    jobs = document.get("jobs") or {"": document}
    return [step for job in jobs.values() for step in job.get("steps", ())]


@pytest.mark.parametrize("snippet", _of("yaml"))
def test_pipeline_of_a_page_uses_what_there_is(snippet: Snippet) -> None:
    """The scripts of action and job are run in tests/commands/test_pipelines.py."""
    document = yaml.safe_load(snippet.code)
    version = f"v{importlib.metadata.version('highwater-lab')}"
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    own = [step for step in _steps(document) if step.get("uses", "").startswith("cdk-highwater/")]
    for step in own:
        assert step["uses"] == f"cdk-highwater/highwater@{version}"
        assert set(step["with"]) <= set(action["inputs"])
        assert "traffic" in step["with"]
        named = re.findall(rf"steps\.{step.get('id')}\.outputs\.(\w+)", snippet.code)
        assert set(named) <= set(action["outputs"])
    if own and "jobs" in document:
        # a workflow whose top has permissions has no other ones; YAML 1.1 reads the key on as true
        permissions = dict(document["permissions"])
        # a plan of Terraform is made with credentials, for which the job shows who it is
        permissions.pop("id-token", None)
        assert permissions == {"contents": "read", "pull-requests": "write"}
        assert document[True] == "pull_request"
    for step in _steps(document):
        for words in re.findall("^highwater (.*)$", step.get("run", ""), re.MULTILINE):
            # every command and option that is written there is one
            assert _says_help([*words.split(), "--help"]), words
    for place in document.get("include", ()):
        prefix = f"https://raw.githubusercontent.com/cdk-highwater/highwater/{version}/"
        included = yaml.safe_load((ROOT / place["remote"].removeprefix(prefix)).read_text())
        (job,) = (each for name, each in document.items() if name != "include")
        assert set(job["variables"]) <= set(included[job["extends"]]["variables"])
        assert not {"script", "rules", "artifacts"} & set(job)


def _says_help(arguments: list[str]) -> bool:
    command = [str(Path(sys.executable).parent / "highwater"), *arguments]
    return subprocess.run(command, capture_output=True, check=False, timeout=60).returncode == 0


def test_page_of_pull_requests_names_every_input_and_variable() -> None:
    page = (ROOT / "docs" / "pull-requests.md").read_text()
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert {name for row in rows for name in re.findall(r"`([a-z-]+)`", row.split("|")[1])} == set(action["inputs"])
    assert action["inputs"]["version"]["default"] == "own"


def _json_of(page: str) -> list[Snippet]:
    return [each for each in _snippets() if (each.language, each.page) == ("json", page)]


def test_message_of_the_page_of_buffered_writes_is_one() -> None:
    (body,) = _json_of("docs/buffered-writes.md")
    action = read_action(Message("m", "receipt", body.code, 0), ("order_id",), "version")
    assert isinstance(action, BufferedAction)
    assert not action.is_delete
    assert (action.key, str(action.version)) == (("o-1",), "7")
    # tests/commands/test_audit.py and test_doctor.py, and tests/deploys/test_boosts.py, use the policies of pages;
    # test_tables_of_others.py uses all of its page
    known = {"audit-in-detail", "doctor", "operations", "pulse-protocol", "sharding", "tables-of-others"}
    known = {body.page, *(f"docs/{name}.md" for name in known)}
    assert all(each.page in known for each in _snippets() if each.language == "json")


def test_requests_of_the_pulse_protocol_are_those_of_the_python_client() -> None:
    adding, waking, putting = (json.loads(each.code) for each in _json_of("docs/pulse-protocol.md"))
    asked: list[dict[str, Any]] = []

    class Recorder:
        def update_item(self, **request: Any) -> dict[str, Any]:
            asked.append(request)
            return {"Attributes": {}}

    slot = 29_923_951 * 6 + 3
    table, index = (None, Dimension.WRITE), ("by_status", Dimension.WRITE)
    FleetTable(Recorder(), "the coordinator's", "orders").add(
        {(slot, table, False): 612.5, (slot, index, False): 204.0}
    )
    assert asked == [adding]
    caller = {"userArn": "arn:aws:iam::123456789012:user/service"}
    context = {"authorizer": {"iam": caller}, "http": {"method": "POST"}}
    read = read_request({"body": json.dumps(waking), "requestContext": context})
    assert (read.action, read.document["table"]) == ("pulse", "orders")
    assert sorted(putting) == ["pulses", "table"]
    assert read_pulse_event({"detail-type": pulse_detail_type("orders"), "detail": putting}) == "orders"


def _pages_with_commands() -> list[str]:
    return list(dict.fromkeys(snippet.page for snippet in _snippets() if snippet.language == "sh"))


_SYNTH = "cdk synth --quiet --output "


@pytest.fixture(scope="module")
def synthesized(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `cdk synth` makes in the root of the repository."""
    folder = tmp_path_factory.mktemp("synthesized") / "cdk.out"
    subprocess.run([CDK, *_SYNTH.split()[1:], str(folder)], cwd=ROOT, check=True, capture_output=True)
    return folder


@pytest.mark.cloud
@pytest.mark.xdist_group("pages")
@pytest.mark.parametrize("page", _pages_with_commands())
def test_shell_snippets_of_a_page_run_as_printed(page: str, synthesized: Path, tmp_path: Path) -> None:
    """A page's blocks one after another in one shell, as a reader runs them.

    What would run these tests again or install packages is looked up instead; the CDK CLI bootstraps once, and
    synthesizes the example of the repository's root once.
    """
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    code = "".join(snippet.code for snippet in _snippets() if (snippet.page, snippet.language) == (page, "sh"))
    lines = []
    for line in code.splitlines():
        if line.startswith("make "):
            assert line.split()[1] in targets
        elif "pip install " in line or line.startswith(("python3 -m venv ", "export HIGHWATER_LOCAL=")):
            # from folders of a checkout, or from wheels: tests/house has that nothing is installed by name
            for source in re.findall(r"\./highwater(\S*)", line):
                assert (ROOT / f".{source}" / "pyproject.toml").exists(), line
            for wheel in re.findall(r"dist/(\w+)-\*\.whl", line):
                assert any((ROOT / part / wheel).exists() or wheel == "highwater_runtime" for part in _PARTS), line
        elif not line.startswith("git clone"):
            # the AWS CLI pins a botocore of its own and cannot be in the same environment as MiniStack
            command = f"{sys.executable} -c {_BOTO3!r}" if line == "aws dynamodb list-tables" else line
            if line == "cdk bootstrap" and page != "docs/local-cloud.md":
                command = f"{sys.executable} -c {_BOOTSTRAP!r}"
            if line.startswith(_SYNTH):
                made = line.removeprefix(_SYNTH)
                command = f"mkdir -p build && rm -rf {made} && cp -R {synthesized} {made}"
            # the usual port may be somebody else's here
            lines.append(command.replace("highwater local up", f"highwater local up --port {free_port()}"))
    if not lines:
        return
    # `make release-check` has a page run by what it has installed from the wheels
    tools = os.environ.get("HIGHWATER_BIN", str(Path(sys.executable).parent))
    path = f"{tools}:{ROOT / 'node_modules' / '.bin'}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "\n".join(lines)],
        cwd=ROOT,
        env=os.environ
        | {
            "PATH": path,
            "HOME": str(tmp_path),
            "XDG_STATE_HOME": str(tmp_path),
            "CDK_OUTDIR": str(tmp_path / "cdk.out"),
            "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "20",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    if page == "docs/simulate.md":
        # the lines of a queue, a job or shards, which the terminal breaks elsewhere
        quoted = re.findall(r"^> ((?:queue|job|shards:) .+(?:\n> .+)*)", (ROOT / page).read_text(), re.MULTILINE)
        assert len(quoted) == 3
        said = " ".join(done.stdout.split())
        assert [each for each in quoted if " ".join(each.replace("\n> ", " ").split()) not in said] == []
    if lines_quoted := {"docs/rehearse.md": 3, "docs/quickstart.md": 7}.get(page):
        # tests/commands/test_not_read.py prints the lines that begin with an exclamation mark
        quoted = re.findall(r"^> ([^!\n].*(?:\n> .+)*)", (ROOT / page).read_text(), re.MULTILINE)
        assert len(quoted) == lines_quoted
        printed = done.stdout.splitlines()
        assert [each for each in quoted if each.replace("\n> ", " ") not in printed] == [], done.stdout


_BOOTSTRAP = 'import boto3, tests.cdk_cli; tests.cdk_cli.bootstrap(boto3.client("cloudformation"))'
_BOTO3 = 'import boto3; assert boto3.client("dynamodb").list_tables()["TableNames"]'


def test_price_in_the_readme_is_what_synth_says_of_its_snippet() -> None:
    code = next(each.code for each in _snippets() if each.page == "README.md" and each.language == "python")
    names: dict[str, Any] = {"__name__": "snippet"}
    exec(compile(code, "README.md", "exec"), names)  # noqa: S102 - the project's own page
    told = " ".join(messages(names["app"].node.find_child("Shop"), "info"))
    month, once = re.findall(r"\$[\d.]+", code)
    assert f"declared capacity: at least {month} a month" in told
    assert f"= {once}; a mark that the table already has is not charged again" in told
