"""What a comment says: the document of a stage, the hidden lines by which it is found again, and how it is cut."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from highwater.core import HighwaterError
from highwater_lab.report.app import BREAK, CHANGED, MARKER, UNCHANGED, cell, marked

# neither a stage nor a name holds a semicolon, as both stand there with hex numbers for odd characters
_MARKER: Final = re.compile(re.escape(MARKER).replace(re.escape("{stage}"), "([^;\n]*?)(?:; ([^;\n]*))?"))
_RUN: Final = re.compile(r"<!-- highwater run: ([0-9]{1,20})\.([0-9]{1,20}) -->")
_HOW_TO_MAKE: Final = "make it with: highwater rehearse ... --format markdown"


class DocumentError(HighwaterError, ValueError):
    """A text is not what `highwater rehearse --format markdown` prints."""


@dataclass(frozen=True, slots=True)
class PipelineRun:
    """The run of a pipeline that a comment is of; a later run is greater.

    Attributes:
        number: The number of the run, which grows within a repository.
        attempt: The number of its repetition, from 1; 0 if it is not known.
    """

    number: int
    attempt: int = 0

    @classmethod
    def of_variables(cls, environment: Mapping[str, str], number: str, attempt: str) -> PipelineRun:
        """Return the run that two variables tell; `UNKNOWN_RUN` if the first has no number."""
        found = [re.fullmatch("[0-9]{1,20}", environment.get(name, "")) for name in (number, attempt)]
        return UNKNOWN_RUN if found[0] is None else cls(int(found[0][0]), int(found[1][0]) if found[1] else 0)

    def is_before(self, other: PipelineRun) -> bool:
        """Whether this run began earlier than the other."""
        return (self.number, self.attempt) < (other.number, other.attempt)

    def __str__(self) -> str:
        return f"{self.number}.{self.attempt}"


# of a comment without a number, and of a command outside of pipelines
UNKNOWN_RUN: Final = PipelineRun(0)


@dataclass(frozen=True, slots=True)
class Document:
    """The rehearsal of one stage.

    Attributes:
        stage: The stage's name, as a hidden line has it; empty for stacks outside of stages.
        is_changed: Whether a table differs, or a limit is exceeded.
        text: What is to be read, without hidden lines.
    """

    stage: str
    is_changed: bool
    text: str

    def body(self, *, name: str = "", run: PipelineRun = UNKNOWN_RUN, most: int | None = None, link: str = "") -> str:
        """Return the text of the comment.

        Args:
            name: The app's name, if comments of several apps are on one request.
            run: The run that the comment is of.
            most: The number of characters that it may have, counted as UTF-16 code units; `None` for any number. If
                it is too long, the last tables are left out, each with all of its lines, and a line says so.
            link: An address of the whole document, for that line.
        """
        text = self.text
        if name:
            headline, _, rest = text.partition("\n")
            text = f"{headline} · {cell(name)}\n{rest}"
        stage = f"{self.stage}; {marked(name)}" if name else self.stage
        hidden = [MARKER.format(stage=stage)]
        if run != UNKNOWN_RUN:
            hidden.append(f"<!-- highwater run: {run} -->")
        head = "".join(f"{line}\n" for line in hidden)
        return head + (text if most is None else _cut(text, most - _length(head), most, link))


def read_documents(text: str, where: str) -> tuple[Document, ...]:
    """Return the documents in what `highwater rehearse --format markdown` printed.

    Raises `DocumentError`, which names *where*, if it is something else, or has two documents of one stage.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    starts = [match for match in re.finditer(rf"^{_MARKER.pattern}$", text, re.MULTILINE) if match[2] is None]
    if not starts or text[: starts[0].start()].strip():
        raise DocumentError(f"{where}: does not begin with the hidden line of a rehearsal; {_HOW_TO_MAKE}")
    documents: dict[str, Document] = {}
    ends = [*(match.start() for match in starts[1:]), len(text)]
    for start, end in zip(starts, ends, strict=True):
        stage = start[1]
        state, _, rest = text[start.end() + 1 : end].partition("\n")
        if state not in (CHANGED, UNCHANGED):
            raise DocumentError(
                f"{where}: the second line of {stage or 'the app'} is {state[:60]!r}, expected {CHANGED} or "
                f"{UNCHANGED}; {_HOW_TO_MAKE}"
            )
        if stage in documents:
            raise DocumentError(
                f"{where}: has two documents of {stage or 'the app'}; post those of each app by themselves, with --name"
            )
        documents[stage] = Document(stage, state == CHANGED, rest.strip("\n") + "\n")
    return tuple(documents.values())


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment that is on the request.

    Attributes:
        id: Its number at the service; a later comment has a greater one.
        body: Its whole text.
    """

    id: int
    body: str

    @property
    def subject(self) -> tuple[str, str] | None:
        """The stage and the app's name, as its first line has them; `None` if that is not a marker."""
        match = _MARKER.fullmatch(self._lines()[0])
        return None if match is None else (match[1], match[2] or "")

    @property
    def run(self) -> PipelineRun:
        """The run that it is of."""
        match = _RUN.fullmatch((*self._lines(), "")[1])
        return UNKNOWN_RUN if match is None else PipelineRun(int(match[1]), int(match[2]))

    def says(self, body: str) -> bool:
        """Whether a reader sees the same as in *body*: the run does not count, nor do blanks at the end of a line."""
        return self._seen() == Comment(0, body)._seen()

    def _lines(self) -> list[str]:
        return [line.rstrip() for line in self.body.replace("\r\n", "\n").split("\n")]

    def _seen(self) -> str:
        return "\n".join(line for line in self._lines() if not _RUN.fullmatch(line)).strip()


