"""Lambda functions with an asset of the installed runtime, their roles and logs, and names unique in an account."""

from __future__ import annotations

import atexit
import shutil
import stat
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatch
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import jsii
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sqs as sqs
from constructs import Construct, IConstruct

import highwater
from cdk_highwater.support.nag import INLINE_RULES, LOG_RULES, acknowledge
from highwater.rooms import ROOMS

# Characters of a name that are reserved for the construct: the CDK adds an eight-character digest of its path
_OWN_CHARACTERS = 24


def unique_name(construct: IConstruct, *, most_characters: int) -> str:
    """Return a name for *construct* that no other construct in the account and region has.

    It begins with the name of the stack. A nested stack has no name before it is deployed, so the name of its parent
    stack is used.
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


# the name of a file in an asset, with / between folders, and where it is now
PackedFile = tuple[str, Path]

# a Lambda asset needs neither the client nor the command line
_PACKAGE = ("__init__.py", "exports.py")
_COMPILED = ("__pycache__", "*.pyc")
# Parts of Powertools that its logger and metrics do not need; these are most of the package
_LEFT_OUT_OF_POWERTOOLS = (
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
_DATE = (1980, 1, 1, 0, 0, 0)
_UNIX = 3


def runtime_files() -> Iterator[PackedFile]:
    """Yield the installed core, calls, adapters and handlers."""
    yield from _own_files("core", "calls", "aws", "handlers")
    # Lambda's own zone database is that of its operating system: the asset must know the zones that synth knew
    yield from _files(_found("tzdata"), "tzdata")


def powertools_files() -> Iterator[PackedFile]:
    """Yield the installed logger and metrics of Powertools, with their imports.

    Packing at synth needs neither a Lambda layer nor the network.

    Raises:
        ModuleNotFoundError: Powertools or one of its dependencies is not installed.
    """
    for name in ("aws_lambda_powertools", "jmespath", "typing_extensions"):
        source = _found(name)
        yield from _files(source, source.name, _LEFT_OUT_OF_POWERTOOLS)


def client_files() -> Iterator[PackedFile]:
    """Yield the installed core, calls and client, for functions that are callers of a coordinator."""
    yield from _own_files("core", "calls", "client")


def files_of_room(room: str) -> Iterator[PackedFile]:
    """Yield a room of the installed runtime with all that it imports, for a function that works in it."""
    yield from _own_files("core", "calls", "client", "bulk", "rooms.py", *ROOMS[room], room)


def write_asset(path: Path, packs: Iterable[Callable[[], Iterable[PackedFile]]]) -> None:
    """Write the files of *packs* as a ZIP archive to *path*.

    The archive is the same on every machine, because the CDK deploys a function again when its asset differs by one
    byte: sorted, with one date and one mode for all files, and stored, because compression differs between versions of
    zlib. The files are readable by all users, because Lambda runs them as another user.
    """
    files = sorted(file for pack in packs for file in pack())
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, source in files:
            entry = zipfile.ZipInfo(name, _DATE)
            entry.create_system = _UNIX
            entry.external_attr = (stat.S_IFREG | 0o644) << 16
            archive.writestr(entry, source.read_bytes())


def _own_files(*names: str) -> Iterator[PackedFile]:
    assert highwater.__file__ is not None  # noqa: S101 - a package with an __init__
    for name in (*_PACKAGE, *names):
        yield from _files(Path(highwater.__file__).parent / name, f"highwater/{name}")


def _files(source: Path, name: str, left_out: tuple[str, ...] = ()) -> Iterator[PackedFile]:
    """Yield the file *source*, or the files below it, under *name*, without compiled ones and *left_out*."""
    if source.is_file():
        yield name, source
        return
    for path in source.iterdir():
        if not any(fnmatch(path.name, pattern) for pattern in (*_COMPILED, *left_out)):
            yield from _files(path, f"{name}/{path.name}", left_out)


def _found(name: str) -> Path:
    """Return the path of the installed package or module of that name."""
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        message = f"{name} is not installed; install cdk-highwater with its dependencies"
        raise ModuleNotFoundError(message)
    origin = Path(spec.origin)
    return origin.parent if origin.name == "__init__.py" else origin


def make_role_and_logs(
    scope: Construct, description: str, *, log_group_name: str | None = None
) -> tuple[iam.Role, logs.LogGroup]:
    """Create the role and the log group of one function below *scope*; the role may write to the log group alone."""
    log_group = logs.LogGroup(
        scope,
        "Logs",
        log_group_name=log_group_name,
        retention=logs.RetentionDays.THREE_MONTHS,
        removal_policy=cdk.RemovalPolicy.DESTROY,
    )
    role = iam.Role(
        scope, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"), description=f"Highwater: {description}"
    )
    log_group.grant_write(role)
    return role, log_group


def make_function(
    scope: Construct,
    *,
    handler: str,
    packs: Iterable[Callable[[], Iterable[PackedFile]]],
    role: iam.Role,
    package: str = "highwater.handlers",
    **more: Any,
) -> lambda_.Function:
    """Create a function below *scope*. *packs* yield the files of its asset; *more* are other function properties."""
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
    wait_for_policy_alone(function, role)
    return function


def make_small_function(scope: Construct, purpose: str, rules: Mapping[str, str], **more: Any) -> lambda_.Function:
    """Create a function below *scope* with a role and a log group of its own.

    *purpose* describes the role, *rules* are those of cdk-nag that do not apply to the function, with their reasons,
    and *more* are arguments of `make_function`.
    """
    role, log_group = make_role_and_logs(scope, purpose)
    function = make_function(scope, role=role, log_group=log_group, **more)
    acknowledge(function, rules)
    acknowledge(log_group, LOG_RULES)
    acknowledge(role, INLINE_RULES)
    return function


def make_queue(scope: Construct, id: str, **more: Any) -> sqs.Queue:
    """Create an encrypted queue that keeps messages for two weeks, the longest; *more* are other properties of it."""
    return sqs.Queue(
        scope,
        id,
        encryption=sqs.QueueEncryption.SQS_MANAGED,
        enforce_ssl=True,
        retention_period=cdk.Duration.days(14),
        **more,
    )


@cache
def _packed(packs: tuple[Callable[[], Iterable[PackedFile]], ...]) -> Path:
    """Return an archive of the files of *packs*, which stays until the process ends.

    The stacks of an app share it: packing takes longer than everything else in a stack, and the CDK reads and copies an
    asset that it already knows only once. It is a single file because the CDK takes half a second for a folder of 700.
    """
    folder = Path(tempfile.mkdtemp(prefix="highwater-asset-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / "asset.zip"
    write_asset(path, packs)
    return path


def wait_for_policy_alone(user: IConstruct, role: iam.Role) -> None:
    """Make a function or a state machine depend only on its role's policies, if the role has any.

    aws-cdk-lib also adds a dependency on the role, which is redundant because the template refers to the role's ARN
    (cfn-lint W3005).
    """
    template = user.node.default_child
    assert isinstance(template, cdk.CfnResource)  # noqa: S101 - their default child
    if role.node.try_find_child("DefaultPolicy") is None:
        # the permissions are part of the role, or with `Role.customize_roles` the role is created outside this app
        template.add_deletion_override("DependsOn")
        return
    # the CDK moves what is too much for one policy to others, after everything has been created
    template.add_override("DependsOn", cdk.Lazy.any(_PoliciesBelow(role)))


@jsii.implements(cdk.IStableAnyProducer)
class _PoliciesBelow:
    """The logical ids of the policies that a role has in the template."""

    def __init__(self, role: iam.Role) -> None:
        self._role = role

    def produce(self) -> list[str]:
        """Return the ids; the CDK asks when it writes the template."""
        templates = (child.node.default_child for child in self._role.node.children)
        return [each.logical_id for each in templates if isinstance(each, (iam.CfnPolicy, iam.CfnManagedPolicy))]
