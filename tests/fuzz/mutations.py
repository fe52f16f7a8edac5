"""Random changes of text, bytes and documents that people and programs hand over."""

from __future__ import annotations

import copy
import json
from random import Random
from typing import Any

# what breaks readers: the ends of ranges, what YAML, JSON, CSV, CloudFormation, rich and terminals give a meaning to
TOKENS = (
    *("", "\0", "\ufeff", "\ud800", "\x1b[2J", "\u202e", "é", "\\", '"', "'", ",", ";", ":", "\t", "\r", "\n"),
    *("null", "true", "-1", "0", "1e309", "NaN", "9" * 40, "0x10", "1_000", "2026-11-02", "[" * 60, "{" * 60),
    *("!Ref X", "!Sub '${X}'", "&a [*a]", "<<: *a", "${", "${AWS::Region}", "${Orders", "[bold]", "</script>", "$x$"),
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1.5, 10**30, float("inf"), "", "x", "\ud800", "\x1b[31m", "${AWS::NoValue}"),
    *([], {}, [[]], [None], {"Ref": "AWS::NoValue"}, {"Ref": "Nothing"}, {"Ref": []}),
    *({"Fn::GetAtt": []}, {"Fn::Sub": {}}, {"Fn::Sub": ["${X}", None]}, {"Fn::Join": [1, 2]}),
    *({"Fn::Select": [9, []]}, {"Fn::Split": ["", "x"]}, {"Fn::If": ["X", 1, 2]}, {"Fn::ImportValue": {"Ref": "X"}}),
    {"Fn::FindInMap": ["A", "B", "C", {"DefaultValue": {}}]},
    {"Fn::ForEach::L": ["X", ["a", "b"], {"${X}": 1}]},
    {"Fn::Length": {"Ref": "X"}},
)


def changed_text(text: str, random: Random) -> str:
    """Return *text* with one to six spans taken out, doubled, moved or replaced."""
    for _ in range(random.randint(1, 6)):
        first = random.randrange(len(text) + 1)
        last = min(len(text), first + random.randint(0, 30))
        span = text[first:last]
        kind = random.randrange(4)
        new = ("", span + span, random.choice(TOKENS), span[::-1])[kind]
        text = text[:first] + new + text[last:]
    return text


def changed_document(document: Any, random: Random) -> Any:
    """Return *document* with one to four of its values replaced, removed or moved."""
    document = copy.deepcopy(document)
    for _ in range(random.randint(1, 4)):
        places = list(_places(document))
        if not places:
            return random.choice(VALUES)
        holder, key = random.choice(places)
        kind = random.randrange(5)
        if kind == 0:
            del holder[key]
        elif kind == 1:
            other, other_key = random.choice(places)
            holder[key] = copy.deepcopy(other[other_key])
        elif kind == 2 and isinstance(holder, dict):
            holder[random.choice(TOKENS) or "X"] = holder.pop(key)
        else:
            holder[key] = copy.deepcopy(random.choice(VALUES))
    return document


def changed_json(document: Any, random: Random) -> bytes:
    """Return *document* as JSON of which values were changed, or sometimes the text alone."""
    if random.random() < 0.8:
        return as_bytes(as_json(changed_document(document, random)))
    return as_bytes(changed_text(json.dumps(document), random))


def as_json(document: Any) -> str:
    """Return *document* as the JSON that a careless program writes: with NaN, and with halves of characters."""
    return json.dumps(document, ensure_ascii=False, allow_nan=True)


def as_bytes(text: str) -> bytes:
    """Return *text* as bytes; halves of characters stay halves."""
    return text.encode("utf-8", "surrogatepass")


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Return every place in a document: what holds a value, and its key or number."""
    keys: list[Any] = []
    if isinstance(value, dict):
        keys = list(value)
    elif isinstance(value, list):
        keys = list(range(len(value)))
    found = []
    for key in keys:
        found.append((value, key))
        found.extend(_places(value[key]))
    return found
