"""Messages of a queue that buffers writes: what they ask for, which one counts, when they come back."""

from __future__ import annotations

from decimal import Decimal

import pytest

from highwater.queues.messages import (
    BufferedAction,
    Message,
    Poison,
    body_of,
    delay_seconds,
    in_tens,
    most_receives,
    newest_first,
    read_action,
)

DAY = 86_400


def _message(body: str, sent_ms: int = 0, id: str = "m-1") -> Message:
    return Message(id, f"receipt of {id}", body, sent_ms)


def _action(
    body: str, *, version: str | None = None, key: tuple[str, ...] = ("pk",), sent_ms: int = 0
) -> BufferedAction:
    read = read_action(_message(body, sent_ms), key, version)
    assert isinstance(read, BufferedAction)
    return read


@pytest.mark.parametrize(
    ("body", "is_delete", "values"),
    [
        ('{"put": {"pk": "a", "total": 1.50}}', False, {"pk": "a", "total": Decimal("1.50")}),
        ('{"delete": {"pk": "a"}}', True, {"pk": "a"}),
        ('{"pk": "a", "put": {"x": 1}}', False, {"pk": "a", "put": {"x": 1}}),
        ('{"pk": "a"}', False, {"pk": "a"}),
    ],
)
def test_body_is_a_put_a_delete_or_an_item_alone(body: str, is_delete: bool, values: object) -> None:
    action = _action(body)
    assert (action.is_delete, action.values, action.key, action.version) == (is_delete, values, ("a",), None)


def test_item_whose_key_is_called_put_is_an_item() -> None:
    assert _action('{"put": "a"}', key=("put",)).values == {"put": "a"}


def test_delete_has_its_version_beside_the_key() -> None:
    action = _action('{"delete": {"pk": "a", "day": 5, "v": 7}}', key=("pk", "day"), version="v")
    assert (action.values, action.key, action.version) == ({"pk": "a", "day": 5}, ("a", 5), Decimal(7))


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("", "body: is not JSON (Expecting value: line 1 column 1 (char 0)); send one action as JSON"),
        ('{"pk": NaN}', "body: is not JSON (NaN is not a number of JSON); send one action as JSON"),
        ("[1]", "body: got a list, allowed: an object; send one action a message"),
        ("true", "body: got true or false, allowed: an object; send one action a message"),
        ("null", "body: got null, allowed: an object; send one action a message"),
        ('"a"', "body: got a text, allowed: an object; send one action a message"),
        ("5", "body: got a number, allowed: an object; send one action a message"),
        ('{"v": 1}', "put: pk: is missing, allowed: a text or a number; it is part of the key"),
        ('{"pk": true, "v": 1}', "put: pk: got True, allowed: a text or a number; it is part of the key"),
        ('{"delete": {"pk": null}}', "delete: pk: got None, allowed: a text or a number; it is part of the key"),
        ('{"pk": "a"}', "put: v: is missing, allowed: a number; the queue orders writes by it"),
        ('{"pk": "a", "v": "1"}', "put: v: got '1', allowed: a number; the queue orders writes by it"),
        ('{"pk": "a", "v": false}', "put: v: got False, allowed: a number; the queue orders writes by it"),
        ('{"delete": {"pk": "a", "v": 1, "x": 1}}', "delete: x: is no part of the key, allowed: pk; leave it out"),
    ],
)
def test_body_that_can_never_be_written_is_poison_with_its_reason(body: str, why: str) -> None:
    assert read_action(_message(body), ("pk",), "v") == Poison(_message(body), why)


def test_body_that_is_nested_without_end_is_poison() -> None:
    read = read_action(_message("[" * 20_000 + "]" * 20_000), ("pk",), None)
    assert isinstance(read, Poison)
    assert read.why == "body: is nested too deeply; send one action as JSON"


def test_newest_by_version_comes_first_whenever_it_was_sent() -> None:
    sent = [
        _action('{"pk": "a", "v": 2}', version="v", sent_ms=5),
        _action('{"pk": "b", "v": 1}', version="v", sent_ms=1),
        _action('{"pk": "a", "v": 10}', version="v", sent_ms=1),
        _action('{"delete": {"pk": "a", "v": 2}}', version="v", sent_ms=6),
    ]
    assert newest_first(sent) == [[sent[2], sent[3], sent[0]], [sent[1]]]


