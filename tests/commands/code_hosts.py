"""Stand-ins of `gh` and `glab` on the path: they record arguments and standard input, and answer as the real ones.

What they print, and with which exit status they end, is that of cli/cli (source of 2024-10-24: pkg/cmd/api/api.go,
pkg/cmd/pr/view) and of gitlab-org/cli (source of 2025-12-12: internal/commands/api/api.go).
"""

from __future__ import annotations

import itertools
import json
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TOKEN = "secret-token-of-the-job"
_NOTES = "projects/42/merge_requests/7/notes"
# of each tool: its variables, where comments are posted, where one is edited, and by which method
_SERVICES = {
    "gh": ("GH_TOKEN", "GH_HOST", "repos/shop/infra/issues/7/comments", "repos/shop/infra/issues/comments/", "PATCH"),
    "glab": ("GITLAB_TOKEN", "GITLAB_HOST", _NOTES, f"{_NOTES}/", "PUT"),
}
# the only program of jq that the stand-in knows; it was tried with jq 1.6 and gojq 0.12.11, which gh has built in
_JQ = re.compile(
    r"""\.comments\[\]\s+\| select\(\.viewerDidAuthor and \(\.body \| startswith\("(.*)"\)\)\)"""
    r""" \| \(\.body \| gsub\("\\r"; ""\)\) as \$body"""
    r"""\s+\| \[\(\.url \| split\("-"\) \| last\), \(\$body \| split\("\\n"\) \| first\), \$body\] \| @tsv"""
)


@dataclass
class CodeHost:
    """The comments of pull request 7 of `shop/infra`, or of merge request 7 of project 42.

    Attributes:
        kind: `gh` or `glab`.
        state: The file of its state.
    """

    kind: str
    state: Path

    @classmethod
    def installed(cls, kind: str, folder: Path) -> CodeHost:
        """Return a request without comments, and put its tool into a folder."""
        host = cls(kind, folder / f"{kind}.json")
        host._write({"comments": [], "calls": [], "refusals": {}})
        tool = folder / kind
        tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{__file__}" {kind} "{host.state}" "$@"\n')
        tool.chmod(0o755)
        return host

    def _read(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.state.read_text())
        return document

    def _write(self, document: dict[str, Any]) -> None:
        self.state.write_text(json.dumps(document))

    def has(self, body: str, *, own: bool = True) -> None:
        """Add a comment, of the token's owner or of somebody else."""
        document = self._read()
        document["comments"].append({"id": len(document["comments"]) + 11, "body": body, "own": own})
        self._write(document)

    def refuses(self, method: str, *messages: str) -> None:
        """Let the next requests of a method end with messages."""
        self._write(self._read() | {"refusals": {method: list(messages)}})

    def bodies(self) -> list[str]:
        """The texts of the comments, in their order."""
        return [each["body"] for each in self._read()["comments"]]

    def calls(self) -> list[list[str]]:
        """The arguments of each call."""
        return [call[0] for call in self._read()["calls"]]

    def written(self) -> list[str]:
        """What was done to comments, by method."""
        silent = [call for call in self.calls() if "--silent" in call]
        return [call[call.index("-X") + 1] if "-X" in call else "POST" for call in silent]

    def environments(self) -> set[tuple[str | None, str | None]]:
        """The token and the host of each call."""
        return {(call[2], call[3]) for call in self._read()["calls"]}


def _rows(comments: list[dict[str, Any]], program: str) -> str:
    """What jq prints of comments."""
    found = _JQ.fullmatch(program)
    assert found is not None, program
    rows = ""
    for each in comments:
        body = each["body"].replace("\r", "")
        if each["own"] and body.startswith(found[1]):
            escaped = body.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")
            rows += f"{each['id']}\t{body.splitlines()[0]}\t{escaped}\n"
    return rows


def _pages(comments: list[dict[str, Any]]) -> str:
    """What glab prints of comments: a list for each page, here of two, the newest first."""
    notes = [{"id": each["id"], "body": each["body"], "author": {"id": 1 if each["own"] else 2}} for each in comments]
    pages = [notes[::-1][at : at + 2] for at in range(0, len(notes), 2)] or [[]]
    return "".join(json.dumps(page, separators=(",", ":")) for page in pages)


def _answer(kind: str, arguments: list[str], state: dict[str, Any]) -> int:
    """Do what a tool is called for, and return its exit status."""
    token, host, every, one, edit = _SERVICES[kind]
    comments, options = state["comments"], dict(itertools.pairwise(arguments))
    text = sys.stdin.read() if options.get("-F") == "body=@-" else None
    state["calls"].append([arguments, text, os.environ.get(token), os.environ.get(host)])
    method = options.get("-X", "GET" if text is None else "POST")
    if state["refusals"].get(method):
        print(state["refusals"][method].pop(0), file=sys.stderr)
        return 1
    match arguments:
        case ["pr", "view", "7", "--repo", "shop/infra", "--json", "comments", "--jq", program] if kind == "gh":
            sys.stdout.write(_rows(comments, program))
        case ["api", "user"] if kind == "glab":
            sys.stdout.write('{"id":1}')
        case ["api", "--paginate", path] if kind == "glab" and path == every:
            sys.stdout.write(_pages(comments))
        case ["api", "--silent", path, "-F", "body=@-"] if path == every:
            comments.append({"id": len(state["calls"]) + 100, "body": text, "own": True})
        case ["api", "--silent", "-X", _, path, *_] if path.startswith(one):
            (found,) = [each for each in comments if path == f"{one}{each['id']}"]
            if method == "DELETE":
                comments.remove(found)
            else:
                assert (method, text is None) == (edit, False)
                found["body"] = text
        case _:
            raise AssertionError(arguments)
    return 0


if __name__ == "__main__":
    _file = Path(sys.argv[2])
    _state = json.loads(_file.read_text())
    _status = _answer(sys.argv[1], sys.argv[3:], _state)
    _file.write_text(json.dumps(_state))
    sys.exit(_status)
