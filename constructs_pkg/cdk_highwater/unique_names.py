"""Names that are unique in an account and region, and ids of a table's parts within a stack."""

from __future__ import annotations

import aws_cdk as cdk
from constructs import IConstruct

# What a name keeps for the construct itself: the CDK puts a digest of eight characters of its path into it
_OWN_CHARACTERS = 24


def unique_name(construct: IConstruct, *, most_characters: int) -> str:
    """Return a name for *construct* that no other construct in the account and region has.

    It begins with the name of the stack. A nested stack has no name before it is deployed, so the name of the stack
    around it counts.
    """
    stack = cdk.Stack.of(construct)
    prefix = ""
    while (parent := stack.nested_stack_parent) is not None:
        stack = parent
        prefix = f"{stack.stack_name}-"
    prefix = prefix[: most_characters - _OWN_CHARACTERS]
    left = most_characters - len(prefix)
    return prefix + cdk.Names.unique_resource_name(construct, max_length=left, separator="-")


def id_within(stack: cdk.Stack, construct: IConstruct) -> str:
    """Return an id for something that belongs to *construct* in *stack*; it depends on the construct's path only."""
    return construct.node.path.removeprefix(f"{stack.node.path}/").replace("/", ".")
