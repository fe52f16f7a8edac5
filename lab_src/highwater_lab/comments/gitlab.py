"""Comments, which GitLab calls notes, on a merge request of GitLab."""

from __future__ import annotations

import re
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from highwater_lab.comments.documents import Comment, PipelineRun
from highwater_lab.comments.service import CommentError, MayNotWriteError, Service

_PUBLIC: Final = "https://gitlab.com/api/v4"


class GitLab:
    """A merge request.

    Attributes:
        run: The pipeline, by its id, with the job's id as the attempt, as a job that is repeated has a new one.
    """

    request = "merge request"
    most_characters = 1_000_000
    hint = (
        "a fork's pipeline has no token; otherwise the job needs GITLAB_TOKEN, an access token of the project with the "
        "scope api"
    )

    def __init__(
        self,
        environment: Mapping[str, str],
        number: int | None = None,
        *,
        pause: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Find the merge request.

        Args:
            environment: The variables of the job: GITLAB_TOKEN, CI_API_V4_URL, CI_PROJECT_ID, CI_MERGE_REQUEST_IID,
                CI_MERGE_REQUEST_PROJECT_ID, CI_PIPELINE_ID and CI_JOB_ID.
            number: The number of the merge request (IID); by default the pipeline's.
            pause: Waits for so many seconds.
            now: Returns the seconds since 1970.

        Raises:
            MayNotWriteError: There is no token, or the pipeline is of no merge request.
            CommentError: A variable is missing or not what it should be.
        """
        # a fork's pipeline runs in the fork, and its merge request is in the other project
        project = environment.get("CI_MERGE_REQUEST_PROJECT_ID") or environment.get("CI_PROJECT_ID", "")
        if not project:
            raise CommentError(
                "CI_PROJECT_ID: is not set, expected the project's number or path; GitLab CI sets it, elsewhere set it"
            )
        given = environment.get("CI_MERGE_REQUEST_IID", "") if number is None else str(number)
        if not given:
            raise MayNotWriteError("the pipeline is of no merge request; give the merge request's number with --number")
        if not re.fullmatch("[0-9]{1,18}", given):
            raise CommentError(f"CI_MERGE_REQUEST_IID: is {given!r}, expected a number")
        token = environment.get("GITLAB_TOKEN", "").strip()
        if not token:
            raise MayNotWriteError("GITLAB_TOKEN is not set")
        self.run = PipelineRun.of_variables(environment, "CI_PIPELINE_ID", "CI_JOB_ID")
        place = urllib.parse.quote(project, safe="")
        self._notes = f"/projects/{place}/merge_requests/{given}/notes"
        self._service = Service(
            address=(environment.get("CI_API_V4_URL") or _PUBLIC).rstrip("/"),
            variable="CI_API_V4_URL",
            token=token,
            headers={"PRIVATE-TOKEN": token},
            pause=pause,
            now=now,
        )

    def own_comments(self) -> Iterator[Comment]:
        """Yield the notes on the merge request that this token's owner wrote; raises `CommentError`."""
        author = self._service.ask("GET", "/user").document
        if not isinstance(author, dict) or "id" not in author:
            raise CommentError("GET /user: does not say who the token's owner is; check CI_API_V4_URL")
        for each in self._service.pages(f"{self._notes}?per_page=100"):
            if (each.get("author") or {}).get("id") == author["id"] and not each.get("system"):
                yield Comment(int(each["id"]), each.get("body") or "")

    def post(self, body: str) -> None:
        """Write a note; raises `CommentError`."""
        self._service.ask("POST", self._notes, {"body": body})

    def edit(self, comment: Comment, body: str) -> None:
        """Replace a note's text; raises `CommentError`."""
        self._service.ask("PUT", f"{self._notes}/{comment.id}", {"body": body})

    def delete(self, comment: Comment) -> None:
        """Delete a note, if it is still there; raises `CommentError`."""
        self._service.ask("DELETE", f"{self._notes}/{comment.id}", also=(404, 410))
