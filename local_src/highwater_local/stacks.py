"""One operation at a time for a CloudFormation stack, which MiniStack leaves to its callers.

A stack that is being created can be deleted: CloudFormation stops creating resources and deletes those that there are.
While a stack is being updated or rolled back, its deletion is refused (AWS CloudFormation API Reference, DeleteStack,
and known texts of the service, read 2026-11). MiniStack deletes and goes on creating at once, which leaves resources
behind.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, Final

from highwater_local import ministack
from highwater_local.timeline import Timeline

_REFUSED: Final = "Stack [{stack}] cannot be deleted while in status {status}"
_DELETABLE: Final = frozenset({"CREATE_IN_PROGRESS", "REVIEW_IN_PROGRESS", "DELETE_IN_PROGRESS"})


class Stacks:
    """Refuses what CloudFormation refuses, and puts the rest in order; known to MiniStack as soon as this is made."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        # by stack id: set when what is under way has ended
        self._under_way: dict[str, asyncio.Event] = {}
        for deploy in ministack.DEPLOYS:
            deploy.replace(partial(self._deploy, deploy.now))
        self._delete_resources = ministack.delete_resources.replace(self._delete)
        requests = ministack.STACK_REQUESTS.now
        requests["DeleteStack"] = partial(self._request_deletion, requests["DeleteStack"])

    async def _deploy(self, own: Any, stack_name: str, stack_id: str, *arguments: Any, **options: Any) -> None:
        ended = self._under_way[stack_id] = asyncio.Event()
        try:
            with self._timeline.changing_stack():
                await own(stack_name, stack_id, *arguments, **options)
        finally:
            del self._under_way[stack_id]
            ended.set()

    async def _delete(self, stack_name: str, stack_id: str, *arguments: Any, **options: Any) -> None:
        creation = self._under_way.get(stack_id)
        if creation is not None:
            # a resource whose creation is under way has to be there before it can be deleted
            await creation.wait()
        with self._timeline.changing_stack():
            await self._delete_resources(stack_name, stack_id, *arguments, **options)

    def _request_deletion(self, own: Any, request: dict[str, Any]) -> Any:
        name = request.get("StackName", "")
        stack = ministack.find_stack(name[0] if isinstance(name, list) else name)
        status = str((stack or {}).get("StackStatus", ""))
        if status.endswith("_IN_PROGRESS") and status not in _DELETABLE:
            return ministack.query_error("ValidationError", _REFUSED.format(stack=stack["StackId"], status=status))
        return own(request)
