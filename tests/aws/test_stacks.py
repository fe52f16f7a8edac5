"""What the function for deploys reads of its stack, with a boto3 that is older than what CloudFormation answers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders

from highwater.aws import stacks
from highwater.aws.stacks import StackState

_ANSWER = """<DescribeStacksResponse xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/"><DescribeStacksResult>
<Stacks><member><StackName>Shop</StackName><StackStatus>UPDATE_IN_PROGRESS</StackStatus>
<CreationTime>2027-03-04T05:06:07.890Z</CreationTime>{more}</member></Stacks>
</DescribeStacksResult></DescribeStacksResponse>"""
_MODE = "<DeploymentConfig><Mode>{mode}</Mode><DisableRollback>true</DisableRollback></DeploymentConfig>"


class _Raw:
    """The body of an answer, as botocore reads it."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def stream(self) -> list[bytes]:
        return [self._content]


def _client(monkeypatch: pytest.MonkeyPatch, more: str, *, is_old: bool) -> Any:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    client: Any = stacks.client()
    if is_old:
        members = client.meta.service_model.shape_for("Stack")._shape_model["members"]
        monkeypatch.delitem(members, "DeploymentConfig")

    def answer(request: Any, **_: Any) -> AWSResponse:
        return AWSResponse(request.url, 200, HTTPHeaders(), _Raw(_ANSWER.format(more=more).encode()))

    client.meta.events.register("before-send.cloudformation.DescribeStacks", answer)
    return client


@pytest.mark.parametrize("is_old", [False, True], ids=["boto3-of-today", "boto3-that-does-not-know-the-mode"])
@pytest.mark.parametrize(
    ("more", "is_express"),
    [
        pytest.param(_MODE.format(mode="EXPRESS"), True, id="express"),
        pytest.param(_MODE.format(mode="STANDARD"), False, id="standard"),
        pytest.param("", False, id="not-told"),
    ],
)
def test_express_mode_is_read_whatever_boto3_knows_of_it(
    monkeypatch: pytest.MonkeyPatch, more: str, *, is_express: bool, is_old: bool
) -> None:
    client = _client(monkeypatch, more, is_old=is_old)
    began = datetime(2027, 3, 4, 5, 6, 7, 890_000, tzinfo=UTC)
    assert stacks.read_stack(client, "Shop") == StackState("UPDATE_IN_PROGRESS", "", is_express, began)


def test_express_mode_is_read_by_boto3_where_the_answer_is_written_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a change of CloudFormation's protocol: CloudWatch and SQS have left XML."""
    client = _client(monkeypatch, _MODE.format(mode="EXPRESS").replace("<Mode>", '<Mode form="other">'), is_old=False)
    assert stacks.read_stack(client, "Shop").is_express
    # a boto3 that does not know the mode reads it from XML alone: with another protocol, `_note_mode` needs its form
    assert client.meta.service_model.metadata["protocols"] == ["query"]


def test_an_update_began_when_it_was_last_updated(monkeypatch: pytest.MonkeyPatch) -> None:
    client = _client(monkeypatch, "<LastUpdatedTime>2027-04-05T06:07:08Z</LastUpdatedTime>", is_old=False)
    state = stacks.read_stack(client, "Shop")
    assert (state.updated, state.began) == ("2027-04-05 06:07:08+00:00", datetime(2027, 4, 5, 6, 7, 8, tzinfo=UTC))


_LISTED = """<ListStackResourcesResponse xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/">
<ListStackResourcesResult>{more}<StackResourceSummaries>{members}</StackResourceSummaries></ListStackResourcesResult>
</ListStackResourcesResponse>"""
_MEMBER = """<member><LogicalResourceId>{}</LogicalResourceId><PhysicalResourceId>{}</PhysicalResourceId>
<ResourceType>AWS::DynamoDB::Table</ResourceType><ResourceStatus>{}</ResourceStatus>
<LastUpdatedTimestamp>2027-03-04T05:06:07.890Z</LastUpdatedTimestamp></member>"""


def test_names_of_a_stacks_resources_are_read_from_all_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = [
        [("Orders", "shop-orders", "UPDATE_ROLLBACK_COMPLETE"), ("Other", "shop-other", "CREATE_COMPLETE")],
        [("Visits", "visits", "UPDATE_COMPLETE"), ("Gone", "gone", "DELETE_SKIPPED"), ("New", "", "CREATE_FAILED")],
    ]
    client = _client(monkeypatch, "", is_old=False)

    def answer(request: Any, **_: Any) -> AWSResponse:
        page = 1 if "NextToken=second" in str(request.body) else 0
        members = "".join(_MEMBER.format(*each) for each in pages[page])
        text = _LISTED.format(more="" if page else "<NextToken>second</NextToken>", members=members)
        return AWSResponse(request.url, 200, HTTPHeaders(), _Raw(text.encode()))

    client.meta.events.register("before-send.cloudformation.ListStackResources", answer)
    wanted = {"Orders", "Visits", "Gone", "New", "Missing"}
    assert stacks.read_names(client, "Shop", wanted) == ["shop-orders", "visits"]
