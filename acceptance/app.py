"""A CDK app that deploys another app under names of its own: `python acceptance/app.py PREFIX APP.py`.

Every stack of the app gets PREFIX in front of its id, everything in it is deleted together with the stack, and tables
have no deletion protection. Nothing else differs from what the app says.
"""

from __future__ import annotations

import os
import runpy
import sys
from typing import Any

import aws_cdk as cdk
import jsii
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct, IConstruct


@jsii.implements(cdk.IAspect)
class _Unprotected:
    """Turns off the deletion protection of every table."""

    def visit(self, node: IConstruct) -> None:
        if isinstance(node, dynamodb.CfnTable):
            node.deletion_protection_enabled = False


def run(prefix: str, app: str) -> None:
    """Run the app in the file *app* with every stack renamed to *prefix*, a hyphen and its id."""
    environment = cdk.Environment(account=os.environ["CDK_DEFAULT_ACCOUNT"], region=os.environ["CDK_DEFAULT_REGION"])

    class NamedStack(cdk.Stack):
        def __init__(self, scope: Construct, id: str, **options: Any) -> None:
            # a stack of a given account cannot be deployed with the credentials of another
            super().__init__(scope, f"{prefix}-{id}", **(options | {"env": environment}))
            cdk.RemovalPolicies.of(self).destroy()
            cdk.Aspects.of(self).add(_Unprotected())

    # the app is the user's own file and says `cdk.Stack`
    vars(cdk)["Stack"] = NamedStack
    runpy.run_path(app, run_name="__main__")


if __name__ == "__main__":
    run(*sys.argv[1:])
