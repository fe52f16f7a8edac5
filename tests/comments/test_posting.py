"""Comments on a pull or merge request: found, written, left and deleted, against a stand-in of both services."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from highwater_lab.comments.documents import Document
from highwater_lab.comments.github import GitHub
from highwater_lab.comments.gitlab import GitLab
from highwater_lab.comments.posting import post_documents
from highwater_lab.comments.service import CommentError, MayNotWriteError
from tests.comments.forge import GITHUB_NOTES, GITLAB_NOTES, THEIRS, TOKEN, Forge, serving

KINDS = ("github", "gitlab")
PROD = Document("Prod", is_changed=True, text="### Prod\n")
BETA = Document("Beta", is_changed=True, text="### Beta\n")
SAME = Document("Prod", is_changed=False, text="### Prod\n")
OLD = "<!-- highwater rehearsal: Prod -->\n<!-- highwater run: 5.1 -->\n### Earlier\n"
EQUAL = "<!-- highwater rehearsal: Prod -->\n<!-- highwater run: 5.1 -->\n### Prod\n"
# what GitHub says of the token, before the comments
VIEWER: list[tuple[int, dict[str, str], Any]] = [(200, {}, {"data": {"viewer": {"login": "github-actions[bot]"}}})]


@pytest.fixture(params=KINDS)
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
def paused() -> list[float]:
    """How long was waited, in seconds; nobody really waits."""
    return []


def _nobody_waits(seconds: float) -> None:
    pytest.fail(f"waited {seconds} s")


def _open(forge: Forge, paused: list[float] | None = None, *, run: int = 9, **variables: str) -> GitHub | GitLab:
    pause = _nobody_waits if paused is None else paused.append
    if forge.kind == "github":
        environment = {
            "GITHUB_TOKEN": TOKEN,
            "GITHUB_REPOSITORY": "shop/infra",
            "GITHUB_API_URL": forge.address,
            "GITHUB_RUN_ID": str(run),
            "GITHUB_RUN_ATTEMPT": "1",
        }
        return GitHub(environment | variables, 7, pause=pause, now=lambda: 1_000.0)
    environment = {
        "GITLAB_TOKEN": TOKEN,
        "CI_API_V4_URL": forge.address,
        "CI_PROJECT_ID": "42",
        "CI_MERGE_REQUEST_IID": "7",
        "CI_PIPELINE_ID": str(run),
        "CI_JOB_ID": "1",
    }
    return GitLab(environment | variables, pause=pause, now=lambda: 1_000.0)


def _post(forge: Forge, *documents: Document, **more: Any) -> list[str]:
    name = more.pop("name", "")
    return [done for _, done in post_documents(_open(forge, **more), documents, name=name)]


def test_first_run_posts_a_comment_for_each_stage(forge: Forge) -> None:
    assert _post(forge, BETA, PROD) == ["posted", "posted"]
    assert forge.bodies() == [
        "<!-- highwater rehearsal: Beta -->\n<!-- highwater run: 9.1 -->\n### Beta\n",
        "<!-- highwater rehearsal: Prod -->\n<!-- highwater run: 9.1 -->\n### Prod\n",
    ]
    assert forge.tokens == {TOKEN if forge.kind == "gitlab" else f"Bearer {TOKEN}"}


def test_next_run_replaces_the_comment_of_its_stage(forge: Forge) -> None:
    forge.has(OLD)
    forge.has(OLD.replace("Prod", "Beta"))
    assert _post(forge, BETA, PROD) == ["updated", "updated"]
    assert [body.splitlines()[1:] for body in forge.bodies()] == [
        ["<!-- highwater run: 9.1 -->", "### Prod"],
        ["<!-- highwater run: 9.1 -->", "### Beta"],
    ]


def test_equal_comment_is_not_edited(forge: Forge) -> None:
    forge.has(EQUAL.replace("\n", "\r\n").strip())
    assert _post(forge, PROD) == ["left, as the comment says the same"]
    assert forge.written() == []


@pytest.mark.parametrize("document", [PROD, SAME], ids=["changed", "unchanged"])
def test_run_that_is_late_leaves_the_comment_of_a_later_one(forge: Forge, document: Document) -> None:
    forge.has(OLD.replace("5.1", "10.1"))
    assert _post(forge, document) == ["left, as the comment is of the later run 10"]
    assert forge.written() == []


def test_repetition_of_a_run_counts_as_later_than_the_run(forge: Forge) -> None:
    forge.has(OLD.replace("5.1", "9.2"))
    assert _post(forge, PROD) == ["left, as the comment is of the later run 9"]
    forge.comments.clear()
    forge.has(OLD.replace("5.1", "9.0"))
    assert _post(forge, PROD) == ["updated"]


def test_comment_without_a_run_is_replaced_and_a_command_without_one_replaces(forge: Forge) -> None:
    forge.has("<!-- highwater rehearsal: Prod -->\n### Earlier\n")
    assert _post(forge, PROD) == ["updated"]
    variables = {"GITHUB_RUN_ID": "", "CI_PIPELINE_ID": ""}
    assert _post(forge, Document("Prod", is_changed=True, text="### By hand\n"), **variables) == ["updated"]
    assert forge.bodies() == ["<!-- highwater rehearsal: Prod -->\n### By hand\n"]


def test_stage_in_which_nothing_changed_has_no_comment(forge: Forge) -> None:
    assert _post(forge, SAME) == ["nothing changed, so there is no comment"]
    forge.has(OLD)
    assert _post(forge, SAME) == ["nothing changed, so the comment is deleted"]
    assert forge.comments == {}


def test_stage_that_is_no_longer_in_the_app_has_no_comment(forge: Forge) -> None:
    forge.has(OLD)
    forge.has(OLD.replace("Prod", "Gone"))
    forge.has(OLD.replace("Prod", "Later").replace("5.1", "10.1"))
    assert _post(forge, PROD) == [
        "updated",
        "nothing changed, so the comment is deleted",
        "left, as the comment is of the later run 10",
    ]
    assert [body.splitlines()[0] for body in forge.bodies()] == [
        "<!-- highwater rehearsal: Prod -->",
        "<!-- highwater rehearsal: Later -->",
    ]


def test_comments_of_others_are_left_whatever_they_say(forge: Forge) -> None:
    theirs = forge.has(EQUAL, THEIRS)
    forge.has(OLD, {"id": None, "login": None})
    assert _post(forge, PROD) == ["posted"]
    assert _post(forge, SAME) == ["nothing changed, so the comment is deleted"]
    assert forge.comments[theirs]["body"] == EQUAL
    assert len(forge.comments) == 2


def test_comment_whose_author_is_gone_is_nobodys() -> None:
    for kind in KINDS:
        with serving(Forge(kind)) as forge:
            number = forge.has(OLD)
            forge.comments[number] |= {"user": None, "author": None}
            assert _post(forge, PROD) == ["posted"]


def test_marker_in_the_middle_of_our_own_comment_does_not_count(forge: Forge) -> None:
    quoted = forge.has("As it was:\n" + "".join(f"> {line}\n" for line in OLD.splitlines()))
    after_a_line = forge.has(f"\n{OLD}")
    assert _post(forge, PROD) == ["posted"]
    assert {quoted, after_a_line} < set(forge.comments)


@pytest.mark.parametrize("page", [30, 100])
@pytest.mark.parametrize("where", ["first", "last"])
def test_comment_is_found_on_any_page(forge: Forge, page: int, where: str) -> None:
    forge.page = page
    if where == "first":
        forge.has(OLD)
    for number in range(250):
        forge.has(f"comment {number}", THEIRS)
    if where == "last":
        forge.has(OLD)
    assert _post(forge, PROD) == ["updated"]
    assert len(forge.bodies()) == 1
    path = GITHUB_NOTES if forge.kind == "github" else GITLAB_NOTES
    assert forge.asked.count(("GET", path)) == -(-251 // page)


def test_pages_end_at_a_last_one_that_is_full(forge: Forge) -> None:
    for number in range(99):
        forge.has(f"comment {number}", THEIRS)
    forge.has(OLD)
    assert _post(forge, PROD) == ["updated"]


def test_of_several_comments_the_last_is_kept(forge: Forge) -> None:
    first, last = forge.has(OLD), forge.has(OLD)
    late = forge.has(OLD.replace("5.1", "4.1"))
    assert _post(forge, PROD) == ["updated; duplicates deleted: 2"]
    assert last in forge.comments
    assert not {first, late} & set(forge.comments)


def test_comment_that_is_deleted_meanwhile_is_no_error(forge: Forge) -> None:
    forge.has(OLD)
    forge.scripted["DELETE"] = [(404, {}, {"message": "404 Not found"})]
    assert _post(forge, SAME) == ["nothing changed, so the comment is deleted"]


def test_apps_with_names_leave_each_others_comments_alone(forge: Forge) -> None:
    forge.has(OLD)
    assert _post(forge, PROD, name="shop -->") == ["posted"]
    assert _post(forge, PROD, BETA, name="cart") == ["posted", "posted"]
    assert _post(forge, SAME, name="shop -->") == ["nothing changed, so the comment is deleted"]
    assert [body.splitlines()[0] for body in forge.bodies()] == [
        "<!-- highwater rehearsal: Prod -->",
        "<!-- highwater rehearsal: Prod; cart -->",
        "<!-- highwater rehearsal: Beta; cart -->",
    ]


@pytest.mark.parametrize("stage", ["a/b", "a--%3Eb", "%0A", "", "Gr%C3%B6%C3%9Fe", "a b"])
def test_stages_with_odd_names_are_found_again(forge: Forge, stage: str) -> None:
    forge.has(OLD)
    assert _post(forge, PROD, Document(stage, is_changed=True, text="### One\n"))[1] == "posted"
    assert _post(forge, PROD, Document(stage, is_changed=True, text="### Two\n"))[1] == "updated"
    assert len(forge.bodies()) == 2


def test_comment_is_cut_to_what_the_service_takes(forge: Forge) -> None:
    forge.most = 65_536 if forge.kind == "github" else 1_000_000
    rows = [f"| T{number:06} | 1 |" for number in range(90_000)]
    text = "\n".join(["### Prod", "", "| table | USD |", "| --- | ---: |", *rows, "", "<sub>.</sub>", ""])
    assert _post(forge, Document("Prod", is_changed=True, text=text)) == ["posted"]
    (body,) = forge.bodies()
    assert forge.most - 40 < len(body) <= forge.most
    assert f" tables are left out:** a comment has at most {forge.most:,} characters." in body


def test_refusal_of_a_long_comment_is_told_whole(forge: Forge) -> None:
    forge.most = 10
    path = GITHUB_NOTES if forge.kind == "github" else GITLAB_NOTES
    with pytest.raises(CommentError) as refused:
        _post(forge, PROD)
    assert str(refused.value) == (
        f"POST {forge.address}{path}: answered 422: Validation Failed [{{'message': 'Body is too long'}}]"
    )


@pytest.mark.parametrize("viewer", ["a-person", "an-app[bot]", None])
def test_own_comments_are_those_of_the_tokens_owner(github: Forge, viewer: str | None) -> None:
    github.viewer = viewer
    own = github.has(OLD, {"id": 1, "login": viewer or "github-actions[bot]"})
    other = github.has(OLD, {"id": 3, "login": "github-actions" if viewer is None else "github-actions[bot]"})
    assert _post(github, SAME) == ["nothing changed, so the comment is deleted"]
    assert own not in github.comments
    assert other in github.comments


class EnterpriseServer(Forge):
    """A server of one's own, whose API is below a path."""

    def answer(self, method: str, target: str, body: Any) -> tuple[int, dict[str, str], Any]:
        """Answer as the public service, at other addresses."""
        assert target == "/api/graphql" or target.startswith("/api/v3/repos/")
        return super().answer(method, target.removeprefix("/api").removeprefix("/v3"), body)


