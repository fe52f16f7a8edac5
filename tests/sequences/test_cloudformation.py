"""The model of CloudFormation keeps the order that the laws rest on."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.sequences.cloudformation import Document, FailedError, Stack


@dataclass
class Recorder:
    """Notes what it is asked; a resource of kind `Moving` gets a new physical id with every update."""

    asked: list[str] = field(default_factory=list)
    fails: str = ""

    def create(self, logical_id: str, kind: str, properties: Document) -> str:  # noqa: ARG002
        self._note(f"create {logical_id}")
        return f"{logical_id}-1"

    def update(self, logical_id: str, kind: str, physical_id: str, before: Document, after: Document) -> str:
        self._note(f"update {logical_id} {before['V']} {after['V']}")
        return f"{logical_id}-{after['V']}" if kind == "Moving" else physical_id

    def delete(self, logical_id: str, kind: str, physical_id: str, properties: Document) -> None:  # noqa: ARG002
        self._note(f"delete {physical_id}")

    def _note(self, what: str) -> None:
        self.asked.append(what)
        if what == self.fails:
            raise FailedError(what)


def _resource(version: int, *needs: str, kind: str = "Any", **more: str) -> Document:
    return {"Type": kind, "Properties": {"V": version}, "DependsOn": list(needs), **more}


def _stack(*resources: str) -> tuple[Stack, Recorder]:
    recorder = Recorder()
    stack = Stack(recorder)
    needs = dict(zip(resources, [(), *((each,) for each in resources)], strict=False))
    stack.deploy({each: _resource(1, *needs[each]) for each in resources})
    recorder.asked.clear()
    return stack, recorder


def test_creations_and_updates_come_before_deletions_and_those_go_backwards() -> None:
    stack, recorder = _stack("Policy", "Old", "Older")
    assert stack.deploy({"Policy": _resource(2), "New": _resource(1, "Policy")}) is None
    assert recorder.asked == ["update Policy 1 2", "create New", "delete Older-1", "delete Old-1"]


def test_what_did_not_change_is_not_touched() -> None:
    stack, recorder = _stack("A", "B")
    assert stack.deploy({"A": _resource(1), "B": _resource(1, "A")}) is None
    assert recorder.asked == []


def test_a_replaced_resource_is_deleted_last() -> None:
    stack, recorder = _stack("A")
    stack.deploy({"A": _resource(1), "B": _resource(1, "A", kind="Moving")})
    recorder.asked.clear()
    stack.deploy({"A": _resource(2), "B": _resource(2, "A", kind="Moving"), "C": _resource(1, "B")})
    assert recorder.asked == ["update A 1 2", "update B 1 2", "create C", "delete B-1"]


def test_a_failure_changes_back_only_what_was_changed_and_deletes_what_was_created() -> None:
    stack, recorder = _stack("A", "B", "C")
    before = dict(stack.resources)
    recorder.fails = "update C 1 2"
    after = {"A": _resource(2), "New": _resource(1, "A"), "B": _resource(1, "A"), "C": _resource(2, "New", "B")}
    assert stack.deploy(after) == "update C 1 2"
    assert recorder.asked == [
        "update A 1 2",
        "create New",
        "update C 1 2",
        "update A 2 1",
        "update C 2 1",
        "delete New-1",
    ]
    assert stack.resources == before
    assert stack.status == "UPDATE_ROLLBACK_COMPLETE"


def test_retained_resources_are_left() -> None:
    stack, recorder = _stack("A")
    stack.deploy({"A": _resource(1), "Table": _resource(1, "A", DeletionPolicy="Retain")})
    recorder.asked.clear()
    stack.delete()
    assert recorder.asked == ["delete A-1"]
