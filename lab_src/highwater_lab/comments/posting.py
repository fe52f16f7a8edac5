"""One comment for each stage: written, replaced, left or deleted, by what is there already."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from highwater_lab.comments.documents import UNKNOWN_RUN, Comment, Document, PipelineRun
from highwater_lab.report.app import marked


class PullRequest(Protocol):
    """A pull or merge request, of which one user's comments are looked at; its methods raise `CommentError`.

    Attributes:
        request: What the service calls it.
        most_characters: How long a comment may be.
        hint: Who may write, and with what permission.
        run: The run of the pipeline.
    """

    request: str
    most_characters: int
    hint: str
    run: PipelineRun

    def own_comments(self) -> Iterator[Comment]:
        """Yield the comments of the token's owner."""

    def post(self, body: str) -> None:
        """Write a comment."""

    def edit(self, comment: Comment, body: str) -> None:
        """Replace a comment's text."""

    def delete(self, comment: Comment) -> None:
        """Delete a comment."""


def post_documents(
    request: PullRequest, documents: Sequence[Document], *, name: str = "", link: str = ""
) -> Iterator[tuple[str, str]]:
    """Make the comments say what the documents say, and yield after each stage its name and what was done.

    A stage has one comment, of which there is none if nothing changed. A comment that says the same already is left,
    and so is one of a later run. Of several, the last is kept and the others are deleted. A comment on a stage that
    is in no document is deleted.

    Args:
        request: The pull or merge request.
        documents: The documents, one for each stage of the app.
        name: The app's name, if comments of several apps are on the request. Those of other names are left alone.
        link: An address of the whole documents, for comments that are cut.

    Raises:
        CommentError: From the service.
    """
    by_stage: dict[str, list[Comment]] = {}
    for comment in request.own_comments():
        if comment.subject is not None and comment.subject[1] == marked(name):
            by_stage.setdefault(comment.subject[0], []).append(comment)
    for document in documents:
        kept, deleted = _only_last(request, by_stage.pop(document.stage, []))
        done = _post(request, document, kept, name, link)
        yield document.stage, done + (f"; duplicates deleted: {deleted}" if deleted else "")
    for stage, comments in sorted(by_stage.items()):
        kept, _ = _only_last(request, comments)
        yield stage, _post(request, Document(stage, is_changed=False, text=""), kept, name, link)


def _only_last(request: PullRequest, comments: Sequence[Comment]) -> tuple[Comment | None, int]:
    """Delete all but the last comment; return it, and how many were deleted."""
    ordered = sorted(comments, key=lambda each: (each.run.number, each.run.attempt, each.id))
    for comment in ordered[:-1]:
        request.delete(comment)
    return (ordered[-1], len(ordered) - 1) if ordered else (None, 0)


def _post(request: PullRequest, document: Document, kept: Comment | None, name: str, link: str) -> str:
    """Bring one stage's comment up to date, and return what was done."""
    if kept is not None and request.run != UNKNOWN_RUN and request.run.is_before(kept.run):
        return f"left, as the comment is of the later run {kept.run.number}"
    if not document.is_changed:
        if kept is None:
            return "nothing changed, so there is no comment"
        request.delete(kept)
        return "nothing changed, so the comment is deleted"
    body = document.body(name=name, run=request.run, most=request.most_characters, link=link)
    if kept is None:
        request.post(body)
        return "posted"
    if kept.says(body):
        return "left, as the comment says the same"
    request.edit(kept, body)
    return "updated"
