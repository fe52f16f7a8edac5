"""Sessions for the doctor: one whose answers a test puts down, checked by botocore's service models; one of a cloud."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from botocore.stub import Stubber

from highwater_lab.doctor import CheckedPlace, State, run_checks
from highwater_lab.local import LocalCloud

ACCOUNT, REGION = "111122223333", "eu-west-1"
_KEYS = {"aws_access_key_id": "no", "aws_secret_access_key": "key"}


class StubbedSession:
    """Stands for `boto3.Session`: real clients, whose requests are compared, and answered, in the order put down."""

    def __init__(self) -> None:
        self.region_name = REGION
        self._stubs: dict[str, Stubber] = {}
        self.answer("sts", "get_caller_identity", {"Account": ACCOUNT, "Arn": f"arn:aws:iam::{ACCOUNT}:user/dev"})

    def client(self, service: str, config: Config | None = None) -> Any:
        """The client of a service, which answers only what was put down."""
        return self._stub(service, config).client

    def answer(self, service: str, operation: str, answer: dict[str, Any], **asked: Any) -> None:
        """Put down an answer; *asked* are the members of the request."""
        self._stub(service).add_response(operation, answer, asked)

    def expect(self, service: str, operation: str, answer: dict[str, Any]) -> None:
        """Put down an answer to a request whose members do not matter."""
        self._stub(service).add_response(operation, answer)

    def refuse(self, service: str, operation: str, code: str, message: str = "", status: int = 400) -> None:
        """Put down an error."""
        self._stub(service).add_client_error(operation, code, message, status)

    def place(self, folder: Path | None = None) -> CheckedPlace:
        """The place that these credentials are for."""
        place = CheckedPlace(self)
        if folder is not None:
            place.open_app(folder)
        return place

    def all_asked(self) -> bool:
        """Whether everything that was put down has been asked for."""
        for stub in self._stubs.values():
            stub.assert_no_pending_responses()
        return True

    def _stub(self, service: str, config: Config | None = None) -> Stubber:
        if service not in self._stubs:
            # typed by service name, which is not known here
            make: Any = boto3.client
            stub = Stubber(make(service, region_name=REGION, config=config, **_KEYS))
            stub.activate()
            self._stubs[service] = stub
        return self._stubs[service]


def said(session: StubbedSession, name: str, folder: Path | None = None) -> tuple[State, str, str]:
    """The one line of a check: its state, text and fix."""
    (result,) = run_checks(session.place(folder), [name])
    assert session.all_asked()
    assert result.check == name
    return result.state, result.text, result.fix


class CloudSession:
    """A session whose clients speak to a local cloud."""

    def __init__(self, cloud: LocalCloud, session: boto3.Session | None = None) -> None:
        self.region_name = cloud.client_arguments()["region_name"]
        self._cloud = cloud
        self._session = session or boto3.Session()

    def client(self, service: str, config: Config | None = None) -> Any:
        """A client for the cloud."""
        # typed by service name, which is not known here
        make: Any = self._session.client
        return make(service, config=config, **self._cloud.client_arguments())


def assembly(
    folder: Path,
    resources: dict[str, Any],
    *,
    buckets: tuple[str, ...] = (),
    account: str = ACCOUNT,
    region: str = REGION,
) -> Path:
    """A cloud assembly as `cdk synth` writes it: stack `Shop` for an account and region, `ShopWest` for another."""
    made = folder / "app"
    made.mkdir()
    stack: dict[str, Any] = {
        "type": "aws:cloudformation:stack",
        "environment": f"aws://{account}/{region}",
        "properties": {
            "templateFile": "Shop.template.json",
            "requiresBootstrapStackVersion": 6,
            "bootstrapStackVersionSsmParameter": "/cdk-bootstrap/hnb659fds/version",
            "cloudFormationExecutionRoleArn": f"arn:${{AWS::Partition}}:iam::{account}:role/"
            f"cdk-hnb659fds-cfn-exec-role-{account}-{region}",
        },
    }
    west = {**stack["properties"], "templateFile": "ShopWest.template.json"}
    elsewhere = {**stack, "environment": f"aws://{account}/us-west-2", "properties": west}
    manifest = {"version": "48.0.0", "artifacts": {"Shop": stack, "ShopWest": elsewhere}}
    files = {
        "one": {
            "source": {"path": "Shop.template.json"},
            "destinations": {name: {"bucketName": name, "objectKey": "one.json"} for name in buckets},
        }
    }
    (made / "manifest.json").write_text(json.dumps(manifest))
    for name in ("Shop", "ShopWest"):
        (made / f"{name}.template.json").write_text(json.dumps({"Resources": resources}))
    (made / "Shop.assets.json").write_text(json.dumps({"version": "48.0.0", "files": files}))
    return made


def table(name: str, read: int, write: int) -> dict[str, Any]:
    """A provisioned table."""
    return {
        "Type": "AWS::DynamoDB::Table",
        "Properties": {
            "TableName": name,
            "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
            "ProvisionedThroughput": {"ReadCapacityUnits": read, "WriteCapacityUnits": write},
        },
    }


def target(name: str, low: int, high: int) -> dict[str, Any]:
    """The scalable target of a table's writes."""
    return {
        "Type": "AWS::ApplicationAutoScaling::ScalableTarget",
        "Properties": {
            "ServiceNamespace": "dynamodb",
            "ResourceId": f"table/{name}",
            "ScalableDimension": "dynamodb:table:WriteCapacityUnits",
            "MinCapacity": low,
            "MaxCapacity": high,
        },
    }
