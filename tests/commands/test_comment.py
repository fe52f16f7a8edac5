"""`highwater comment`: what it prints, where a rehearsal goes that cannot be posted, and how it ends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from highwater_lab.local.process import HeldPort
from tests.command import Command, Done, refused
from tests.comments.forge import GITHUB_NOTES, GITLAB_NOTES, TOKEN, Forge, serving

CHANGED = "<!-- highwater rehearsal: {stage} -->\n<!-- highwater: changed -->\n### DynamoDB capacity, {stage}\n"
UNCHANGED = CHANGED.replace("changed", "unchanged")
PROD = CHANGED.format(stage="Prod")
POSTED = "<!-- highwater rehearsal: Prod -->\n<!-- highwater run: 9.1 -->\n### DynamoDB capacity, Prod\n"
# what jobs of the services have; the tests may run in one
OF_JOBS = (
    "GITHUB_TOKEN",
    "GITHUB_REPOSITORY",
    "GITHUB_API_URL",
    "GITHUB_EVENT_PATH",
    "GITHUB_RUN_ID",
    "GITHUB_RUN_ATTEMPT",
    "GITHUB_STEP_SUMMARY",
    "GITLAB_TOKEN",
    "CI_API_V4_URL",
    "CI_PROJECT_ID",
    "CI_MERGE_REQUEST_IID",
    "CI_MERGE_REQUEST_PROJECT_ID",
    "CI_PIPELINE_ID",
    "CI_JOB_ID",
    "http_proxy",
    "https_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
)
NO_WRITE = {"message": "Resource not accessible by integration"}
GITHUB_HINT = (
    "a fork's token may only read; otherwise the job needs permissions: pull-requests: write, and GITHUB_TOKEN"
)
GITLAB_HINT = (
    "a fork's pipeline has no token; otherwise the job needs GITLAB_TOKEN, an access token of the project with the "
    "scope api"
)


@pytest.fixture(params=["github", "gitlab"])
def forge(request: pytest.FixtureRequest) -> Iterator[Forge]:
    """An empty request at each of both services."""
    with serving(Forge(request.param)) as served:
        yield served


@pytest.fixture
def github() -> Iterator[Forge]:
    """An empty request of GitHub."""
    with serving(Forge("github")) as served:
        yield served


@pytest.fixture
def gitlab() -> Iterator[Forge]:
    """An empty request of GitLab."""
    with serving(Forge("gitlab")) as served:
        yield served


def job(forge: Forge, folder: Path) -> dict[str, str | None]:
    """The variables of a job of the service."""
    variables: dict[str, str | None] = dict.fromkeys(OF_JOBS)
    if forge.kind == "gitlab":
        return variables | {
            "GITLAB_TOKEN": TOKEN,
            "CI_API_V4_URL": forge.address,
            "CI_PROJECT_ID": "42",
            "CI_MERGE_REQUEST_IID": "7",
            "CI_PIPELINE_ID": "9",
            "CI_JOB_ID": "1",
        }
    (folder / "event.json").write_text(json.dumps({"pull_request": {"number": 7}}))
    return variables | {
        "GITHUB_TOKEN": TOKEN,
        "GITHUB_REPOSITORY": "shop/infra",
        "GITHUB_API_URL": forge.address,
        "GITHUB_EVENT_PATH": str(folder / "event.json"),
        "GITHUB_RUN_ID": "9",
        "GITHUB_RUN_ATTEMPT": "1",
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
    }


def _comment(command: Command, forge: Forge, text: str, *options: str, **variables: str | None) -> Done:
    in_job = replace(command, variables=job(forge, command.folder) | variables)
    return in_job("comment", "-", f"--{forge.kind}", *options, given=text)


def test_each_stage_is_posted_and_then_left_updated_or_deleted(command: Command, forge: Forge) -> None:
    """All of a request's life, as its author sees it."""
    beta = CHANGED.format(stage="Beta")
    both = _comment(command, forge, f"{beta}\n{PROD}")
    assert (both.returncode, both.stdout, both.stderr) == (0, "Beta: posted\nProd: posted\n", "")
    assert forge.bodies()[1] == POSTED
    again = _comment(command, forge, f"{beta}more\n\n{PROD}")
    assert again.stdout == "Beta: updated\nProd: left, as the comment says the same\n"
    last = _comment(command, forge, UNCHANGED.format(stage="Prod"))
    assert last.stdout == (
        "Prod: nothing changed, so the comment is deleted\nBeta: nothing changed, so the comment is deleted\n"
    )
    assert forge.comments == {}


