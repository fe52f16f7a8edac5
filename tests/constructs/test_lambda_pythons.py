"""The assets of all functions, in the Python that Lambda runs and in the two versions before it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest

from cdk_highwater import BoostCoordinator, BoostTask, HighWaterTable
from tests.constructs.jobs import buffered_writes, paced_load, paced_scan
from tests.constructs.template_view import new_stack
from tests.pyodide import OF_LAMBDA, VERSIONS, installed, run_python

pytestmark = [pytest.mark.cloud, pytest.mark.xdist_group("pythons")]

# what Lambda's runtime has, and no asset
_OF_THE_RUNTIME = ("boto3", "botocore", "s3transfer", "urllib3", "jmespath", "dateutil", "six")

_IMPORT = """
import importlib, os, sys, warnings
from unittest.mock import MagicMock

os.environ["AWS_REGION"] = os.environ["AWS_DEFAULT_REGION"] = "eu-west-1"
warnings.simplefilter("error")
sys.path.append("/installed")
try:
    import ssl
except ModuleNotFoundError:
    # of Pyodide's packages only 3.14's has it; botocore imports it, and nothing here opens a connection
    openssl = {"OPENSSL_VERSION": "OpenSSL 3", "OPENSSL_VERSION_INFO": (3, 0, 0), "OPENSSL_VERSION_NUMBER": 3 << 28}
    sys.modules["ssl"] = MagicMock(**openssl)
import boto3

own = set(sys.modules)
for asset, handlers in ASSETS.items():
    # nothing of the asset before
    for name in set(sys.modules) - own:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith("/assets/"):
            del sys.modules[name]
    sys.path.insert(0, asset)
    for handler in handlers:
        module, name = handler.rsplit(".", 1)
        assert callable(getattr(importlib.import_module(module), name))
        print(sys.version[:4], handler)
    sys.path.pop(0)
"""


@pytest.fixture(scope="module")
def assets(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, set[str]]:
    """Unpacked as Lambda does it: the assets of a stack that has a function of each kind, and their handlers."""
    stack = new_stack()
    paced_scan(stack)
    paced_load(stack)
    buffered_writes(stack)
    boosts, orders = (stack.node.find_child(id) for id in ("Boosts", "Orders"))
    assert isinstance(boosts, BoostCoordinator)
    assert isinstance(orders, HighWaterTable)
    BoostTask(stack, "Boost", coordinator=boosts, table=orders, write=5, lease=cdk.Duration.hours(1))
    app = cdk.Stage.of(stack)
    assert app is not None
    assembly = app.synth()
    folder = tmp_path_factory.mktemp("assets")
    found: dict[Path, set[str]] = {}
    for resource in assembly.get_stack_artifact(stack.artifact_id).template["Resources"].values():
        function: dict[str, Any] = resource.get("Properties", {})
        if resource["Type"] == "AWS::Lambda::Function" and "S3Key" in function["Code"]:
            assert function["Runtime"] == f"python{OF_LAMBDA}"
            name = function["Code"]["S3Key"]
            if folder / name not in found:
                shutil.unpack_archive(Path(assembly.directory) / f"asset.{name}", folder / name)
            found.setdefault(folder / name, set()).add(function["Handler"])
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_handlers_of_all_assets_are_imported(assets: dict[Path, set[str]], version: str) -> None:
    handlers = {f"/assets/{path.name}": sorted(names) for path, names in assets.items()}
    done = run_python(
        version,
        f"ASSETS = {json.dumps(handlers)}\n{_IMPORT}",
        {**installed(*_OF_THE_RUNTIME), **{f"/assets/{path.name}": path for path in assets}},
    )
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [
        f"{version} highwater.{handler}"
        for handler in (
            "client.task.handler",
            "handlers.coordinator.handler.handler",
            "handlers.deploy.handler.handler",
            "jobs.worker.handler",
            "queues.drain.handler",
        )
    ]
