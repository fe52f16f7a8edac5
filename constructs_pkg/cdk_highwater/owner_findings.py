"""Findings about tables that two constructs of an app manage."""

from __future__ import annotations

import aws_cdk as cdk
import jsii
from constructs import Construct, IValidation

from cdk_highwater.annotations import annotate
from cdk_highwater.owners import DIRECT, PLAN, SCALER, TAGS, claim, claim_place, owner_of
from cdk_highwater.subject import Subject
from highwater.core import Finding
from highwater.core.findings import conflict


def second_scaler(scaler: Construct, subject: Subject) -> list[Finding]:
    """Return the finding about a table that another scaler manages already; note that *scaler* does."""
    other = claim(SCALER, scaler, subject)
    if other is None:
        return []
    problem = f"scaler {other} manages the table already; two scalers would set each other's floors"
    return [conflict("secondScaler", "the table", problem, "add the table to one of the two")]


def twice_direct(scaler: Construct, subject: Subject) -> list[Finding]:
    """Return the finding about a table that *scaler* manages in DIRECT mode already, by another construct."""
    # with the table's construct as the owner: the scaler is the same for both
    other = claim(DIRECT, subject.construct, subject, cdk.Stack.of(scaler))
    if other is None:
        return []
    problem = f"{subject.construct.node.path} and {other} are one table, and the scaler would have two plans for it"
    return [conflict("secondPlan", "the table", problem, "remove one of the two calls of add_direct_table")]


def second_tagged_scaler(scaler: Construct) -> list[Finding]:
    """Return the finding about a scaler that manages the tagged tables of the same place; note that *scaler* does."""
    stack = cdk.Stack.of(scaler)
    other = claim_place(TAGS, scaler, stack.account, stack.region)
    if other is None:
        return []
    problem = f"scaler {other} manages the tagged tables of the same account and region already"
    return [conflict("secondScaler", "tagged tables", problem, "pass tagged= to one of the two")]


@jsii.implements(IValidation)
class OnlyScalerManages:
    """Reports, at the end of synth, scalable targets of a table that a scaler manages in DIRECT mode."""

    def __init__(self, scaler: Construct, subject: Subject) -> None:
        self._scaler = scaler
        self._subject = subject

    def validate(self) -> list[str]:
        """Annotate the scaler with an error if the table has a plan by now; the CDK calls this at the end of synth."""
        other = owner_of(PLAN, self._subject, cdk.Stack.of(self._scaler))
        if other is not None:
            problem = (
                f"{other} makes scalable targets for {self._subject.construct.node.path}, and DIRECT mode is for "
                "tables that nothing else scales"
            )
            fix = "remove the call of add_direct_table, and pass the result of manage_capacity to add_table"
            annotate(self._scaler, [conflict("secondPlan", "the table", problem, fix)])
        return []
