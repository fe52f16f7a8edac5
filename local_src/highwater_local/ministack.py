"""Functions and values in MiniStack's modules that this package calls, or replaces with its own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from importlib import import_module, metadata
from typing import Any, Final, TypeVar

T = TypeVar("T")
_PACKAGE: Final = "ministack"
# all declared values, in order
DECLARED: Final[list[Value]] = []


class Value:
    """A name in one of MiniStack's modules, and the members that its value must have."""

    def __init__(self, module: str, name: str, *members: str) -> None:
        self._place = f"{_PACKAGE}.{module}"
        self._name = name
        self._members = members
        self._module: Any = None
        DECLARED.append(self)

    @property
    def path(self) -> str:
        """The module and the name."""
        return f"{self._place}.{self._name}"

    @property
    def now(self) -> Any:
        """The present value of that name in MiniStack."""
        return getattr(self._module, self._name)

    def replace(self, new: Any) -> Any:
        """Make MiniStack use *new* from now on; return the value until now."""
        before = self.now
        setattr(self._module, self._name, new)
        return before

    def lacking(self) -> Iterator[str]:
        """Import the module; yield the full name of everything that is missing of the value."""
        try:
            self._module = import_module(self._place)
            value = self.now
        except (ImportError, AttributeError):
            yield self.path
        else:
            yield from self._wrong(self.path, value)

    def _wrong(self, path: str, value: Any) -> Iterator[str]:
        yield from (f"{path}.{member}" for member in self._members if not hasattr(value, member))


class Function(Value):
    """A function of MiniStack, to call or to replace."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Call the present value of that name, as MiniStack does."""
        return self.now(*arguments, **options)

    def wrap(self, wrapper: Callable[..., Any]) -> None:
        """Make MiniStack call *wrapper* from now on, whose first argument is the function until now."""
        self.replace(partial(wrapper, self.now))

    def _wrong(self, path: str, value: Any) -> Iterator[str]:
        if not callable(value):
            yield f"{path} as a function"


class Requests(Value):
    """Functions that answer requests, by the names of their actions."""

    def wrap(self, name: str, wrapper: Callable[..., Any]) -> None:
        """Answer a request by *wrapper* from now on, whose first argument is the function until now."""
        self.now[name] = partial(wrapper, self.now[name])

    def add(self, name: str, function: Callable[..., Any]) -> None:
        """Answer a request by *function* that MiniStack does not know."""
        self.now[name] = function


class Handlers(Value):
    """Functions by the names of their actions, by resource types."""

    def __init__(self, module: str, name: str, kinds: tuple[str, ...], actions: tuple[str, ...]) -> None:
        super().__init__(module, name)
        self._needed = [(kind, action) for kind in kinds for action in actions]

    def _wrong(self, path: str, value: Any) -> Iterator[str]:
        for kind, action in self._needed:
            if not callable(value.get(kind, {}).get(action)):
                yield f"{path}[{kind!r}][{action!r}] as a function"


class Script(Value):
    """A program as text, with a line after which code is inserted."""

    def __init__(self, module: str, name: str, line: str) -> None:
        super().__init__(module, name)
        self._line = line

    def _wrong(self, path: str, value: Any) -> Iterator[str]:
        if not isinstance(value, str) or value.count(self._line) != 1:
            yield f"{path} with the line {self._line!r}"


# As local_src/pyproject.toml pins it: another version may have moved a function that is replaced here
WANTED: Final = "1.5.33"
REINSTALL: Final = "install highwater-local anew, in an environment of its own"
Document = dict[str, Any]
# status, headers and body
Answer = tuple[int, dict[str, Any], Any]
# the physical id of a resource of a stack, and its attributes
Created = tuple[str, Document]


class ResourceRefusedError(ValueError):
    """A resource of a stack is rejected; the message is the reason in the stack's events."""


class MiniStackError(Exception):
    """MiniStack is not installed, is of another version, or lacks a function that this cloud needs."""

    def __init__(self, found: str | None, lacking: list[str]) -> None:
        installed = f"{found or 'none'} is installed" + (f", without {', '.join(lacking)}" if lacking else "")
        super().__init__(f"the local cloud needs MiniStack {WANTED}, but {installed}; {REINSTALL}")