def test_file_is_posted_with_the_apps_name_on_the_request_that_is_named(command: Command, github: Forge) -> None:
    (command.folder / "rehearsal.md").write_text(CHANGED.format(stage=""))
    in_job = replace(command, variables=job(github, command.folder) | {"GITHUB_EVENT_PATH": None})
    done = in_job("comment", "rehearsal.md", "--github", "--number", "7", "--name", " shop ")
    assert (done.returncode, done.stdout, done.stderr) == (0, "app: posted\n", "")
    assert github.bodies() == [
        "<!-- highwater rehearsal: ; shop -->\n<!-- highwater run: 9.1 -->\n### DynamoDB capacity,  · shop\n"
    ]


def test_stage_is_printed_without_what_a_log_of_the_service_would_act_on(command: Command, github: Forge) -> None:
    done = _comment(command, github, CHANGED.format(stage="%3A%3Aerror%3A%3Aa/b%0A%1B%5B31m"))
    assert done.stdout == "%3A%3Aerror%3A%3Aa/b%0A%1B%5B31m: posted\n"


def test_long_comment_names_where_the_whole_document_is(command: Command, github: Forge) -> None:
    rows = "".join(f"| T{number:05} | 1 |\n" for number in range(9_000))
    text = f"{PROD}\n| table | USD |\n| --- | ---: |\n{rows}\n<sub>.</sub>\n"
    done = _comment(command, github, text, "--artifact-url", "https://example.com/a(1)")
    assert done.stdout == "Prod: posted\n"
    assert (
        " tables are left out:** a comment has at most 65,536 characters. [All of them](<https://example.com/a(1)>)."
        in (github.bodies()[0])
    )


@pytest.mark.parametrize("status", [401, 403, 404])
def test_fork_has_its_rehearsal_in_the_summary_of_the_step(command: Command, github: Forge, status: int) -> None:
    github.scripted["GET"] = [(status, {}, NO_WRITE)]
    (command.folder / "summary.md").write_text("before\n")
    done = _comment(command, github, f"{UNCHANGED.format(stage='Beta')}\n{PROD}", "--name", "shop")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == (
        f"highwater comment: no comment on the pull request: GET {github.address}{GITHUB_NOTES}: answered {status}: "
        f"Resource not accessible by integration; the rehearsal is in the summary of the step; {GITHUB_HINT}\n"
    )
    assert (command.folder / "summary.md").read_text() == (
        "before\n<!-- highwater rehearsal: Prod; shop -->\n### DynamoDB capacity, Prod · shop\n\n"
    )


def test_what_cannot_be_posted_is_shown_without_what_was(command: Command, github: Forge) -> None:
    github.has(POSTED)
    github.scripted["POST"] = [(404, {}, None), (403, {}, NO_WRITE)]
    done = _comment(command, github, f"{PROD}\n{CHANGED.format(stage='Qa')}")
    assert (done.returncode, done.stdout) == (0, "Prod: left, as the comment says the same\n")
    assert "rehearsal: Qa" in (command.folder / "summary.md").read_text()
    assert "rehearsal: Prod" not in (command.folder / "summary.md").read_text()


def test_many_long_documents_fit_into_a_summary(command: Command, github: Forge) -> None:
    rows = "".join(f"| 𝔗{number:04}" + "é" * 50 + " | 1 |\n" for number in range(900))
    one = f"\n| table | USD |\n| --- | ---: |\n{rows}\n<sub>.</sub>\n"
    text = "\n".join(CHANGED.format(stage=f"S{number}") + one for number in range(20))
    done = _comment(command, github, text, GITHUB_TOKEN="")
    assert done.returncode == 0
    summary = (command.folder / "summary.md").read_bytes()
    assert len(summary) < 2**20
    assert summary.count(b" tables are left out:** ") == 20


