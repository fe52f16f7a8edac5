"""Comments on a request: written, edited, left and deleted by the scripts of the action and of GitLab's job."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.commands.code_hosts import TOKEN
from tests.commands.pipelines import COMMENT, JOB, Runner, empty_job, nothing_was_run

pytestmark = [pytest.mark.cloud, pytest.mark.xdist_group("pipelines")]


@pytest.fixture(params=["gh", "glab"])
def bare(request: pytest.FixtureRequest, tmp_path: Path) -> Runner:
    """A job of both services, in an empty folder."""
    return empty_job(request.param, tmp_path)


def _document(stage: str, text: str = "one", *, is_changed: bool = True) -> str:
    state = "" if is_changed else ": unchanged"
    return f"<!-- highwater::{stage}{state} -->\n### DynamoDB capacity, {stage}\n\n{text}\n"


def test_each_stage_has_one_comment_that_is_edited_and_deleted(bare: Runner) -> None:
    """All of a request's life, as its author sees it."""
    edit = "PATCH" if bare.host.kind == "gh" else "PUT"
    odd = "a \\n b \\\\ c\td %s $(touch pwned) `touch pwned` ü"
    assert bare.comment("\n".join([_document("Beta", odd), _document("Prod")])) == 0, bare.said
    assert [body.rstrip("\n") for body in bare.host.bodies()] == [
        f"<!-- highwater::Beta -->\n### DynamoDB capacity, Beta\n\n{odd}",
        "<!-- highwater::Prod -->\n### DynamoDB capacity, Prod\n\none",
    ]
    assert bare.comment("\n".join([_document("Beta", odd), _document("Prod", "two")])) == 0
    assert bare.host.written() == ["POST", "POST", edit]
    assert bare.host.bodies()[1].rstrip("\n").endswith("\n\ntwo")
    same = _document("Beta", "no table differs", is_changed=False)
    assert bare.comment("\n".join([same, _document("Prod", "two")])) == 0
    assert [body.split("\n")[0] for body in bare.host.bodies()] == ["<!-- highwater::Prod -->"]
    # Prod is no stage of the app any more
    assert bare.comment(same) == 0
    assert bare.host.written() == ["POST", "POST", edit, "DELETE", "DELETE"]
    assert bare.host.bodies() == []
    assert bare.said == ""
    assert nothing_was_run(bare)
    host = "github.example.com" if bare.host.kind == "gh" else "https://gitlab.example.com:8443"
    assert bare.host.environments() == {(TOKEN, host)}
    assert TOKEN not in json.dumps(bare.host.calls())


def test_comment_is_left_whatever_its_ends_of_lines_and_duplicates_are_deleted(bare: Runner) -> None:
    for _ in range(3):
        bare.host.has(_document("Prod").replace("\n", "\r\n").strip())
    assert bare.comment(_document("Prod")) == 0, bare.said
    assert bare.host.written() == ["DELETE", "DELETE"]
    assert len(bare.host.bodies()) == 1


def test_comments_of_others_and_of_other_apps_are_left(bare: Runner) -> None:
    bare.host.has(_document("Prod"), own=False)
    bare.host.has(f"As it was:\n{_document('Prod')}")
    bare.host.has(_document("Prod").replace("::", ":cart:"))
    left = bare.host.bodies()
    assert bare.comment(_document("Prod", "two"), NAME="shop/$(touch pwned)*") == 0, bare.said
    assert bare.comment(_document("Prod", "three"), NAME="0") == 0
    assert bare.host.bodies()[:3] == left
    assert [body.rstrip("\n") for body in bare.host.bodies()[3:]] == [
        "<!-- highwater:shop/__touch pwned__:Prod -->\n### DynamoDB capacity, Prod · shop/__touch pwned__\n\ntwo",
        "<!-- highwater:0:Prod -->\n### DynamoDB capacity, Prod · 0\n\nthree",
    ]
    assert bare.comment(_document("Prod", is_changed=False), NAME="0") == 0
    assert bare.host.written() == ["POST", "POST", "DELETE"]
    assert nothing_was_run(bare)


def test_stage_whose_name_ends_like_the_hidden_line_has_its_comment(bare: Runner) -> None:
    assert bare.comment(_document(" unchanged")) == 0, bare.said
    assert bare.host.written() == ["POST"]