TABLE: Final = "AWS::DynamoDB::Table"
GLOBAL_TABLE: Final = "AWS::DynamoDB::GlobalTable"
ALARM: Final = "AWS::CloudWatch::Alarm"

app: Final = Function("app", "app")

# the account and region of a request, and answers
get_account_id: Final = Function("core.responses", "get_account_id")
get_region: Final = Function("core.responses", "get_region")
request_scope: Final = Function("core.responses", "request_scope")
_error_answer: Final = Function("core.responses", "error_response_json")
json_answer: Final = Function("core.responses", "json_response")
_set_account: Final = Function("core.responses", "set_request_account_id")
_set_region: Final = Function("core.responses", "set_request_region")
_region_of: Final = Function("core.router", "extract_region")

# a request's service and action, and the evaluation of policies
service_of: Final = Function("core.router", "detect_service")
action_of: Final = Function("core.iam_actions", "extract_iam_action")
resource_arn_of: Final = Function("core.iam_actions", "extract_resource_arn")
table_arns: Final = Function("core.iam_actions", "dynamodb_resource_arns")
denied_answer: Final = Function("core.iam_actions", "access_denied_response")
resource_tags: Final = Function("services.tagging", "resource_tags")
role_policies: Final = Function("core.iam_evaluator", "_gather_role_policies")
role_boundary: Final = Function("core.iam_evaluator", "_permissions_boundary")
evaluate_policies: Final = Function("core.iam_evaluator", "evaluate")
ALWAYS_ALLOWED: Final = Value("core.iam_evaluator", "_ALWAYS_ALLOWED_ACTIONS", "__contains__")
parse_policy: Final = Function("core.iam_evaluator", "parse_policy_document")
evaluation_context: Final = Value("core.iam_evaluator", "EvalContext")
access_key_of: Final = Function("core.router", "extract_access_key_id")
caller_identity: Final = Function("core.iam_evaluator", "resolve_caller_identity")
FUNCTION_CREDENTIALS: Final = tuple(
    Function(module, "execution_credentials") for module in ("services.lambda_svc", "core.lambda_runtime")
)

# DynamoDB's control plane
create_table: Final = Function("services.dynamodb", "_create_table")
update_table: Final = Function("services.dynamodb", "_update_table")
delete_table: Final = Function("services.dynamodb", "_delete_table")
describe_table: Final = Function("services.dynamodb", "_table_description")
refuse_table_name: Final = Function("services.dynamodb", "_validate_table_name")
_replica_group: Final = Function("services.dynamodb", "_replica_group")
tag_table: Final = Function("services.dynamodb", "_tag_resource")
untag_table: Final = Function("services.dynamodb", "_untag_resource")
update_backups: Final = Function("services.dynamodb", "_update_continuous_backups")
export_table: Final = Function("services.dynamodb", "_export_table_to_point_in_time")
_exports: Final = Value("services.dynamodb", "_exports", "get")
put_object: Final = Function("services.s3", "_put_object")
_backups: Final = Value("services.dynamodb", "_pitr_settings", "get")
update_time_to_live: Final = Function("services.dynamodb", "_update_ttl")
describe_encryption: Final = Function("services.dynamodb", "_sse_description_from_spec")
_tables: Final = Value("services.dynamodb", "_tables", "_data")
_table_name: Final = Function("services.dynamodb", "_normalize_table_name")

# DynamoDB's operations on items
get_item: Final = Function("services.dynamodb", "_get_item")
ITEM_OPERATIONS: Final = {
    "PutItem": Function("services.dynamodb", "_put_item"),
    "UpdateItem": Function("services.dynamodb", "_update_item"),
    "DeleteItem": Function("services.dynamodb", "_delete_item"),
    "Query": Function("services.dynamodb", "_query"),
    "Scan": Function("services.dynamodb", "_scan"),
}
batch_write: Final = Function("services.dynamodb", "_batch_write_item")
batch_get: Final = Function("services.dynamodb", "_batch_get_item")
batch_execute: Final = Function("services.dynamodb", "_batch_execute_statement")
transact_write: Final = Function("services.dynamodb", "_transact_write_items")
transact_get: Final = Function("services.dynamodb", "_transact_get_items")
execute_transaction: Final = Function("services.dynamodb", "_execute_transaction")
execute_statement: Final = Function("services.dynamodb", "_execute_statement")
select: Final = Function("services.dynamodb", "_partiql_select")
select_of_index: Final = Function("services.dynamodb", "_partiql_select_index")
WRITING_STATEMENTS: Final = tuple(
    Function("services.dynamodb", name) for name in ("_partiql_insert", "_partiql_update", "_partiql_delete")
)

