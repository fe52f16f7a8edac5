"""Writes that a queue buffers: queue, dead-letter queue, and the function that writes within a shared budget."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_event_sources as event_sources
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from cdk_highwater.boosts.coordinator import BoostCoordinator
from cdk_highwater.boosts.grants import grant_table, require_grantee, subject_of_table
from cdk_highwater.scaler.alarms import make_alarm
from cdk_highwater.scaler.metrics import put_metric
from cdk_highwater.support.arguments import (
    items_of,
    require,
    require_budget,
    require_number,
    require_or_none,
    require_topic,
)
from cdk_highwater.support.asset import PackedFile, files_of_room, make_queue, make_small_function, unique_name
from cdk_highwater.support.nag import BUFFERED_FUNCTION_RULES, QUEUE_RULES, acknowledge
from cdk_highwater.table.subject import Subject
from highwater.core.findings import shown
from highwater.core.limits import LONGEST_DRAIN_SECONDS
from highwater.core.names import BUFFERS_TAG
from highwater.queues.messages import most_receives

_MEMORY_MIB = 512
# AWS Lambda Developer Guide, "Using Lambda with Amazon SQS": six times the function's timeout and the batching window,
# and 2 to 1,000 concurrent runs (read 2026-11)
_TIMEOUTS_OF_VISIBILITY = 6
_LEAST_CONCURRENCY, _MOST_CONCURRENCY = 2, 1_000
_MOST_BATCH = 1_000
_MOST_BATCH_WITHOUT_WINDOW = 10
_LONGEST_BUDGET_NAME = 80
_DURATION = cdk.Duration, "a cdk.Duration", "give cdk.Duration.minutes(...)"


class BufferedWrites(Construct):
    """A queue whose messages are written to a table, no faster than a budget of write units allows.

    Producers send one action a message: an item in plain JSON, `{"put": {...}}` or `{"delete": {...}}`. What cannot be
    written yet comes back when the budget has room for it; what can never be written goes to the dead-letter queue at
    once, with the reason. docs/buffered-writes.md tells what is promised.

    Args:
        scope: Parent construct.
        id: Unique within *scope*.
        table: The table: its construct or the result of `manage_capacity`, in the stack's account and region.
        coordinator: The coordinator whose table has the record of the shared budget.
        write: Write units per second of the budget, for all that share it together.
        budget: The budget's name, 1 to 121 characters. By default one of this queue's own.
        key: The attributes of the table's key. By default those in the template; an imported table needs them.
        version_attribute: The attribute with a number that grows with each write of an item. Only newer versions are
            written. By default an item's writes are in order only within a batch.
        batch_size: The most messages that the function is given at once, 1 to 1,000. By default 100.
        batching_window: How long Lambda waits for so many, whole seconds up to 5 minutes. By default 1 second.
        max_concurrency: The most runs of the function at once, 2 to 1,000. By default 2, so that an account
            with 10 concurrent runs has some left.
        timeout: The time of one run, 30 seconds to 15 minutes. By default 1 minute.
        drain_time: The time within which every message is to be written, 1 hour to 13 days, as SQS deletes messages
            after 14. By default 12 hours. One alarm tells when a message that is sent now would wait longer, another
            of messages that are older; throttling for that time puts nothing into the dead-letter queue.
        topic: The SNS topic for the alarms. By default they only show in CloudWatch.

    Raises:
        TypeError: An argument is of another type than documented.
        ValueError: An argument is out of range, or the table's key is not known or another one.

    Example:
        ```python
        buffered = BufferedWrites(stack, "Orders", table=orders, coordinator=coordinator, write=500)
        buffered.grant_send(api_role)
        ```
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        table: object,
        coordinator: BoostCoordinator,
        write: int,
        budget: str | None = None,
        key: Sequence[str] | None = None,
        version_attribute: str | None = None,
        batch_size: int = 100,
        batching_window: cdk.Duration | None = None,
        max_concurrency: int = _LEAST_CONCURRENCY,
        timeout: cdk.Duration | None = None,
        drain_time: cdk.Duration | None = None,
        topic: sns.ITopic | None = None,
    ) -> None:
        subject = subject_of_table(table)
        require("coordinator", coordinator, BoostCoordinator, "a BoostCoordinator", "give its construct")
        require_budget(budget)
        require_or_none("version_attribute", version_attribute, str, "the name of an attribute", "give it in quotes")
        require_topic(topic)
        require_number("write", write, 1, None)
        require_number("batch_size", batch_size, 1, _MOST_BATCH)
        require_number("max_concurrency", max_concurrency, _LEAST_CONCURRENCY, _MOST_CONCURRENCY)
        window = _seconds("batching_window", batching_window, default=1, least=0, most=300)
        run = _seconds("timeout", timeout, default=60, least=30, most=900)
        drain = _seconds("drain_time", drain_time, default=43_200, least=3_600, most=LONGEST_DRAIN_SECONDS)
        if not window and batch_size > _MOST_BATCH_WITHOUT_WINDOW:
            message = (
                f"batch_size is {batch_size:,}; allowed: 1 to {_MOST_BATCH_WITHOUT_WINDOW} without a batching_window; "
                "give a window of a second or more"
            )
            raise ValueError(message)
        names = _key_of(subject, key)
        region = cdk.Stack.of(scope).region
        if _is_known(region) and _is_known(subject.region) and subject.region != region:
            message = (
                f"table is in {subject.region}, and {cdk.Stack.of(scope).stack_name} in {region}; "
                "give a table of the stack's region"
            )
            raise ValueError(message)
        if version_attribute is not None and (not version_attribute or version_attribute in names):
            message = (
                f"version_attribute is {version_attribute!r}; allowed: an attribute outside of the key, "
                f"{', '.join(names)}; give the one that producers count up"
            )
            raise ValueError(message)
        super().__init__(scope, id)
        self._coordinator = coordinator
        self._budget = budget or unique_name(self, most_characters=_LONGEST_BUDGET_NAME)
        visibility = _TIMEOUTS_OF_VISIBILITY * run + window
        subject = subject.seen_from(cdk.Stack.of(self))
        # what is deleted here would be writes that somebody was told are safe; queues of a first deploy that fails are
        # empty
        kept = cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE
        self._dead_letters = make_queue(self, "DeadLetters", removal_policy=kept)
        self._queue = make_queue(
            self,
            "Queue",
            visibility_timeout=cdk.Duration.seconds(visibility),
            removal_policy=kept,
            dead_letter_queue=sqs.DeadLetterQueue(
                queue=self._dead_letters, max_receive_count=most_receives(drain, visibility)
            ),
        )
        for queue in (self._queue, self._dead_letters):
            cdk.Tags.of(queue).add(BUFFERS_TAG, subject.name)
        environment = {
            "HIGHWATER_TABLE": subject.name,
            "HIGHWATER_KEY": json.dumps(names),
            "HIGHWATER_WRITE": str(write),
            "HIGHWATER_BUDGET": self._budget,
            "HIGHWATER_QUEUE_URL": self._queue.queue_url,
            "HIGHWATER_DEAD_LETTERS_URL": self._dead_letters.queue_url,
        }
        if version_attribute is not None:
            environment["HIGHWATER_VERSION"] = version_attribute
        self._function = self._make_function(subject, environment, run, has_version=version_attribute is not None)
        self._function.add_event_source(
            event_sources.SqsEventSource(
                self._queue,
                batch_size=batch_size,
                max_batching_window=cdk.Duration.seconds(window),
                max_concurrency=max_concurrency,
                report_batch_item_failures=True,
            )
        )
        coordinator.grant_budget(self._function, self._budget)
        acknowledge(self._dead_letters, QUEUE_RULES)
        self._add_alarms(drain, topic)

    @property
    def queue(self) -> sqs.IQueue:
        """The queue to which producers send."""
        return self._queue

    @property
    def dead_letters(self) -> sqs.IQueue:
        """The queue of messages that can never be written, each with the reason as attribute `HighwaterReason`."""
        return self._dead_letters

    @property
    def function(self) -> lambda_.IFunction:
        """The function that writes."""
        return self._function

    @property
    def budget(self) -> str:
        """The budget's name, for other workers that share it."""
        return self._budget

    def grant_send(self, grantee: iam.IGrantable) -> None:
        """Let a role or user send messages to the queue, and do nothing else.

        Args:
            grantee: A role, a user, or a construct with a role, such as a Lambda function.

        Raises:
            TypeError: The grantee is neither a role nor a user.
        """
        require_grantee(grantee)
        iam.Grant.add_to_principal_or_resource(
            grantee=grantee, actions=["sqs:SendMessage"], resource_arns=[self._queue.queue_arn], resource=self._queue
        )

    def grant_budget(self, grantee: iam.IGrantable) -> None:
        """Let another worker share the budget, as `highwater.pace(..., budget=buffered.budget)` does.

        Args:
            grantee: A role, a user, or a construct with a role, such as a Lambda function.

        Raises:
            TypeError: The grantee is neither a role nor a user.
        """
        self._coordinator.grant_budget(grantee, self._budget)

    def _make_function(
        self, subject: Subject, environment: dict[str, str], seconds: int, *, has_version: bool
    ) -> lambda_.Function:
        function = make_small_function(
            self,
            "writes what a queue has buffered",
            BUFFERED_FUNCTION_RULES,
            package="highwater.queues",
            handler="drain",
            packs=[_files],
            description="Highwater: writes what a queue has buffered, within a budget",
            timeout=cdk.Duration.seconds(seconds),
            memory_size=_MEMORY_MIB,
            environment=environment,
        )
        # a request for many items has no conditions, so with versions each item is sent by itself
        batches = [] if has_version else ["dynamodb:BatchWriteItem"]
        grant_table(function, subject, [*batches, "dynamodb:DeleteItem", "dynamodb:PutItem"])
        self._dead_letters.grant(function, "sqs:SendMessage")
        return function

    def _add_alarms(self, drain: int, topic: sns.ITopic | None) -> None:
        period = cdk.Duration.minutes(5)
        late = "raise the budget, or send less"
        alarm = partial(make_alarm, self, topic)
        alarm(
            "Backlog",
            self._expected_wait(period, drain),
            f"at the present rate a write that is sent now waits in the queue for longer than it should; {late}",
            threshold=drain,
            periods=3,
        )
        alarm(
            "Age",
            self._queue.metric_approximate_age_of_oldest_message(period=period, statistic="Maximum"),
            f"writes wait in the queue for longer than they should; {late}",
            threshold=drain,
        )
        # SQS's metric leaves out messages that were received more than three times; the function tells of these
        alarm(
            "AgeOfReturned",
            put_metric(self._function.function_name, "OldestReturned").with_(statistic="Maximum"),
            f"writes come back to the queue for longer than they should; {late}",
            threshold=drain,
        )
        alarm(
            "DeadLettersAlarm",
            self._dead_letters.metric_approximate_number_of_messages_visible(
                period=cdk.Duration.minutes(1), statistic="Maximum"
            ),
            "messages could not be written; the dead-letter queue has them, with the reasons",
        )
        alarm(
            "Errors",
            self._function.metric_errors(period=period, statistic="Sum"),
            "the function that writes failed; its log shows the error",
            periods=3,
        )

    def _expected_wait(self, period: cdk.Duration, drain: int) -> cloudwatch.MathExpression:
        """Return the seconds after which a message that is sent now will be written, at the rate of each period.

        Returned messages are hidden, and wait like the others. While none is done, there is no rate to divide by: a
        message counts as *drain*, so that one that is there for the whole period reaches it.
        """
        visible = self._queue.metric_approximate_number_of_messages_visible(period=period, statistic="Average")
        hidden = self._queue.metric_approximate_number_of_messages_not_visible(period=period, statistic="Average")
        waiting = cloudwatch.MathExpression(
            expression="visible + FILL(hidden, 0)",
            using_metrics={"visible": visible, "hidden": hidden},
            period=period,
        )
        done = cloudwatch.MathExpression(
            expression="FILL(deleted, 0)",
            using_metrics={"deleted": self._queue.metric_number_of_messages_deleted(period=period, statistic="Sum")},
            period=period,
        )
        return cloudwatch.MathExpression(
            expression=f"IF(done > 0, waiting * {period.to_seconds():.0f} / done, waiting * {drain})",
            using_metrics={"waiting": waiting, "done": done},
            label="seconds until a write that is sent now is done",
            period=period,
        )


