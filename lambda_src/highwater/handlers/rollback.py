"""Setting the floors of open windows after a deploy that failed and was rolled back.

A rollback registers a changed target again with the base floor of the earlier template. It updates the custom resource
that sets floors only if the deploy had updated that one before it failed; otherwise the floor of an open window is
lost. So a custom resource that CloudFormation updates before the targets looks at the stack: in a rollback, it has the
function wait until that is over, and set the floors then.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from highwater.aws.stacks import read_status
from highwater.handlers.patience import Patience

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient

_ROLLING_BACK = "UPDATE_ROLLBACK_IN_PROGRESS"
# Somebody can continue a rollback that failed, or give it up; it updates nothing twice that it has updated
_NOT_OVER = frozenset({_ROLLING_BACK, "UPDATE_ROLLBACK_FAILED"})
# Targets are as they were before; what is left to do is to delete what was new.
_ROLLED_BACK = frozenset({"UPDATE_ROLLBACK_COMPLETE", "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS"})


def is_rolling_back(cloudformation: CloudFormationClient, stack_id: str, patience: Patience) -> bool:
    """Whether the stack is being rolled back; raises the errors of `Patience.until_accepted`."""
    return patience.until_accepted(partial(read_status, cloudformation, stack_id)) == _ROLLING_BACK


def wait_until_rolled_back(cloudformation: CloudFormationClient, stack_id: str, patience: Patience) -> bool:
    """Wait until the rollback is over; false if the stack then has another state, such as that of a later deploy.

    A rollback that failed is waited for too, because it may be continued.

    Raises:
        TimeIsUpError: The rollback is still in progress.
    """
    read = partial(read_status, cloudformation, stack_id)
    while (status := patience.until_accepted(read)) in _NOT_OVER:
        patience.pause()
    return status in _ROLLED_BACK