def test_newest_without_versions_is_the_one_sent_last_and_then_the_last_one() -> None:
    sent = [
        _action('{"pk": "a", "n": 1}', sent_ms=5),
        _action('{"pk": "a", "n": 2}', sent_ms=4),
        _action('{"pk": "a", "n": 3}', sent_ms=5),
    ]
    assert newest_first(sent) == [[sent[2], sent[0], sent[1]]]


def test_number_and_text_are_different_keys_and_one_number_is_one_key() -> None:
    sent = [_action('{"pk": 1}'), _action('{"pk": "1"}'), _action('{"pk": 1.0}')]
    assert newest_first(sent) == [[sent[2], sent[0]], [sent[1]]]


@pytest.mark.parametrize(
    ("wait", "age", "seconds"),
    [(0, 0, 1), (0, -5, 1), (2.1, 0, 3), (2.1, 100, 10), (90, 100, 90), (0, 20 * DAY, 42_300), (10**6, 0, 42_300)],
)
def test_message_comes_back_after_its_wait_or_a_tenth_of_its_age(wait: float, age: float, seconds: int) -> None:
    assert delay_seconds(wait, age) == seconds


@pytest.mark.parametrize(("drain", "visibility"), [(3_600, 361), (DAY // 2, 361), (DAY, 361), (14 * DAY, 5_700)])
def test_message_that_is_throttled_all_the_drain_time_is_never_received_too_often(drain: int, visibility: int) -> None:
    most = most_receives(drain, visibility)
    age, received = 0, 0
    while age < drain:
        received += 1
        # every third answer is lost, and the message waits for the queue's own timeout
        age += visibility if received % 3 == 0 else delay_seconds(0, age)
    assert received < most <= 1_000


def test_most_receives_is_never_above_what_sqs_allows() -> None:
    assert most_receives(14 * DAY, 180) == 1_000
    assert most_receives(DAY // 2, 361) == 219


def test_entries_are_sent_in_tens_and_within_the_bytes_of_a_request() -> None:
    assert [len(each) for each in in_tens(range(21), [1] * 21, 100)] == [10, 10, 1]
    assert in_tens("abcd", [60, 50, 50, 200], 100) == [["a"], ["b", "c"], ["d"]]
    assert in_tens([], [], 100) == []


def test_message_keeps_the_digits_of_numbers_and_text_as_it_is() -> None:
    item = {
        "pk": "Zoë",
        "total": Decimal("12.50"),
        "power": Decimal("1E+30"),
        "parts": [1, None, True, {"a": ()}],
        "\ufffe": "\uffff\n",
    }
    body = body_of("put", item)
    assert body == (
        '{"put":{"pk":"Zoë","total":12.50,"power":1E+30,"parts":[1,null,true,{"a":[]}],"\\ufffe":"\\uffff\\n"}}'
    )
    read = read_action(_message(body), ("pk",), None)
    assert isinstance(read, BufferedAction)
    assert read.values == item | {"parts": [1, None, True, {"a": []}]}
    assert body_of("delete", {"pk": 1, "v": -2}) == '{"delete":{"pk":1,"v":-2}}'


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (0.5, "got 0.5, {}; write Decimal('0.5')"),
        ({1}, "got {{1}}, {}; write a list, or the item to the table itself"),
        (b"x", "got b'x', {}; write it as text, or the item to the table itself"),
        ({1: 2}, "got 1 as a name, allowed: text; put it in quotes"),
    ],
)
def test_value_that_plain_json_cannot_express_is_refused_where_it_is(value: object, why: str) -> None:
    allowed = "allowed: text, Decimal, whole numbers, True, False, None, lists and maps"
    with pytest.raises(ValueError, match=r".") as refused:
        body_of("put", {"pk": "a", "parts": [1, {"b": value}]})
    assert str(refused.value) == f"put: parts[1]: b: {why.format(allowed)}"


@pytest.mark.parametrize("values", [{}, "o-1"])
def test_message_is_of_a_map_of_attributes(values: object) -> None:
    with pytest.raises(ValueError, match=r".") as refused:
        body_of("delete", values)
    assert str(refused.value) == f"delete: got {values!r}, allowed: a map of attributes; give a dict with the key"


def test_item_that_is_nested_without_end_is_refused() -> None:
    endless: dict[str, object] = {}
    endless["again"] = endless
    with pytest.raises(ValueError, match=r"^put: the item is nested too deeply; allowed: 32 levels$"):
        body_of("put", endless)