def _length(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _cut(text: str, most: int, stated: int, link: str) -> str:
    """Return a document of at most *most* characters: as many of its tables as fit, from the first, with a line."""
    if _length(text) <= most:
        return text
    lines = list(_owned_lines(text))
    tables = 1 + max((owner for _, owner in lines if owner is not None), default=-1)
    whole = f" [All of them](<{link}>)." if link else ""

    def with_tables(kept: int) -> str:
        left = tables - kept
        what = "1 table is" if left == 1 else f"{left:,} tables are"
        shown = [line for line, owner in lines if owner is None or owner < kept]
        # above the last line, which says what was simulated
        shown.insert(-1, f"**{what} left out:** a comment has at most {stated:,} characters.{whole}\n")
        return "\n".join(shown) + "\n"

    fits, too_many = 0, tables
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        fits, too_many = (middle, too_many) if _length(with_tables(middle)) <= most else (fits, middle)
    return with_tables(fits)


def _owned_lines(text: str) -> Iterator[tuple[str, int | None]]:
    """Yield each line with the number of the table that it is about, `None` if it is about the stage."""
    lines = text.rstrip("\n").split("\n")
    tables: dict[str, int] = {}
    rows = [number for number, line in enumerate(lines) if line.startswith("| ")]
    for order, number in enumerate(rows[2:]):  # below the headings and the line under them
        first = lines[number].removeprefix("| ").split(" | ")[0].replace(BREAK, "")
        tables[first] = order
        tables.setdefault(re.sub(r" \((?:added|removed)\)$", "", first), order)
    count = len(rows[2:])
    of_row = {number: order for order, number in enumerate(rows[2:])}
    for number, line in enumerate(lines):
        if not line.startswith("- "):
            yield line, of_row.get(number)
            continue
        said = line.removeprefix("- ").removeprefix("❌ ")
        # a name may hold a colon, and then the longest that is known is meant
        names = [said[: colon.start()] for colon in re.finditer(": ", said)]
        owner = next((tables[name] for name in reversed(names) if name in tables), None)
        if owner is None and (unknown := re.match("(.*?): unknown: ", said)):
            tables[unknown[1]] = owner = count
            count += 1
        yield line, owner
