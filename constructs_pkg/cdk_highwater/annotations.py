"""Findings as annotations: the CDK CLI prints them with the construct's path and stops at errors."""

from __future__ import annotations

from collections.abc import Iterable

import aws_cdk as cdk
from constructs import IConstruct

from highwater.core import Finding, Severity


def annotate(construct: IConstruct, findings: Iterable[Finding]) -> bool:
    """Add *findings* to *construct* as annotations. Return false if one of them is an error."""
    all_findings = tuple(findings)
    if not all_findings:
        return True
    annotations = cdk.Annotations.of(construct)
    path = construct.node.path
    is_valid = True
    for finding in all_findings:
        text = finding.text(path)
        if finding.severity is Severity.ERROR:
            is_valid = False
            annotations.add_error(text)
        elif finding.severity is Severity.WARNING:
            annotations.add_warning_v2(finding.id, text)
        else:
            annotations.add_info_v2(finding.id, text)
    return is_valid
