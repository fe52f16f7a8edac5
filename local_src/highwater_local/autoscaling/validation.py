"""Requests that Application Auto Scaling rejects: malformed members, and metrics that DynamoDB does not support."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, Final

from botocore.model import ListShape, MapShape, Shape, StringShape, StructureShape
from botocore.validate import ParamValidator

from highwater_local.autoscaling.records import ServiceError, TargetKey, invalid
from highwater_local.requests import errors_text, model_of, unmet_text

_PREDEFINED: Final = "PredefinedMetricSpecification"
_CUSTOMIZED: Final = "CustomizedMetricSpecification"
_ONE_POLICY: Final = "Only one TargetTrackingScaling policy for a given metric specification is allowed."


def refuse_wrong_metric(key: TargetKey, name: str, settings: dict[str, Any], known: Iterable[str]) -> None:
    """Raise `ServiceError` if the policy *name* cannot use its metric, given the *known* policies of the target.

    Texts other than that of a wrong number of metrics were recorded (radkawar/stackd 9dc356f,
    dynamodb/replica_autoscaling_edges).
    """
    predefined, customized = settings.get(_PREDEFINED), settings.get(_CUSTOMIZED)
    if bool(predefined) is bool(customized):
        got = "both" if predefined else "none"
        message = f"Exactly one of {_PREDEFINED} and {_CUSTOMIZED} is required, got {got}"
        raise invalid(message)
    if not predefined:
        raise invalid(f"Scalable dimension {key.scalable_dimension} does not support {_CUSTOMIZED}.")
    wanted = f"DynamoDB{key.dimension.title()}CapacityUtilization"
    if predefined.get("PredefinedMetricType") != wanted:
        only = f"only supports the following predefined metric types: {wanted}"
        raise invalid(f"Scalable dimension {key.scalable_dimension} {only}")
    if set(known) - {name}:
        raise invalid(_ONE_POLICY)


_SERVICE: Final = "application-autoscaling"
# Java's notation for characters beyond the first plane, and its class of printable characters
_JAVA: Final = {r"\uD800\uDC00-\uDBFF\uDFFF": "\U00010000-\U0010ffff", r"\p{Print}": r"[\x20-\x7e]"}


def refuse_wrong_members(operation: str, request: dict[str, Any]) -> None:
    """Raise `ServiceError` for all members of *request* that the operation's model does not allow."""
    shape = _input(operation)
    report = ParamValidator().validate(request, shape).generate_report()
    wrong_type = next((line for line in report.splitlines() if line.startswith("Invalid type")), None)
    if wrong_type is not None:
        raise ServiceError("SerializationException", wrong_type)
    _refuse(list(_wrong(shape, request, "")))


def refuse_wrong_member(operation: str, name: str, value: Any) -> None:
    """Raise `ServiceError` if the model does not allow that *value* for the operation's member of that *name*."""
    _refuse(list(_wrong(_input(operation).members[name], value, _cased(name))))


def _input(operation: str) -> StructureShape:
    model = model_of(_SERVICE)
    shape = model and model.operation_model(operation).input_shape
    assert isinstance(shape, StructureShape)  # noqa: S101 - each operation has one
    return shape


def _refuse(wrong: list[str]) -> None:
    if wrong:
        raise invalid(errors_text(wrong))


def _wrong(shape: Shape, value: Any, place: str) -> Iterator[str]:
    """Yield the errors of a value of the right type, and of all values in it."""
    for unmet in _unmet(shape, value):
        yield unmet_text(_shown(value), place, unmet)
    if isinstance(shape, StructureShape):
        for name, member in shape.members.items():
            inner = f"{place}.{_cased(name)}" if place else _cased(name)
            if value.get(name) is not None:
                yield from _wrong(member, value[name], inner)
            elif name in shape.required_members:
                yield unmet_text(None, inner, "not be null")
    elif isinstance(shape, ListShape) and isinstance(shape.member, StructureShape):
        for number, element in enumerate(value, 1):
            yield from _wrong(shape.member, element, f"{place}.{number}.member")
    elif isinstance(shape, (ListShape, MapShape)):
        element_shapes = [shape.member] if isinstance(shape, ListShape) else [shape.key, shape.value]
        columns = [value] if isinstance(shape, ListShape) else [value.keys(), value.values()]
        for element_shape, elements in zip(element_shapes, columns, strict=True):
            if any(True for element in elements for _ in _unmet(element_shape, element)):
                # AWS does not say which element violates which of its constraints
                every = ", ".join(f"Member must {constraint}" for constraint, _ in _constraints(element_shape))
                yield unmet_text(_shown(value), place, f"satisfy constraint: [{every}]")


def _unmet(shape: Shape, value: Any) -> Iterator[str]:
    """Yield the constraints of the shape itself that a value does not satisfy."""
    return (constraint for constraint, is_met in _constraints(shape) if not is_met(value))


def _constraints(shape: Shape) -> Iterator[tuple[str, Callable[[Any], bool]]]:
    """Yield the constraints of a shape, in the words and the order of AWS's services, with their checks of a value."""
    limits = shape.metadata
    kind = "value" if shape.type_name in ("integer", "long", "float", "double") else "length"
    if "max" in limits:
        yield f"have {kind} less than or equal to {limits['max']}", lambda value: _size(value) <= limits["max"]
    if "min" in limits:
        yield f"have {kind} greater than or equal to {limits['min']}", lambda value: _size(value) >= limits["min"]
    if "pattern" in limits:
        text = f"satisfy regular expression pattern: {limits['pattern']}"
        yield text, lambda value: _pattern(limits["pattern"]).fullmatch(value) is not None
    if isinstance(shape, StringShape) and shape.enum:
        yield f"satisfy enum value set: [{', '.join(sorted(shape.enum))}]", lambda value: value in shape.enum


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}={_shown(member)}" for name, member in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_shown, value)) + "]"
    return str(value)


def _size(value: Any) -> float:
    """Return a number itself, and the length of anything else."""
    if isinstance(value, (int, float)):
        return value
    return len(value) if isinstance(value, (str, list, dict)) else 0


def _cased(name: str) -> str:
    return name[0].lower() + name[1:]


@cache
def _pattern(java: str) -> re.Pattern[str]:
    for written, meant in _JAVA.items():
        java = java.replace(written, meant)
    return re.compile(java)
