"""Comments on a pull request of GitHub, and what a job of GitHub Actions says about itself."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from highwater_lab.comments.documents import Comment, PipelineRun
from highwater_lab.comments.service import CommentError, MayNotWriteError, Service

# whose comments they are that a job writes with the token which GitHub Actions gives it
_ACTIONS: Final = "github-actions[bot]"
_PUBLIC: Final = "https://api.github.com"


class GitHub:
    """A pull request.

    Attributes:
        run: The run of the workflow, by its id, which unlike its number grows over all workflows.
    """

    request = "pull request"
    # GitHub counts 65,536 characters
    most_characters = 65_536
    hint = "a fork's token may only read; otherwise the job needs permissions: pull-requests: write, and GITHUB_TOKEN"

    def __init__(
        self,
        environment: Mapping[str, str],
        number: int | None = None,
        *,
        pause: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Find the pull request.

        Args:
            environment: The variables of the job: GITHUB_TOKEN, GITHUB_REPOSITORY, GITHUB_API_URL, GITHUB_EVENT_PATH,
                GITHUB_RUN_ID and GITHUB_RUN_ATTEMPT.
            number: The number of the pull request; by default that of the event.
            pause: Waits for so many seconds.
            now: Returns the seconds since 1970.

        Raises:
            MayNotWriteError: There is no token, or the event is of no pull request.
            CommentError: A variable, or the file of the event, is missing or not what it should be.
        """
        repository = environment.get("GITHUB_REPOSITORY", "")
        if not re.fullmatch(r"[\w.-]+/[\w.-]+", repository):
            raise CommentError(
                f"GITHUB_REPOSITORY: is {repository!r}, expected OWNER/NAME; GitHub Actions sets it, elsewhere set it"
            )
        event = {} if number is not None else _event(environment.get("GITHUB_EVENT_PATH", ""))
        found = _number(event) if number is None else number
        if found is None:
            raise MayNotWriteError("the event is of no pull request; give the pull request's number with --number")
        token = environment.get("GITHUB_TOKEN", "").strip()
        if not token:
            raise MayNotWriteError("GITHUB_TOKEN is not set")
        headers = {
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {token}",
            "X-GitHub-Api-Version": "2022-11-28",
        }
        self.run = PipelineRun.of_variables(environment, "GITHUB_RUN_ID", "GITHUB_RUN_ATTEMPT")
        self._repository = f"/repos/{repository}"
        self._comments = f"{self._repository}/issues/{found}/comments"
        self._service = Service(
            address=(environment.get("GITHUB_API_URL") or _PUBLIC).rstrip("/"),
            variable="GITHUB_API_URL",
            token=token,
            headers=headers,
            pause=pause,
            now=now,
        )

    def own_comments(self) -> Iterator[Comment]:
        """Yield the comments on the pull request that this token's owner wrote; raises `CommentError`."""
        author = self._author()
        for each in self._service.pages(f"{self._comments}?per_page=100"):
            if (each.get("user") or {}).get("login") == author:
                yield Comment(int(each["id"]), each.get("body") or "")

    def post(self, body: str) -> None:
        """Write a comment; raises `CommentError`."""
        self._service.ask("POST", self._comments, {"body": body})

    def edit(self, comment: Comment, body: str) -> None:
        """Replace a comment's text; raises `CommentError`."""
        self._service.ask("PATCH", f"{self._repository}/issues/comments/{comment.id}", {"body": body})

    def delete(self, comment: Comment) -> None:
        """Delete a comment, if it is still there; raises `CommentError`."""
        self._service.ask("DELETE", f"{self._repository}/issues/comments/{comment.id}", also=(404, 410))

    def _author(self) -> str:
        """Return the login of the token's owner; the token of a job cannot ask for it by `/user`."""
        place = f"{self._service.address.removesuffix('/v3')}/graphql"
        answer = self._service.ask("POST", place, {"query": "query { viewer { login } }"}, also=(401, 403, 404))
        try:
            return str(answer.document["data"]["viewer"]["login"])
        except (TypeError, KeyError):
            return _ACTIONS


def _event(path: str) -> dict[str, Any]:
    if not path:
        raise CommentError("GITHUB_EVENT_PATH: is not set; outside of GitHub Actions give --number")
    try:
        event = json.loads(Path(path).read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not valid JSON"
        raise CommentError(
            f"GITHUB_EVENT_PATH: {path!r} cannot be read: {reason}; outside of GitHub Actions give --number"
        ) from error
    return event if isinstance(event, dict) else {}


def _number(event: Mapping[str, Any]) -> int | None:
    """Return the number of the pull request that an event is of, `None` if it is of none."""
    issue = event.get("issue")
    following = event.get("workflow_run")
    requests = [
        event.get("pull_request"),
        issue if isinstance(issue, dict) and issue.get("pull_request") else None,
        *((following.get("pull_requests") or ()) if isinstance(following, dict) else ()),
    ]
    numbers = [each.get("number") for each in requests if isinstance(each, dict)]
    return next((number for number in numbers if isinstance(number, int)), None)
