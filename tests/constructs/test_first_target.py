"""In a new account the first registration of a target creates a role that others could not assume yet."""

from __future__ import annotations

from typing import Any

import aws_cdk as cdk
import pytest

from cdk_highwater import GlobalSecondaryIndex, ThrottleAwareScaler, manage_capacity
from tests.constructs.template_view import (
    READ,
    WRITE,
    TemplateView,
    all_before,
    depended_on,
    global_table,
    key,
    new_stack,
    scalable_table,
)

TARGET = "AWS::ApplicationAutoScaling::ScalableTarget"


def _first_and_others(stack: cdk.Stack) -> tuple[str, list[str], dict[str, Any]]:
    template = TemplateView(stack).template
    targets = [name for name, each in template["Resources"].items() if each["Type"] == TARGET]
    (first,) = [name for name in targets if not all_before(template, name).intersection(targets)]
    return first, [name for name in targets if name != first], template


def test_every_target_of_a_stack_waits_for_the_first_and_for_no_other() -> None:
    stack = new_stack()
    scaler = ThrottleAwareScaler(stack, "Scaler")
    for name in ("Orders", "Jobs", "Visits"):
        by_day = GlobalSecondaryIndex(index_name="by-day", partition_key=key("day"))
        scaler.add_table(scalable_table(stack, name, indexes=[by_day]))
    manage_capacity(global_table(stack), read=READ, write=WRITE)
    first, others, template = _first_and_others(stack)
    assert len(others) == 11
    for name in others:
        assert {each for each in depended_on(template, name) if each in others or each == first} == {first}


@pytest.mark.parametrize("is_wrapped", [False, True], ids=["table", "capacity"])
def test_tables_that_wait_for_later_ones_make_no_circle(*, is_wrapped: bool) -> None:
    """CloudFormation would reject the template: the first table in the code is not always the first in the stack."""
    stack = new_stack()
    early, later = scalable_table(stack, "Early"), scalable_table(stack, "Later")
    (early.capacity if is_wrapped else early).node.add_dependency(later)
    first, _, template = _first_and_others(stack)
    assert first.startswith("Later")
    for name in template["Resources"]:
        all_before(template, name)