# the functions by which every operation reads and writes items
set_item: Final = Function("services.dynamodb", "_set_item")
remove_item: Final = Function("services.dynamodb", "_remove_item")
items_replaced: Final = Function("services.dynamodb", "_items_replaced")
fail_condition: Final = Function("services.dynamodb", "_conditional_check_failed")
items_after: Final = Function("services.dynamodb", "_apply_exclusive_start_key_scan")
parse_statement: Final = Function("services.dynamodb", "_parse_partiql")
page_of: Final = Function("services.dynamodb", "_paginate_evaluated_items")
replicate: Final = Function("services.dynamodb", "_replicate_write")
find_item: Final = Function("services.dynamodb", "_get_item_by_key")
duplicates_text: Final = Function("services.dynamodb", "_duplicate_set_message")
item_bytes: Final = Function("services.dynamodb", "_item_size_bytes")
index_write_units: Final = Function("services.dynamodb", "_index_write_units")
meets_condition: Final = Function("services.dynamodb", "_eval_partiql_pred")
order_value: Final = Function("services.dynamodb", "_index_order_value")
projected: Final = Function("services.dynamodb", "_apply_index_projection")

# CloudWatch
METRIC_QUERIES: Final = tuple(
    Function("services.cloudwatch", name) for name in ("_get_metric_data", "_get_metric_statistics", "_list_metrics")
)
ALARM_QUERIES: Final = tuple(
    Function("services.cloudwatch", name) for name in ("_describe_alarms", "_describe_alarms_for_metric")
)
put_datum: Final = Function("services.cloudwatch", "_store_datum")
drop_old_metrics: Final = Function("services.cloudwatch", "_evict_old_metrics")
put_alarm: Final = Function("services.cloudwatch", "_put_metric_alarm")
judge_alarm: Final = Function("services.cloudwatch", "_evaluate_alarm")
judge_parent_alarms: Final = Function("services.cloudwatch", "_evaluate_parent_alarms")
start_alarm_actions: Final = Function("services.cloudwatch", "_dispatch_alarm_actions")
record_alarm_history: Final = Function("services.cloudwatch", "_record_history")
alarm_history: Final = Function("services.cloudwatch", "_history_entries")
_alarms: Final = Value("services.cloudwatch", "_alarms", "_data", "values")

# stacks: the background work of deploys and deletions, and the requests for them
DEPLOYS: Final = tuple(
    Function(f"services.cloudformation.{module}", "_deploy_stack_async") for module in ("handlers", "changesets")
)
delete_resources: Final = Function("services.cloudformation.handlers", "_delete_stack_async")
find_stack: Final = Function("services.cloudformation.handlers", "_resolve_stack")
_stacks: Final = Value("services.cloudformation", "_stacks", "_data", "values")
query_error: Final = Function("services.cloudformation.handlers", "_error")
query_answer: Final = Function("services.cloudformation.handlers", "_xml")
STACK_REQUESTS: Final = Requests("services.cloudformation.handlers", "_ACTION_HANDLERS", "__setitem__")
is_same_stack: Final = Function("services.cloudformation.handlers", "_stack_has_no_updates")
find_change_set: Final = Function("services.cloudformation.changesets", "_find_change_set")
update_resource: Final = Function("services.cloudformation.stacks", "_update_resource")
is_replacing: Final = Function("services.cloudformation.provisioners", "_replacing_change")
add_stack_event: Final = Function("services.cloudformation.stacks", "_add_event")