def _is_known(region: str) -> bool:
    return not cdk.Token.is_unresolved(region)


def _seconds(name: str, value: cdk.Duration | None, *, default: int, least: int, most: float) -> int:
    require_or_none(name, value, *_DURATION)
    seconds = default if value is None else value.to_seconds(integral=False)
    if seconds % 1 or not least <= seconds <= most:
        message = f"{name} is {seconds:,.10g} seconds; allowed: whole seconds from {least:,} to {most:,.0f}"
        raise ValueError(message)
    return int(seconds)


def _key_of(subject: Subject, given: Sequence[str] | None) -> tuple[str, ...]:
    """Return the attributes of the table's key; raises an error if they are not known, or others than *given*."""
    known = subject.key_names()
    if given is None:
        if not known:
            message = "key is not known of an imported table; give the attributes of its key: key=['pk', 'sk']"
            raise ValueError(message)
        return known
    names = items_of("key", given, "names of attributes", "give the names in brackets")
    texts = tuple(name for name in names if isinstance(name, str) and name)
    if len(texts) != len(names) or len(texts) not in (1, 2):
        message = f"key is {shown(given)}; allowed: the names of one or two attributes, the partition key first"
        raise ValueError(message)
    if known and texts != known:
        message = f"key is {shown(given)}, and the table's is {', '.join(known)}; leave the argument out"
        raise ValueError(message)
    return texts


def _files() -> Iterator[PackedFile]:
    return files_of_room("queues")