def test_graphql_of_an_enterprise_server_is_beside_its_v3() -> None:
    with serving(EnterpriseServer("github")) as forge:
        opened = _open(forge, GITHUB_API_URL=f"{forge.address}/api/v3/")
        assert [done for _, done in post_documents(opened, [PROD])] == ["posted"]


def test_note_of_the_system_is_not_ours() -> None:
    with serving(Forge("gitlab")) as forge:
        forge.has(OLD, system=True)
        assert _post(forge, PROD) == ["posted"]


@pytest.mark.parametrize("status", [401, 403, 404])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_token_that_may_not_write_is_told_apart(forge: Forge, status: int, method: str) -> None:
    forge.scripted[method] = [
        *(VIEWER if (forge.kind, method) == ("github", "POST") else []),
        (status, {}, {"message": "Resource not accessible by integration"}),
    ]
    with pytest.raises(MayNotWriteError) as refused:
        _post(forge, PROD)
    place = "/user" if (forge.kind, method) == ("gitlab", "GET") else None
    path = place or (GITHUB_NOTES if forge.kind == "github" else GITLAB_NOTES)
    assert str(refused.value) == (
        f"{method} {forge.address}{path}: answered {status}: Resource not accessible by integration"
    )


@pytest.mark.parametrize(
    ("status", "headers", "message", "seconds"),
    [
        (429, {"Retry-After": "7"}, "slow", 7),
        (403, {"Retry-After": "7"}, "You have exceeded a secondary rate limit", 7),
        (403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1042"}, "API rate limit exceeded", 42),
        (429, {"RateLimit-Remaining": "0", "RateLimit-Reset": "1042"}, "Retry later", 42),
        (429, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "900"}, "API rate limit exceeded", 1),
        (403, {}, "You have exceeded a secondary rate limit", 60),
        (429, {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, "slow", 60),
    ],
)
def test_rate_limit_is_waited_for(
    forge: Forge, paused: list[float], status: int, headers: dict[str, str], message: str, seconds: float
) -> None:
    forge.has(OLD)
    forge.scripted["DELETE"] = [(status, headers, {"message": message})]
    assert [done for _, done in post_documents(_open(forge, paused), [SAME])] == [
        "nothing changed, so the comment is deleted"
    ]
    assert paused == [seconds]
    assert forge.comments == {}


@pytest.mark.parametrize("waits", [["301"], ["200", "101"], ["0"] * 10])
def test_rate_limit_is_not_waited_for_without_end(forge: Forge, paused: list[float], waits: Sequence[str]) -> None:
    number = forge.has(OLD)
    forge.scripted["DELETE"] = [(429, {"Retry-After": each}, {"message": "slow down"}) for each in waits]
    with pytest.raises(CommentError) as refused:
        list(post_documents(_open(forge, paused), [SAME]))
    path = "/repos/shop/infra/issues/comments" if forge.kind == "github" else GITLAB_NOTES
    assert str(refused.value) == (
        f"DELETE {forge.address}{path}/{number}: answered 429: slow down; it asks to wait {waits[-1]} s; run this "
        "again later"
    )
    assert not isinstance(refused.value, MayNotWriteError)
    assert paused == [float(each) for each in waits[:-1]]


def test_failure_of_the_service_is_tried_again(forge: Forge, paused: list[float]) -> None:
    forge.has(OLD)
    forge.scripted["DELETE"] = [(502, {}, b"<html>bad gateway</html>"), (503, {}, b"")]
    opened = _open(forge, paused)
    assert [done for _, done in post_documents(opened, [SAME])] == ["nothing changed, so the comment is deleted"]
    assert paused == [2, 4]


def test_failure_while_a_comment_is_written_is_not_tried_again_as_there_could_be_two(
    forge: Forge, paused: list[float]
) -> None:
    forge.scripted["POST"] = [*(VIEWER if forge.kind == "github" else []), (502, {}, b"<html>bad gateway</html>")]
    path = GITHUB_NOTES if forge.kind == "github" else GITLAB_NOTES
    with pytest.raises(CommentError) as refused:
        list(post_documents(_open(forge, paused), [PROD]))
    assert str(refused.value) == f"POST {forge.address}{path}: answered 502: Bad Gateway; run this again"
    assert paused == []


def test_failure_that_lasts_is_told(forge: Forge, paused: list[float]) -> None:
    forge.scripted["GET"] = [(500, {}, {"message": "boom"})] * 3
    path = GITHUB_NOTES if forge.kind == "github" else "/user"
    with pytest.raises(CommentError) as refused:
        list(post_documents(_open(forge, paused), [PROD]))
    assert str(refused.value) == f"GET {forge.address}{path}: answered 500: boom; run this again"
    assert forge.written() == []


def test_token_is_not_sent_to_another_host(github: Forge) -> None:
    with serving(Forge("github")) as other:
        for number in range(150):
            github.has(f"comment {number}")
        github.next_page_at = other.address
        with pytest.raises(CommentError) as refused:
            _post(github, PROD)
        assert str(refused.value) == (
            f"GET {github.address}{GITHUB_NOTES}: answered 200: the next page is at another host, to which no token is "
            "sent; check GITHUB_API_URL"
        )
        github.scripted["GET"] = [(302, {"Location": f"{other.address}{GITHUB_NOTES}"}, None)]
        with pytest.raises(CommentError) as refused:
            _post(github, PROD)
        assert str(refused.value) == f"GET {github.address}{GITHUB_NOTES}: answered 302: Found"
        assert other.asked == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<html>log in</html>", "the answer is not JSON; check "),
        (b'{"comments": []}', "answered 200: what is not a list of comments; check "),
        (b"[1]", "answered 200: what is not a list of comments; check "),
    ],
)
def test_answer_of_something_else_is_told(forge: Forge, content: bytes, message: str) -> None:
    forge.scripted["GET"] = [*([(200, {}, {"id": 1})] if forge.kind == "gitlab" else []), (200, {}, content)]
    path, variable = (GITHUB_NOTES, "GITHUB_API_URL") if forge.kind == "github" else (GITLAB_NOTES, "CI_API_V4_URL")
    with pytest.raises(CommentError) as refused:
        _post(forge, PROD)
    query = "?per_page=100" if "JSON" in message else ""
    assert str(refused.value) == f"GET {forge.address}{path}{query}: {message}{variable}"