# roles
put_role_policy: Final = Function("services.iam", "_put_role_policy")
iam_roles: Final = Value("services.iam", "_roles", "get", "get_scoped")
is_policy: Final = Function("services.iam", "policy_known")
refuse_boundary: Final = Function("services.iam", "_boundary_policy_error")
iam_error: Final = Function("services.iam", "_error")
IAM_REQUESTS: Final = Requests("services.iam", "_IAM_HANDLERS", "__setitem__")

# parameters
put_parameter: Final = Function("services.ssm", "_put_parameter")
get_parameters: Final = Function("services.ssm", "_get_parameters")
_parameters: Final = Value("services.ssm", "_parameters", "get")
_datapoints: Final = Value("services.cloudwatch", "_metrics", "get")
_dimensions_key: Final = Function("services.cloudwatch", "_dims_key")
_statistics: Final = Function("services.cloudwatch", "_calc_stats")
_statistic: Final = Function("services.cloudwatch", "_stat_value")

# events, schedules, functions
put_events: Final = Function("services.eventbridge", "_put_events")
invoke_target: Final = Function("services.eventbridge", "_invoke_target")
invoke_function: Final = Function("services.eventbridge", "_dispatch_to_lambda")
start_scheduler: Final = Function("services.scheduler", "start_scheduler")
run_schedules: Final = Function("services.scheduler", "_tick_schedules")
create_schedule: Final = Function("services.scheduler", "_create_schedule")
update_schedule: Final = Function("services.scheduler", "_update_schedule")
get_schedule: Final = Function("services.scheduler", "_get_schedule")
_last_fired: Final = Value("services.scheduler", "_schedule_last_fired", "items")
# the source of MiniStack's Python worker; code is inserted after this line, where an invocation's context exists
PYTHON_WORKER_CONTEXT: Final = '_ms_ctx = _ms_msg.get("ctx") or {}'
PYTHON_WORKER: Final = Script("core.lambda_runtime", "_PYTHON_WORKER_SCRIPT", PYTHON_WORKER_CONTEXT)
run_function: Final = Function("services.lambda_svc", "_execute_function")
run_in_worker: Final = Function("services.lambda_svc", "_execute_function_warm")
start_function: Final = Function("services.lambda_svc", "invoke_async_with_retry")
tell_failure: Final = Function("services.lambda_svc", "_route_async_failure")
# real time, by which functions run, but for a queue's batches and what is told of a failure
time_of_functions: Final = Value("services.lambda_svc", "time")
find_function: Final = Function("services.lambda_svc", "_get_func_record_for_ref")
# queues that start functions
every_mapping: Final = Function("services.lambda_svc", "_iter_all_esms")
poll_queues: Final = Function("services.lambda_svc", "_poll_sqs")
start_batch: Final = Function("services.lambda_svc", "_dispatch_esm_batch")
most_batches: Final = Function("services.lambda_svc", "_sqs_esm_concurrency")
function_of_mapping: Final = Function("services.lambda_svc", "_get_func_record_for_qualifier")
pauses_of_mappings: Final = Value("services.lambda_svc", "_esm_backoff_until", "get")
receive_for_mapping: Final = Function("services.sqs", "_receive_messages_for_esm")
queue_refusal: Final = Function("services.sqs", "_Err")
queue_of: Final = Function("services.sqs", "_queue_by_arn")
queue_at: Final = Function("services.sqs", "_get_q")
delete_for_mapping: Final = Function("services.sqs", "_delete_messages_for_esm")
QUEUE_REQUESTS: Final = Requests("services.sqs", "_HANDLERS", "__setitem__")
_queues: Final = Value("services.sqs", "_queues", "_data", "values")
function_version: Final = Function("services.lambda_svc", "_execution_record_for_config")
write_function_log: Final = Function("services.lambda_svc", "_emit_lambda_logs")
create_function: Final = Function("services.lambda_svc", "_create_function")
configure_function: Final = Function("services.lambda_svc", "_update_config")
# concurrent runs: the account's quota, and what functions have reserved of it
most_runs: Final = Value("services.lambda_svc", "_ACCOUNT_CONCURRENCY_CAP")
account_settings: Final = Function("services.lambda_svc", "_get_account_settings")
reserve_runs: Final = Function("services.lambda_svc", "_put_function_concurrency")
release_runs: Final = Function("services.lambda_svc", "_delete_function_concurrency")
reserved_runs: Final = Function("services.lambda_svc", "_get_function_concurrency")
set_recursion: Final = Function("services.lambda_svc", "_put_function_recursion_config")
count_run: Final = Function("services.lambda_svc", "_emit_lambda_metrics")
function_url_event: Final = Function("services.lambda_svc", "_build_function_url_event")
function_url_attributes: Final = Function("services.cloudformation.provisioners", "_lambda_url_attributes")
function_url_target: Final = Function("app", "_function_url_auth_target")
start_execution: Final = Function("services.stepfunctions", "_start_execution")
run_execution: Final = Function("services.stepfunctions", "_run_execution")
run_branch: Final = Function("services.stepfunctions", "_run_sub_machine")
matches_error: Final = Function("services.stepfunctions", "_error_matches")
wait_in_state: Final = Function("services.stepfunctions", "_scaled_sleep")
log_groups: Final = Value("services.cloudwatch_logs", "_log_groups")
append_log_events: Final = Function("services.cloudwatch_logs", "_append_log_events")

