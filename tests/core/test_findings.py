"""The text of a finding: one line, with where, what, got, allowed, fix and id."""

from __future__ import annotations

import pytest

from highwater.core import Finding, PlanError, Severity


def finding(severity: Severity, id: str = "highwater:example") -> Finding:
    return Finding(id=id, severity=severity, subject="window 'load' lead", got="5", allowed="0", fix="write 0")


@pytest.mark.parametrize("severity", [Severity.ERROR, Severity.WARNING])
def test_text_of_an_error_or_warning_says_what_was_given_and_what_is_allowed(severity: Severity) -> None:
    text = finding(severity).text("Shop/Orders")
    assert text == "Shop/Orders: window 'load' lead: got 5, allowed: 0; write 0 [highwater:example]"


def test_text_of_a_remark_has_neither_got_nor_allowed() -> None:
    text = finding(Severity.INFO).text("Shop/Orders")
    assert text == "Shop/Orders: window 'load' lead: 5; 0; write 0 [highwater:example]"


def test_plan_error_by_default_speaks_of_the_plan() -> None:
    error = PlanError((finding(Severity.ERROR), finding(Severity.ERROR, "highwater:second")))
    assert str(error) == (
        "plan: window 'load' lead: got 5, allowed: 0; write 0 [highwater:example]\n"
        "plan: window 'load' lead: got 5, allowed: 0; write 0 [highwater:second]"
    )