def test_connection_that_breaks_is_told(forge: Forge) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}"

        accepted = []

        def hang_up() -> None:
            connection = server.accept()[0]
            accepted.append(connection)
            # it still takes what is sent, so that the client always sees the same end
            connection.shutdown(socket.SHUT_WR)

        thread = threading.Thread(target=hang_up)
        thread.start()
        forge.address = address
        with pytest.raises(CommentError) as refused:
            _post(forge, PROD)
        thread.join()
        accepted[0].close()
    first = f"POST {address}/graphql" if forge.kind == "github" else f"GET {address}/user"
    variable = "GITHUB_API_URL" if forge.kind == "github" else "CI_API_V4_URL"
    assert str(refused.value) == (
        f"{first}: cannot be reached: Remote end closed connection without response; check {variable} and the network"
    )


def test_owner_that_gitlab_does_not_name_is_told() -> None:
    with serving(Forge("gitlab", scripted={"GET": [(200, {}, [])]})) as forge:
        with pytest.raises(CommentError) as refused:
            _post(forge, PROD)
        assert str(refused.value) == "GET /user: does not say who the token's owner is; check CI_API_V4_URL"


def test_token_is_in_no_message_and_no_representation(forge: Forge) -> None:
    forge.scripted["GET"] = [(400, {}, {"message": f"bad token {TOKEN}"})]
    opened = _open(forge)
    with pytest.raises(CommentError) as refused:
        list(post_documents(opened, [PROD]))
    assert str(refused.value).endswith("answered 400: bad token ***")
    assert TOKEN not in repr(opened._service)
    forge.scripted["GET"] = [(400, {}, {"message": "x" * 290 + TOKEN})]
    with pytest.raises(CommentError) as refused:
        list(post_documents(opened, [PROD]))
    assert str(refused.value).endswith(f"answered 400: {'x' * 290}***")