_clocks: Final = tuple(
    Value(f"services.{service}", "time")
    for service in (
        "cloudwatch",
        "cloudwatch_logs",
        "cloudformation.provisioners",
        "dynamodb",
        "eventbridge",
        "s3",
        "scheduler",
        "sns",
        "sqs",
    )
)
# the functions that the CloudFormation engine calls for each resource type
_handlers: Final = Handlers(
    "services.cloudformation.provisioners", "_RESOURCE_HANDLERS", (TABLE, GLOBAL_TABLE, ALARM), ("create", "update")
)
_replacing: Final = Value("services.cloudformation.provisioners", "_REPLACING_PROPERTIES", "get")
_custom_names: Final = Value("services.cloudformation.provisioners", "_CUSTOM_NAME_REPLACEMENT", "items")


def load() -> None:
    """Import MiniStack, which reads its settings from the environment now; raises `MiniStackError`."""
    try:
        found = metadata.version("ministack")
    except metadata.PackageNotFoundError as absent:
        raise MiniStackError(None, []) from absent
    recursion_limit = sys.getrecursionlimit()
    lacking = [path for value in DECLARED for path in value.lacking()]
    sys.setrecursionlimit(recursion_limit)  # one of its libraries raises it for the whole process
    if found != WANTED or lacking:
        raise MiniStackError(found, lacking)


def run_by(clock: object) -> None:
    """Replace the module `time` by *clock* in the services that use this cloud's time."""
    for time in _clocks:
        time.replace(clock)


def enter_scope(headers: Mapping[str, str]) -> None:
    """Set the account and region of a request's headers for the rest of the request."""
    _set_account(access_key_of(headers, {}) or "test")
    _set_region(_region_of(headers, {}))


@contextmanager
def setting(variable: ContextVar[T], value: T) -> Iterator[None]:
    """Give a context variable a value in a block, and in tasks that begin there: what MiniStack calls can read it."""
    before = variable.set(value)
    try:
        yield
    finally:
        variable.reset(before)


def error_answer(code: str, message: str, **form: str) -> Answer:
    """Return the answer of a service with a JSON protocol to a request that it rejects.

    *form* is where the service differs: `message_key` and `content_type`.
    """
    found: Answer = _error_answer(code, message, **form)
    return found


def rejected(text: str) -> Answer:
    """Return the answer to an invalid request: a `ValidationException` with that text."""
    return error_answer("ValidationException", text)


def first(value: Any) -> Any:
    """Return the value of a member of a request, which is a list of one in the form of a query."""
    return value[0] if isinstance(value, list) else value


def tables() -> dict[str, Document]:
    """Return the tables of the present account and region, by name."""
    found: dict[str, Document] = _tables.now
    return found


def find_table(name: object) -> Document | None:
    """Return the table of that name or ARN, `None` if there is none."""
    return tables().get(_table_name(name)) if isinstance(name, str) else None


def replica_regions(table: object) -> list[str]:
    """Return the other regions of a global table of that name or ARN; none for any other table."""
    found = find_table(table)
    return [] if found is None else [region for region in _replica_group(found) if region != get_region()]