def test_comment_that_is_cut_has_a_link_to_the_whole(bare: Runner) -> None:
    text = "**2 tables are left out**, as a comment has at most 65,536 characters; `--html` and `--json` have all."
    assert bare.comment(_document("Prod", text)) == 0, bare.said
    link = "https://x/7" if bare.host.kind == "gh" else "https://x/7/artifacts/file/highwater-rehearsal.html"
    assert bare.host.bodies()[0].rstrip("\n").endswith(f"{text} [The whole rehearsal](<{link}>).")


@pytest.mark.parametrize(
    "message",
    [
        "Resource not accessible by integration (HTTP 403)",
        "HTTP 401: Bad credentials (HTTP 401)",
        "404 Project Not Found (HTTP 404)",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_token_that_may_not_write_is_no_error(bare: Runner, method: str, message: str) -> None:
    bare.host.refuses(method, f"{bare.host.kind}: {message}")
    text = "\n".join([_document("Beta", "same", is_changed=False), _document("Prod")])
    assert bare.comment(text) == 0
    shown = "what differs is in the summary of the job"
    request = "pull request"
    if bare.host.kind == "glab":
        shown, request = "the rehearsal is an artifact of the job", "merge request"
    assert bare.said == f"no comment on the {request}: {bare.host.kind}: {message}; {shown}\n"
    assert bare.summary() == (_document("Prod") if bare.host.kind == "gh" else "")
    assert bare.host.bodies() == []


def test_permission_to_read_that_github_denies_in_its_other_words_is_no_error(tmp_path: Path) -> None:
    runner = empty_job("gh", tmp_path)
    runner.host.refuses("GET", "GraphQL: Resource not accessible by integration (repository.pullRequest.comments)")
    assert runner.comment(_document("Prod")) == 0
    assert runner.summary() == _document("Prod")


def test_service_that_fails_fails_the_job_and_shows_the_rehearsal(bare: Runner) -> None:
    bare.host.refuses("POST", f"{bare.host.kind}: Bad Gateway (HTTP 502)")
    assert bare.comment(_document("Prod")) == (1 if bare.host.kind == "gh" else 2)
    assert "Bad Gateway (HTTP 502); " in bare.said
    assert bare.summary() == (_document("Prod") if bare.host.kind == "gh" else "")


def test_job_without_a_token_or_a_request_asks_for_nothing(bare: Runner) -> None:
    if bare.host.kind == "gh":
        assert [bare.comment(_document("Prod"), **{name: ""}) for name in ("GH_TOKEN", "NUMBER")] == [0, 0]
        line = "no comment on the pull request: there is no pull request, or no token; what differs is in the summary "
        assert bare.said == f"{line}of the job\n" * 2
    else:
        names = ("GITLAB_TOKEN", "CI_MERGE_REQUEST_IID")
        assert [bare.comment(_document("Prod"), **{name: ""}) for name in names] == [0, 0]
        line = "no comment on the merge request: there is no merge request, or no GITLAB_TOKEN; the rehearsal is an "
        assert bare.said == f"{line}artifact of the job\n" * 2
    assert bare.host.calls() == []


def test_tool_that_is_missing_is_told(tmp_path: Path) -> None:
    runner = empty_job("glab", tmp_path)
    (tmp_path / "tools" / "glab").unlink()
    assert runner.comment(_document("Prod")) == 2
    assert re.search("no comment on the merge request: .*glab: .*not found; ", runner.said)


def test_posting_takes_at_most_sixty_lines_of_shell() -> None:
    lines = [line.strip() for line in f"{COMMENT['run']}\n{JOB['script'][1]}".splitlines()]
    assert len([line for line in lines if line and not line.startswith("#")]) <= 60


@pytest.mark.parametrize(
    ("working_directory", "cdk_out", "name"),
    [
        (".", "cdk.out", ""),
        ("./", "cdk.out/", ""),
        ("infra", "cdk.out", "infra"),
        ("./infra/", "cdk.out", "infra"),
        (".", "build/cdk.out", "build"),
        ("a/b", "out", "a/b/out"),
    ],
)
def test_apps_of_several_folders_have_comments_of_their_own(
    tmp_path: Path, working_directory: str, cdk_out: str, name: str
) -> None:
    runner = empty_job("gh", tmp_path)
    assert runner.comment(_document("Prod"), WORKING_DIRECTORY=working_directory, CDK_OUT=cdk_out) == 0
    assert runner.host.bodies()[0].startswith(f"<!-- highwater:{name}:Prod -->\n")