def test_fork_without_a_token_prints_its_rehearsal_on_gitlab(command: Command, gitlab: Forge) -> None:
    done = _comment(command, gitlab, PROD, GITLAB_TOKEN=None)
    assert (done.returncode, done.stdout) == (0, "<!-- highwater rehearsal: Prod -->\n### DynamoDB capacity, Prod\n")
    assert done.stderr == (
        "highwater comment: no comment on the merge request: GITLAB_TOKEN is not set; the rehearsal is on standard "
        f"output; {GITLAB_HINT}\n"
    )
    assert gitlab.asked == []


def test_job_of_no_request_shows_its_rehearsal(command: Command, github: Forge, gitlab: Forge) -> None:
    done = _comment(command, gitlab, PROD, CI_MERGE_REQUEST_IID=None)
    assert done.stdout.endswith("### DynamoDB capacity, Prod\n")
    assert done.stderr == (
        "highwater comment: no comment on the merge request: the pipeline is of no merge request; give the merge "
        f"request's number with --number; the rehearsal is on standard output; {GITLAB_HINT}\n"
    )
    (command.folder / "push.json").write_text("{}")
    done = _comment(command, github, PROD, GITHUB_EVENT_PATH="push.json", GITHUB_STEP_SUMMARY=None)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "### DynamoDB capacity, Prod")
    done = _comment(command, github, UNCHANGED.format(stage="Prod"), GITHUB_EVENT_PATH="push.json")
    assert (done.returncode, done.stdout) == (0, "")
    assert "--number; nothing changed; " in done.stderr
    assert not (command.folder / "summary.md").exists()


def test_rate_limit_is_no_missing_permission(command: Command, forge: Forge) -> None:
    forge.scripted["GET"] = [(403, {"Retry-After": "0"}, {"message": "secondary rate limit"})]
    assert _comment(command, forge, PROD).stdout == "Prod: posted\n"
    forge.scripted["GET"] = [(403, {"Retry-After": "3600"}, {"message": "secondary rate limit"})]
    path = GITHUB_NOTES if forge.kind == "github" else "/user"
    assert refused(_comment(command, forge, PROD)) == (
        f"highwater comment: GET {forge.address}{path}: answered 403: secondary rate limit; it asks to wait 3,600 s; "
        "run this again later"
    )


def test_service_that_cannot_be_reached_is_told_in_a_line(command: Command, forge: Forge) -> None:
    variable = "GITHUB_API_URL" if forge.kind == "github" else "CI_API_V4_URL"
    first = "POST {}/graphql" if forge.kind == "github" else "GET {}/user"
    with HeldPort() as held:
        address = f"http://127.0.0.1:{held.port}"
    done = _comment(command, forge, PROD, **{variable: address})
    assert refused(done) == (
        f"highwater comment: {first.format(address)}: cannot be reached: Connection refused; check {variable} and the "
        "network"
    )
    done = _comment(command, forge, PROD, **{variable: "api.example.com"})
    assert refused(done) == (
        f"highwater comment: {variable}: is 'api.example.com', expected the address of an API, such as https://HOST/api"
    )


@pytest.mark.parametrize("text", [f"{TOKEN}\nX-More: 1", f"{TOKEN}\x7f", f"{TOKEN}ü"])
def test_token_that_is_no_header_is_refused_unseen(command: Command, forge: Forge, text: str) -> None:
    variable = "GITHUB_TOKEN" if forge.kind == "github" else "GITLAB_TOKEN"
    done = _comment(command, forge, PROD, **{variable: text})
    assert refused(done) == (
        "highwater comment: the token has characters that no token has, such as a line break; store it again"
    )


