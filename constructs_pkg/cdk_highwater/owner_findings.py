"""Findings about tables that two constructs of an app manage."""

from __future__ import annotations

import aws_cdk as cdk
import jsii
from constructs import Construct, IValidation

from cdk_highwater.annotations import annotate
from cdk_highwater.owners import (
    DIRECT,
    PLAN,
    SCALER,
    TAGS,
    Claim,
    claim,
    claim_place,
    claims,
    known_place,
    owner_of,
)
from cdk_highwater.subject import Subject
from cdk_highwater.tagged_tables import TaggedTables
from highwater.core import Finding
from highwater.core.findings import conflict
from highwater.core.scaler.tagged_plans import MANAGED_TAG, TAG_MODES


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


def second_tagged_scaler(scaler: Construct, tagged: TaggedTables) -> list[Finding]:
    """Return a finding for each scaler that manages tagged tables of the same places; note that *scaler* does."""
    stack = cdk.Stack.of(scaler)
    shared: dict[str, list[str]] = {}
    for region in (stack.region, *tagged.regions):
        other = claim_place(TAGS, scaler, stack.account, region)
        if other is not None:
            shared.setdefault(other, []).append(region)
    return [
        conflict(
            "secondScaler",
            "tagged tables",
            f"scaler {other} manages the tagged tables of {_text_of_places(regions)} already",
            "pass tagged= to one of the two, or give them different regions",
        )
        for other, regions in shared.items()
    ]


def _text_of_places(regions: list[str]) -> str:
    if any(map(cdk.Token.is_unresolved, regions)):
        return "the same account and region"
    return f"the same account in {', '.join(dict.fromkeys(regions))}"


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


@jsii.implements(IValidation)
class OtherScalersTablesAreUntagged:
    """Reports, at the end of synth, tables of other scalers whose tags let a scaler of tagged tables find them."""

    def __init__(self, scaler: Construct, tagged: TaggedTables) -> None:
        self._scaler = scaler
        self._regions = tagged.regions

    def validate(self) -> list[str]:
        """Annotate the scaler with an error for each such table; the CDK calls this at the end of synth."""
        stack = cdk.Stack.of(self._scaler)
        searched = {known_place(stack, (stack.account, region)) for region in (stack.region, *self._regions)}
        others = [each for each in claims(SCALER, self._scaler) if each.owner != self._scaler]
        annotate(self._scaler, [_tagged(each) for each in others if not searched.isdisjoint(_tagged_places(each))])
        return []


def _tagged_places(claim: Claim) -> set[tuple[str, ...]]:
    """The places in which the table, or a replica of it, has a tag by which a scaler manages it."""
    subject = claim.subject
    return {
        known_place(subject.stack, (subject.account, region))
        for region, tags in subject.tags_by_region().items()
        if tags.get(MANAGED_TAG) in TAG_MODES
    }


def _tagged(claim: Claim) -> Finding:
    problem = (
        f"{claim.owner.node.path} manages {claim.subject.construct.node.path}, whose tag {MANAGED_TAG} lets this "
        "scaler manage it too; two scalers would set each other's floors"
    )
    fix = "remove the tag, or add the table to this scaler"
    return conflict("secondScaler", "tagged tables", problem, fix)
