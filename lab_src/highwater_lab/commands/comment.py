"""`highwater comment`: posts a rehearsal on the pull or merge request that a job runs for."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from highwater.cli.terminal import say
from highwater_lab.commands.options import Misuse
from highwater_lab.comments.documents import Document, DocumentError, read_documents
from highwater_lab.comments.github import GitHub
from highwater_lab.comments.gitlab import GitLab
from highwater_lab.comments.posting import post_documents
from highwater_lab.comments.service import CommentError, MayNotWriteError
from highwater_lab.files import read_file

# GitHub shows a step summary of at most 1 MiB, and a character has at most four bytes
_MOST_OF_A_SUMMARY: Final = 262_144
_LONGEST_NAME: Final = 100


@click.command("comment", short_help="Post a rehearsal as comments on a pull or merge request.")
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--github", "on_github", is_flag=True, help="On a pull request of GitHub, from GitHub Actions.")
@click.option("--gitlab", "on_gitlab", is_flag=True, help="On a merge request of GitLab, from GitLab CI.")
@click.option("--number", type=click.IntRange(1, 10**9), help="Number of the request. By default the job's own.")
@click.option("--name", default="", help="Name of the app, if comments of several apps are on one request.")
@click.option("--artifact-url", "link", default="", help="Address of the whole document, for comments that are cut.")
def comment_command(file: Path, on_github: bool, on_gitlab: bool, number: int | None, name: str, link: str) -> None:
    """Post what `highwater rehearse --format markdown` printed to FILE, one comment for each stage.

    \b
    highwater rehearse cdk.out --against main --traffic traffic --format markdown > rehearsal.md
    highwater comment rehearsal.md --github

    A later run replaces the comment, or deletes it if nothing differs any more. FILE is - for standard input. The token
    is in GITHUB_TOKEN or GITLAB_TOKEN. One that may not write, as a fork has, is no error: the document then goes to
    the summary of the step (GitHub) or to standard output.

    Exit status: 0 fine, 2 misuse, or the service cannot be reached.
    """  # noqa: D301 - a real backspace character, after which click keeps the line breaks
    if on_github == on_gitlab:
        raise Misuse("give --github or --gitlab" if not on_github else "give either --github or --gitlab")
    name = name.strip()
    if len(name) > _LONGEST_NAME:
        raise Misuse(f"--name: has {len(name):,} characters, allowed are {_LONGEST_NAME}")
    if link and not re.fullmatch(r"https?://[^\s<>\\]+", link):
        raise Misuse(f"--artifact-url: {link!r} is no address; expected http:// or https://, without blanks and <>")
    service: type[GitHub | GitLab] = GitHub if on_github else GitLab
    left: dict[str, Document] = {}
    try:
        documents = read_documents(_read(file), str(file))
        left = {each.stage: each for each in documents}
        request = service(os.environ, number)
        for stage, done in post_documents(request, documents, name=name, link=link):
            left.pop(stage, None)
            # as in the hidden line: the logs of both services act on some lines of odd characters
            say(f"{stage or 'app'}: {done}")
    except MayNotWriteError as refused:
        where = _show_instead([each for each in left.values() if each.is_changed], on_github, name, link)
        command = click.get_current_context().command_path
        say(f"{command}: no comment on the {service.request}: {refused}; {where}; {service.hint}", err=True)
    except (CommentError, DocumentError) as error:
        raise Misuse(str(error)) from error


def _read(file: Path) -> str:
    if str(file) == "-" and sys.stdin is None:
        raise Misuse("-: standard input is closed; give the rehearsal to it, or name its file")
    try:
        return (sys.stdin.buffer.read() if str(file) == "-" else read_file(file)).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a UTF-8 text file"
        raise Misuse(f"{file}: cannot be read: {reason}") from error


def _show_instead(documents: Sequence[Document], on_github: bool, name: str, link: str) -> str:
    """Show documents where no token is needed; return where that is."""
    if not documents:
        return "nothing changed"
    summary = os.environ.get("GITHUB_STEP_SUMMARY", "") if on_github else ""
    if not summary:
        say("\n".join(each.body(name=name) for each in documents), nl=False)
        return "the rehearsal is on standard output"
    most = min(GitHub.most_characters, _MOST_OF_A_SUMMARY // len(documents))
    text = "\n".join(each.body(name=name, most=most, link=link) for each in documents)
    try:
        with Path(summary).open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")
    except OSError as error:
        raise Misuse(f"GITHUB_STEP_SUMMARY: {summary}: cannot be written: {error.strerror}") from error
    return "the rehearsal is in the summary of the step"