EVENTS: dict[str, tuple[Any, int | None]] = {
    "pull_request": ({"number": 7, "pull_request": {"number": 7}}, 7),
    "comment on a pull request": ({"issue": {"number": 8, "pull_request": {"url": "x"}}}, 8),
    "comment on an issue": ({"issue": {"number": 8}}, None),
    "workflow_run": ({"workflow_run": {"pull_requests": [{"number": 9}]}}, 9),
    "workflow_run of a fork": ({"workflow_run": {"pull_requests": []}}, None),
    "push": ({"ref": "refs/heads/main"}, None),
    "merge_group": ({"merge_group": {"head_sha": "a"}}, None),
    "odd": ([1], None),
}


@pytest.mark.parametrize(("event", "number"), EVENTS.values(), ids=EVENTS)
def test_number_is_that_of_the_events_pull_request(event: Any, number: int | None, tmp_path: Path) -> None:
    (tmp_path / "event.json").write_text(json.dumps(event))
    variables = {"GITHUB_REPOSITORY": "shop/infra", "GITHUB_TOKEN": TOKEN}
    variables["GITHUB_EVENT_PATH"] = str(tmp_path / "event.json")
    if number is None:
        with pytest.raises(MayNotWriteError) as refused:
            GitHub(variables)
        assert str(refused.value) == "the event is of no pull request; give the pull request's number with --number"
    else:
        assert GitHub(variables)._comments == f"/repos/shop/infra/issues/{number}/comments"


def test_merge_request_of_a_fork_is_in_the_project_that_it_is_merged_into() -> None:
    variables = {"CI_PROJECT_ID": "99", "CI_MERGE_REQUEST_PROJECT_ID": "a/b", "CI_MERGE_REQUEST_IID": "7"}
    opened = GitLab(variables | {"GITLAB_TOKEN": TOKEN})
    assert opened._notes == "/projects/a%2Fb/merge_requests/7/notes"
