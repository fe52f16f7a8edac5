"""Findings as annotations: the CDK CLI prints them with the construct's path and stops at errors."""

from __future__ import annotations

from collections.abc import Iterable

import aws_cdk as cdk
from constructs import IConstruct

from highwater.core import Finding, Severity


def annotate(construct: IConstruct, findings: Iterable[Finding]) -> bool:
    """Put *findings* on *construct*; whether synth may go on, as none is an error."""
    found = tuple(findings)
    if not found:
        return True
    annotations = cdk.Annotations.of(construct)
    path = construct.node.path
    sound = True
    for finding in found:
        text = finding.text(path)
        if finding.severity is Severity.ERROR:
            sound = False
            annotations.add_error(text)
        elif finding.severity is Severity.WARNING:
            annotations.add_warning_v2(finding.id, text)
        else:
            annotations.add_info_v2(finding.id, text)
    return sound