@pytest.mark.parametrize("status", [302, 400, 401, 403])
def test_token_is_never_printed(command: Command, forge: Forge, status: int) -> None:
    path = GITHUB_NOTES if forge.kind == "github" else "/user"
    forge.scripted["GET"] = [(status, {}, {"message": f"token {TOKEN}", "errors": [TOKEN]})]
    in_job = replace(command, variables=job(forge, command.folder))
    done = in_job("--debug", "comment", "-", f"--{forge.kind}", given=PROD)
    assert f"GET {forge.address}{path}: answered {status}: token *** ['***']" in done.stderr
    assert TOKEN not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("options", "text", "message"),
    [
        ((), PROD, "give --github or --gitlab"),
        (("--github", "--gitlab"), PROD, "give either --github or --gitlab"),
        (
            ("--github", "--artifact-url", "javascript:x"),
            PROD,
            "--artifact-url: 'javascript:x' is no address; expected http:// or https://, without blanks and <>",
        ),
        (
            ("--github", "--artifact-url", "https://example.com/ x"),
            PROD,
            "--artifact-url: 'https://example.com/ x' is no address; expected http:// or https://, without blanks and "
            "<>",
        ),
        (("--github", "--name", "x" * 101), PROD, "--name: has 101 characters, allowed are 100"),
        (
            ("--github",),
            "{}",
            "-: does not begin with the hidden line of a rehearsal; make it with: highwater rehearse ... --format "
            "markdown",
        ),
        (
            ("--github",),
            PROD,
            "GITHUB_REPOSITORY: is '', expected OWNER/NAME; GitHub Actions sets it, elsewhere set it",
        ),
        (
            ("--gitlab",),
            PROD,
            "CI_PROJECT_ID: is not set, expected the project's number or path; GitLab CI sets it, elsewhere set it",
        ),
    ],
)
def test_misuse_is_refused_in_a_line(command: Command, options: tuple[str, ...], text: str, message: str) -> None:
    outside = replace(command, variables=dict.fromkeys(OF_JOBS))
    done = outside("comment", "-", *options, given=text)
    assert refused(done) == f"highwater comment: {message}"


def test_variables_that_are_not_what_they_should_be_are_refused(command: Command, github: Forge, gitlab: Forge) -> None:
    assert refused(_comment(command, github, PROD, GITHUB_EVENT_PATH=None)) == (
        "highwater comment: GITHUB_EVENT_PATH: is not set; outside of GitHub Actions give --number"
    )
    (command.folder / "broken.json").write_text("{")
    assert refused(_comment(command, github, PROD, GITHUB_EVENT_PATH="broken.json")) == (
        "highwater comment: GITHUB_EVENT_PATH: 'broken.json' cannot be read: it is not valid JSON; outside of GitHub "
        "Actions give --number"
    )
    assert refused(_comment(command, gitlab, PROD, CI_MERGE_REQUEST_IID="7/../8")) == (
        "highwater comment: CI_MERGE_REQUEST_IID: is '7/../8', expected a number"
    )
    assert refused(_comment(command, github, PROD, GITHUB_REPOSITORY="shop/infra/..")) == (
        "highwater comment: GITHUB_REPOSITORY: is 'shop/infra/..', expected OWNER/NAME; GitHub Actions sets it, "
        "elsewhere set it"
    )
    assert refused(_comment(command, github, PROD, GITHUB_TOKEN="", GITHUB_STEP_SUMMARY="no/such")) == (
        "highwater comment: GITHUB_STEP_SUMMARY: no/such: cannot be written: No such file or directory"
    )


def test_file_that_cannot_be_read_is_refused(command: Command) -> None:
    assert refused(command("comment", "none.md", "--github")) == (
        "highwater comment: none.md: cannot be read: No such file or directory"
    )
    (command.folder / "latin.md").write_bytes(b"\xff")
    assert refused(command("comment", "latin.md", "--github")) == (
        "highwater comment: latin.md: cannot be read: it is not a UTF-8 text file"
    )
    assert refused(command("comment", "-", "--github", closed=(0,))) == (
        "highwater comment: -: standard input is closed; give the rehearsal to it, or name its file"
    )


def test_project_of_gitlab_is_asked_by_its_number(command: Command, gitlab: Forge) -> None:
    _comment(command, gitlab, PROD)
    assert gitlab.asked == [("GET", "/user"), ("GET", GITLAB_NOTES), ("POST", GITLAB_NOTES)]
