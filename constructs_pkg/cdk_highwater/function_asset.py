"""Creation of Lambda functions, with an asset of the installed runtime and, for the scaler, Powertools."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable, Iterable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

import highwater

# a Lambda asset needs neither the client nor the command line
_PACKED = ("__init__.py", "core", "aws", "handlers")
# Parts of Powertools that its logger and metrics do not need; these are most of the package
_LEFT_OUT = (
    "__pycache__",
    "*.pyc",
    "*.pyi",
    "auth_alpha",
    "batch",
    "circuit_breaker",
    "data_classes",
    "data_masking",
    "event_handler",
    "feature_flags",
    "idempotency",
    "kafka",
    "parameters",
    "parser",
    "streaming",
    "validation",
)


def pack_runtime(folder: Path) -> None:
    """Copy the installed core, adapters and handlers into *folder*."""
    _pack_own(folder, _PACKED)
    # Lambda's own zone database is that of its operating system: the asset must know the zones that synth knew
    _copy(_found("tzdata"), folder / "tzdata", ("__pycache__", "*.pyc"))


def _pack_own(folder: Path, names: Iterable[str]) -> None:
    assert highwater.__file__ is not None  # noqa: S101 - a package with an __init__
    source, target = Path(highwater.__file__).parent, folder / "highwater"
    target.mkdir()
    for name in names:
        _copy(source / name, target / name, ("__pycache__", "*.pyc"))


def pack_powertools(folder: Path) -> None:
    """Copy the installed logger and metrics of Powertools, with their imports, into *folder*.

    Packing at synth needs neither a Lambda layer nor the network.

    Raises:
        ModuleNotFoundError: Powertools or one of its dependencies is not installed.
    """
    for name in ("aws_lambda_powertools", "jmespath", "typing_extensions"):
        source = _found(name)
        _copy(source, folder / source.name, _LEFT_OUT)


def _found(name: str) -> Path:
    """The installed package or module of that name."""
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        message = f"{name} is not installed; install cdk-highwater with its dependencies"
        raise ModuleNotFoundError(message)
    origin = Path(spec.origin)
    return origin.parent if origin.name == "__init__.py" else origin


def pack_client(folder: Path) -> None:
    """Copy the installed core and client into *folder*, for functions that are callers of a coordinator."""
    _pack_own(folder, ("__init__.py", "core", "client"))


def make_function(
    scope: Construct,
    *,
    handler: str,
    packs: Iterable[Callable[[Path], None]],
    role: iam.Role,
    package: str = "highwater.handlers",
    **more: Any,
) -> lambda_.Function:
    """Create a function below *scope*. *packs* fill the folder of its asset; *more* are other function properties."""
    function = lambda_.Function(
        scope,
        "Function",
        runtime=lambda_.Runtime.PYTHON_3_14,
        architecture=lambda_.Architecture.ARM_64,
        handler=f"{package}.{handler}.handler",
        code=lambda_.Code.from_asset(str(_packed(tuple(packs)))),
        role=role,
        **more,
    )
    _wait_for_policy_alone(function, role)
    return function


@cache
def _packed(packs: tuple[Callable[[Path], None], ...]) -> Path:
    """Return a folder filled by *packs*, which stays until the process ends.

    The stacks of an app share it: packing takes longer than all else that a stack needs, and the CDK reads and copies a
    folder that it knows only once.
    """
    folder = Path(tempfile.mkdtemp(prefix="highwater-asset-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for pack in packs:
        pack(folder)
    _make_readable(folder)
    return folder


def _wait_for_policy_alone(function: lambda_.Function, role: iam.Role) -> None:
    """Make *function* depend only on its role's policy.

    aws-cdk-lib also adds a dependency on the role, which is redundant because the function refers to the role's ARN
    (cfn-lint W3005).
    """
    template = function.node.default_child
    assert isinstance(template, cdk.CfnResource)  # noqa: S101 - the default child of a function
    default_policy = role.node.try_find_child("DefaultPolicy")
    if default_policy is None:
        # with `Role.customize_roles`, somebody else creates the role and its policies
        return
    policy = default_policy.node.default_child
    assert isinstance(policy, cdk.CfnElement)  # noqa: S101 - the default child of a policy
    template.add_override("DependsOn", [policy.logical_id])


def _make_readable(folder: Path) -> None:
    """Let everybody read the asset, whatever the umask: Lambda runs it as another user, under the same asset hash."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


def _copy(source: Path, target: Path, left_out: tuple[str, ...]) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns(*left_out))
    else:
        shutil.copyfile(source, target)
