"""The part of CloudWatch's metric math that alarms may have here: arithmetic, comparisons, `IF` and `FILL`."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

Query = Mapping[str, Any]
# by the number of a period
Series = Mapping[int, float]
_OPERATORS: Final[dict[type[ast.AST], Callable[[float, float], float]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
}


class MathError(Exception):
    """An expression that is not evaluated here."""


@dataclass(frozen=True, slots=True)
class MetricMath:
    """The queries of an alarm, one of which returns what the alarm compares.

    Attributes:
        queries: The metrics and expressions, as CloudWatch's `Metrics` has them.
        series: The values of each metric, by its id.
    """

    queries: tuple[Query, ...]
    series: Mapping[str, Series]

    def value_at(self, period: int) -> float | None:
        """Return the value of the query that returns data, `None` if it has none; raises `MathError`."""
        shown = [query["Id"] for query in self.queries if str(query.get("ReturnData", True)).lower() == "true"]
        if len(shown) != 1:
            raise MathError("not exactly one query returns data")
        return self._named(shown[0], period)

    def _named(self, name: str, period: int) -> float | None:
        if name in self.series:
            return self.series[name].get(period)
        for query in self.queries:
            if query["Id"] == name and query.get("Expression"):
                try:
                    return self._value(ast.parse(query["Expression"], mode="eval").body, period)
                except SyntaxError:
                    break
        raise MathError(f"{name} is no expression that is known here")

    def _value(self, node: ast.expr, period: int) -> float | None:
        match node:
            case ast.Constant(value=int() | float() as number):
                return float(number)
            case ast.Name(id=name):
                return self._named(name, period)
            case ast.Call(func=ast.Name(id="FILL"), args=[ast.Name(id=name), ast.expr() as other]):
                found, filled = self._named(name, period), self._value(other, period)
                # a metric without any datapoint has no value to be filled in
                return filled if found is None and self.series.get(name, True) else found
            case ast.Call(func=ast.Name(id="IF"), args=[condition, one, other]):
                chosen, values = self._value(condition, period), [self._value(each, period) for each in (one, other)]
                return None if chosen is None else values[not chosen]
            case (
                ast.BinOp(left=left, op=sign, right=right) | ast.Compare(left=left, ops=[sign], comparators=[right])
            ) if type(sign) in _OPERATORS:
                sides = self._value(left, period), self._value(right, period)
                if sides[0] is None or sides[1] is None or (isinstance(sign, ast.Div) and sides[1] == 0):
                    return None
                return float(_OPERATORS[type(sign)](sides[0], sides[1]))
        raise MathError(f"{ast.unparse(node)} is not evaluated here")
