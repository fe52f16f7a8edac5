"""Reads the findings of Highwater from a cloud assembly, where the constructs leave them at synth."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from highwater.core import Severity
from highwater_lab.template.assembly import STACK, artifacts_of, notes_of, stages_of

_SEVERITIES: Final = {f"aws:cdk:{severity}": severity for severity in Severity}
# behind a finding's text stand the tags by which the CDK knows it
_FINDING: Final = re.compile(
    r"(?P<text>.*? \[(?P<id>highwater:\w+)\])(?: \[ack: [^\]]+\]| \([^()]+::[^()]+\))*", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class SynthFinding:
    """A finding that was reported when an app was synthesized.

    Attributes:
        severity: ERROR, WARNING or INFO.
        id: What acknowledges it, such as `highwater:windowAboveCeiling`.
        where: The path of its construct.
        text: The whole message on one line, with path and id.
    """

    severity: Severity
    id: str
    where: str
    text: str


def read_findings(folder: Path) -> list[SynthFinding]:
    """Return the findings of a cloud assembly, its stages included: errors, warnings, then information, each by place.

    Findings of others, such as cdk-nag's, are left out.

    Raises `TemplateError` if *folder* is not a cloud assembly.
    """
    found = dict.fromkeys(_findings_of(folder))
    order = list(Severity)
    return sorted(found, key=lambda finding: order.index(finding.severity))


def _findings_of(folder: Path) -> Iterator[SynthFinding]:
    for artifact in artifacts_of(folder).values():
        if artifact.get("type") != STACK:
            continue
        for path, note in notes_of(artifact, folder):
            severity = _SEVERITIES.get(str(note.get("type")))
            match = _FINDING.fullmatch(str(note.get("data"))) if severity is not None else None
            if severity is not None and match is not None:
                yield SynthFinding(severity, match["id"], path, match["text"])
    for name in stages_of(folder):
        yield from _findings_of(folder / name)
