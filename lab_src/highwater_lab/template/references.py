"""The resources of a Terraform plan or state, and what an attribute that is known only after apply refers to.

Source: HashiCorp, "JSON Output Format", and OpenTofu's page of that name, read 2026-11. Plans have version 1.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from highwater_lab.template.document import TemplateError
from highwater_lab.template.intrinsics import short

_INDEX: Final = r'\[(?:"(?:[^"\\]|\\.)*"|\d+)\]'
_STEP: Final = re.compile(rf"module\.([\w-]+)({_INDEX})?")
_RESOURCE: Final = re.compile(rf"(\w+)\.([\w-]+)({_INDEX})?")
# Expressions refer to each other over few modules; the limits stop circles, which only a forged file has
_DEEPEST: Final = 30
_MOST_REFERENCES: Final = 200
_MOST_STEPS: Final = 2_000


@dataclass(frozen=True, slots=True)
class Resource:
    """An instance of a managed resource.

    Attributes:
        address: Its address, such as `module.shop.aws_dynamodb_table.orders["eu"]`.
        module: The address of its module's instance, empty for the root module.
        kind: Its type, such as `aws_dynamodb_table`.
        name: Its name in its module.
        index: Its key of `for_each` or number of `count`, `None` for neither.
        values: Its attributes; one that is known only after apply is a placeholder such as `${ADDRESS.read_capacity}`.
    """

    address: str
    module: str
    kind: str
    name: str
    index: str | int | None
    values: Mapping[str, Any]

    @property
    def steps(self) -> tuple[str | int | None, ...]:
        """The keys and numbers of the instances that it is in, and its own."""
        modules = [match[2] for match in _STEP.finditer(self.module)]
        return (*(_index_of(text) for text in modules), self.index)


@dataclass(slots=True)
class Found:
    """What references lead to.

    Attributes:
        resources: The resources, by address.
        is_by_module: Whether the way led over a local value, which a plan does not have, so that the only resource of
            that module is taken.
    """

    resources: dict[str, Resource] = field(default_factory=dict)
    is_by_module: bool = False
    locals_of: list[str] = field(default_factory=list)

    def best_for(self, resource: Resource) -> Resource | None:
        """Return the one that *resource* must mean: the only one, or the only one of its keys; `None` otherwise."""
        found = list(self.resources.values())
        if len(found) > 1:
            own = set(resource.steps) - {None}
            keys = [(each, set(each.steps) - {None}) for each in found]
            found = [each for each, of in keys if of and of <= own]
        return found[0] if len(found) == 1 else None


class Configuration:
    """The resources of a plan or state, and the expressions of its configuration.

    Attributes:
        resources: The managed resources.
        data: The data sources whose attributes are known.
    """

    def __init__(self, where: str, body: Mapping[str, Any], values: Any, what: str) -> None:
        """Read *values*, which are the member *what* of a plan or state; *body* has the configuration, if any.

        Raises `TemplateError`, with *where* as the file, if these are not of the form of a plan or state.
        """
        self._where = where
        self._body = body
        self._unknown = dict(self._unknown_of(body.get("resource_changes")))
        changes = self._list(body.get("resource_changes"), "resource_changes")
        actions = dict(self._actions_of(changes))
        # planned_values still have a forgotten resource, with its address alone
        self.resources = [each for each in self._read(values, what) if "forget" not in actions.get(each.address, ())]
        # those of a plan with -target, or of -refresh-only, lack resources that nothing is planned for
        planned = {each.address for each in self.resources}
        prior = as_object(as_object(body.get("prior_state")).get("values"))
        self.resources += [
            each
            for each in self._read(prior, "prior_state.values")
            if each.address not in planned and each.address not in actions
        ]
        # what was read of the account before the plan was made is in the state before it
        read = [*_data_of(as_object(values).get("root_module")), *_data_of(prior.get("root_module"))]
        self.data = list({each.address: each for each in read}.values())
        self._named: dict[tuple[str, str, str], list[Resource]] = {}
        for resource in self.resources:
            self._named.setdefault((resource.module, resource.kind, resource.name), []).append(resource)
        self._modules = list(dict.fromkeys(_prefixes(resource.module) for resource in self.resources))
        self._steps_left = 0

    def follow(self, resource: Resource, attribute: str, kinds: Sequence[str]) -> Found:
        """Return the resources of these kinds that an attribute refers to, over variables, outputs and `for_each`."""
        found = Found()
        self._steps_left = _MOST_STEPS
        expressions = as_object(self._config(resource).get("expressions"))
        references = _references(expressions.get(attribute))
        self._follow(found, resource.module, references, kinds, self._config(resource))
        for module in found.locals_of if not found.resources else ():
            own = [each for each in self.resources if each.kind in kinds and each.module == module]
            within = [each for each in self.resources if each.kind in kinds and each.module.startswith(f"{module}.")]
            found.resources.update({each.address: each for each in own or within})
            found.is_by_module = True
        return found

    def attributes(self, resource: Resource) -> list[str]:
        """Return the names of the attributes that the configuration gives a resource; none of a state."""
        return list(as_object(self._config(resource).get("expressions")))

    def region(self, resource: Resource) -> str | None:
        """Return the region of a resource: its own, that of its ARN, or its provider's; `None` if none says it."""
        own = resource.values.get("region")
        if isinstance(own, str) and own and "${" not in own:
            return own
        arn = str(resource.values.get("arn")).split(":")
        if len(arn) > 5 and arn[0] == "arn" and arn[3]:
            return arn[3]
        key = str(self._config(resource).get("provider_config_key"))
        provider = as_object(as_object(as_object(self._body.get("configuration")).get("provider_config")).get(key))
        expression = as_object(as_object(provider.get("expressions")).get("region"))
        value = expression.get("constant_value")
        for reference in _references(expression):
            if value is None and reference.startswith("var."):
                value = as_object(as_object(self._body.get("variables")).get(reference[4:])).get("value")
        return value if isinstance(value, str) and value else None

    def _follow(
        self,
        found: Found,
        module: str,
        references: list[str],
        kinds: Sequence[str],
        loop: dict[str, Any],
        depth: int = 0,
    ) -> None:
        """Follow references of *module*; *loop* is the resource or call of a module that `each` is of."""
        for reference in references if depth < _DEEPEST else ():
            self._steps_left -= 1
            if self._steps_left < 0:
                return
            head, _, rest = reference.partition(".")
            if head == "var":
                call = self._call(module)
                variable = _references(as_object(call.get("expressions")).get(re.split(r"[.\[]", rest)[0]))
                self._follow(found, _parent(module), variable, kinds, call, depth + 1)
            elif head == "local":
                found.locals_of.append(module)
            elif head == "each":
                self._follow(found, module, _references(loop.get("for_each_expression")), kinds, {}, depth + 1)
            elif head == "module" and (step := _STEP.match(reference)):
                output = re.split(r"[.\[]", reference[step.end() + 1 :])[0]
                for child in self._children(module, step[1], step[2]):
                    outputs = as_object(self._config_of_module(child).get("outputs"))
                    # a reference to the whole module may mean any of its outputs
                    for each in [outputs.get(output)] if output else outputs.values():
                        leading = _references(as_object(each).get("expression"))
                        self._follow(found, child, leading, kinds, {}, depth + 1)
            elif (match := _RESOURCE.match(reference)) and match[1] in kinds:
                for instance in self._named.get((module, match[1], match[2]), ()):
                    if match[3] is None or _index_of(match[3]) == instance.index:
                        found.resources[instance.address] = instance

    def _children(self, module: str, name: str, index: str | None) -> Iterator[str]:
        start = f"{module}.module.{name}" if module else f"module.{name}"
        for child in dict.fromkeys(each for modules in self._modules for each in modules):
            step = _STEP.fullmatch(child[len(module) + 1 if module else 0 :]) if child.startswith(start) else None
            if step is not None and step[1] == name and index in (None, step[2]):
                yield child

    def _config(self, resource: Resource) -> dict[str, Any]:
        listed = self._config_of_module(resource.module).get("resources")
        for each in listed if isinstance(listed, list) else ():
            if isinstance(each, dict) and (each.get("type"), each.get("name")) == (resource.kind, resource.name):
                return each
        return {}

    def _config_of_module(self, module: str) -> dict[str, Any]:
        config = as_object(as_object(self._body.get("configuration")).get("root_module"))
        for step in _STEP.finditer(module):
            config = as_object(as_object(as_object(config.get("module_calls")).get(step[1])).get("module"))
        return config

    def _call(self, module: str) -> dict[str, Any]:
        steps = list(_STEP.finditer(module))
        if not steps:
            return {}
        calls = as_object(self._config_of_module(_parent(module)).get("module_calls"))
        return as_object(calls.get(steps[-1][1]))

    def _read(self, values: Any, what: str) -> Iterator[Resource]:
        root = as_object(self._object(values, what).get("root_module"))
        left: list[tuple[str, Any]] = [("", root)]
        while left:
            label, module = left.pop()
            content = self._object(module, f"module {label!r}" if label else "root_module")
            address = str(content.get("address") or "")
            for each in self._list(content.get("resources"), f"resources of {address or 'root_module'}"):
                resource = self._object(each, f"a resource of {address or 'root_module'}")
                if resource.get("mode", "managed") == "managed" and not resource.get("deposed_key"):
                    yield self._resource(resource, address)
            children = self._list(content.get("child_modules"), f"child_modules of {address or 'root_module'}")
            left += [(f"in {address or 'root_module'}", child) for child in reversed(children)]

    def _resource(self, resource: dict[str, Any], module: str) -> Resource:
        address, index = str(resource.get("address")), resource.get("index")
        values = self._object(resource.get("values"), f"{address} values")
        known = with_unknown(values, self._unknown.get(address, {}), address)
        is_index = isinstance(index, str | int) and not isinstance(index, bool)
        return Resource(
            address,
            module,
            str(resource.get("type")),
            str(resource.get("name")),
            index if is_index else None,
            {str(key): value for key, value in known.items()},
        )

    def _unknown_of(self, changes: Any) -> Iterator[tuple[str, dict[str, Any]]]:
        for change in self._list(changes, "resource_changes"):
            content = self._object(change, "a change in resource_changes")
            if not content.get("deposed"):
                yield str(content.get("address")), as_object(as_object(content.get("change")).get("after_unknown"))

    def _actions_of(self, changes: list[Any]) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield by address, also a former one, the actions of a plan; none for an address that has a resource after."""
        current = [change for change in map(as_object, changes) if not change.get("deposed")]
        yield from ((str(change["previous_address"]), ()) for change in current if change.get("previous_address"))
        for change in current:
            actions = as_object(change.get("change")).get("actions")
            texts = tuple(map(str, actions)) if isinstance(actions, list) else ()
            yield str(change.get("address")), () if "create" in texts else texts

    def _object(self, value: Any, what: str) -> dict[str, Any]:
        return {} if value is None else self._checked(value, dict, what, "an object")

    def _list(self, value: Any, what: str) -> list[Any]:
        return [] if value is None else self._checked(value, list, what, "a list")

    def _checked(self, value: Any, kind: type, what: str, expected: str) -> Any:
        if not isinstance(value, kind):
            raise TemplateError(
                f"{self._where}: {what} is {short(value)}; expected {expected}, as terraform show -json has"
            )
        return value


def _data_of(module: Any, depth: int = 0) -> Iterator[Resource]:
    """Yield the data sources of a module and of the modules in it."""
    content = as_object(module)
    listed, children = (content.get(each) for each in ("resources", "child_modules"))
    for each in map(as_object, listed if isinstance(listed, list) else ()):
        if each.get("mode") == "data" and isinstance(each.get("values"), dict):
            address, kind, name = (str(each.get(member)) for member in ("address", "type", "name"))
            yield Resource(address, str(content.get("address") or ""), kind, name, None, each["values"])
    for child in children if isinstance(children, list) and depth < _DEEPEST else ():
        yield from _data_of(child, depth + 1)


def as_object(value: Any) -> dict[str, Any]:
    """Return *value* if it is an object, an empty one otherwise."""
    return value if isinstance(value, dict) else {}


def with_unknown(value: Any, unknown: Any, label: str) -> Any:
    """Return *value* with a placeholder for each part that *unknown*, of the same shape, marks as known after apply."""
    if unknown is True:
        return f"${{{label}}}"
    if isinstance(value, dict) and isinstance(unknown, dict):
        marked = {key: with_unknown(value.get(key), mark, f"{label}.{key}") for key, mark in unknown.items() if mark}
        return {**value, **marked}
    if isinstance(value, list) and isinstance(unknown, list) and len(value) == len(unknown):
        return [with_unknown(each, mark, label) for each, mark in zip(value, unknown, strict=True)]
    return value


def _references(expression: Any) -> list[str]:
    """Return what an expression refers to, without the less exact forms that Terraform lists behind each reference."""
    listed = as_object(expression).get("references")
    texts = [each for each in listed if isinstance(each, str)][:_MOST_REFERENCES] if isinstance(listed, list) else []
    return [one for one in texts if not any(other.startswith((f"{one}.", f"{one}[")) for other in texts)]


def _index_of(text: str | None) -> str | int | None:
    """Return the key or number of `["eu"]` or `[0]`."""
    if not text:
        return None
    inner = text[1:-1]
    return re.sub(r"\\(.)", r"\1", inner[1:-1]) if inner.startswith('"') else int(inner[:9])


def _parent(module: str) -> str:
    steps = list(_STEP.finditer(module))
    return module[: max(0, steps[-1].start() - 1)] if steps else ""


def _prefixes(module: str) -> tuple[str, ...]:
    """Return the addresses of a module and of all modules that it is in."""
    return tuple(module[: match.end()] for match in _STEP.finditer(module))
