"""The text of a finding: one line, with where, what, the problem, fix and id."""

from __future__ import annotations

from highwater.core import Finding, PlanError, Severity
from highwater.core.findings import caution, conflict, error, remark, warning

PREFIX = "Shop/Orders: window 'load' lead: "
SUBJECT = "window 'load' lead"


def _text(finding: Finding) -> str:
    return finding.text("Shop/Orders")


def test_value_out_of_range_says_what_was_given_and_what_is_allowed() -> None:
    refused, doubtful = (make("example", SUBJECT, "5", "0", "write 0") for make in (error, warning))
    assert (refused.severity, doubtful.severity) == (Severity.ERROR, Severity.WARNING)
    assert _text(refused) == _text(doubtful) == PREFIX + "got 5, allowed: 0; write 0 [highwater:example]"


def test_situation_is_a_sentence_of_what_is_wrong_and_one_of_what_to_do() -> None:
    found = [make("example", SUBJECT, "it is long", "write 0") for make in (conflict, caution, remark)]
    assert [finding.severity for finding in found] == [Severity.ERROR, Severity.WARNING, Severity.INFO]
    assert {_text(finding) for finding in found} == {PREFIX + "it is long; write 0 [highwater:example]"}


def test_plan_error_by_default_speaks_of_the_plan() -> None:
    refused = PlanError((conflict("first", SUBJECT, "no", "write 0"), conflict("second", SUBJECT, "no", "write 1")))
    assert str(refused) == (
        "plan: window 'load' lead: no; write 0 [highwater:first]\n"
        "plan: window 'load' lead: no; write 1 [highwater:second]"
    )