def has_recovery(table: str) -> bool:
    """Whether point-in-time recovery is on for the table of that name."""
    return bool(_backups.now.get(table))


def export_of(arn: str) -> Document:
    """Return the record of an export, which may be changed."""
    found: Document = _exports.now.get(arn)
    return found


def every_table() -> list[tuple[str, Document]]:
    """Return name and record of the tables of all accounts and regions."""
    return [(str(table["TableName"]), table) for table in _tables.now._data.values()]


def stacks() -> list[Document]:
    """Return the stacks of the present account and region."""
    return list(_stacks.now.values())


def alarm_scopes() -> set[tuple[str, str]]:
    """Return the accounts and regions that have alarms."""
    return {key[:2] for key in _alarms.now._data}


def queue_scopes() -> set[tuple[str, str]]:
    """Return the accounts and regions that have queues."""
    return {key[:2] for key in _queues.now._data}


def alarms_by_name() -> MutableMapping[Any, Document]:
    """Return the alarms of the present account and region, as a mapping that may be changed."""
    found: MutableMapping[Any, Document] = _alarms.now
    return found


def queues() -> list[Document]:
    """Return the queues of the present account and region."""
    return list(_queues.now.values())


def parameters() -> Mapping[Any, Document]:
    """Return Systems Manager's parameters of the present account and region, by name."""
    found: Mapping[Any, Document] = _parameters.now
    return found


def datapoints(namespace: str, metric: str, dimensions: Mapping[str, str]) -> list[Document]:
    """Return the datapoints of a metric, in no particular order."""
    return _datapoints.now.get((namespace, metric, _dimensions_key(dimensions))) or []


def statistic_of(points: list[Document], statistic: str) -> float | None:
    """Return a statistic of datapoints, `None` if they do not have it."""
    value = _statistic(_statistics(points), statistic, points)
    return None if value is None else float(value)


def round_last_runs() -> None:
    """Round the last runs of schedules to whole minutes: if one was a little late, the next would be left out."""
    fired = _last_fired.now
    for key, at in list(fired.items()):
        fired[key] = int(at) // 60 * 60


def has_resource_type(kind: str) -> bool:
    """Whether the CloudFormation engine makes resources of a type."""
    return kind in _handlers.now


def add_resource_type(kind: str, handlers: Mapping[str, Callable[..., Any]], replacing: tuple[str, ...]) -> None:
    """Add a resource type to the CloudFormation engine; properties in *replacing* cannot be updated in place."""
    _handlers.now[kind] = dict(handlers)
    _replacing.now[kind] = replacing


def replace_tables_on(properties: tuple[str, ...]) -> None:
    """Make the CloudFormation engine replace a table, under another name, if one of *properties* or its name changes.

    A table that is named in the template cannot be replaced under that name: the update is rejected.
    """
    for kind in (TABLE, GLOBAL_TABLE):
        _replacing.now[kind] = (*_replacing.now.get(kind, ("TableName",)), *properties)
    _custom_names.now[GLOBAL_TABLE] = {"name": "TableName"}


def wrap_resource_handler(kind: str, action: str, wrapper: Callable[..., Any]) -> None:
    """Make the CloudFormation engine `create`, `update` or `delete` a resource by *wrapper* from now on.

    Its first argument is the engine's handler until now; then follow a resource's id, its properties, for an update the
    old and the new ones, and for all but a deletion the name of the stack.
    """
    handlers = _handlers.now[kind]
    handlers[action] = partial(wrapper, handlers[action])


def refuse_names(kind: str, member: str, refusal: Callable[[str, str], str | None]) -> None:
    """Reject new resources of a stack by their names in the template.

    *refusal* returns the reason, from the logical id and the name, which is the property *member*. Names that the
    engine generates are unused and valid.
    """

    def check(own: Callable[..., Created], logical_id: str, properties: Document, *rest: Any) -> Created:
        name = properties.get(member)
        reason = refusal(logical_id, name) if isinstance(name, str) else None
        if reason is not None:
            raise ResourceRefusedError(reason)
        return own(logical_id, properties, *rest)

    wrap_resource_handler(kind, "create", check)
