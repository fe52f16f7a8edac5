"""Reads CloudFormation templates: JSON, or YAML with short forms, and reports duplicate keys.

HighwaterError
└── TemplateError (also a ValueError): a template cannot be read; the message is one line with place, problem and fix
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import yaml

from highwater.core import HighwaterError
from highwater_lab.files import decode_text, read_file

# A template with as many resources as CloudFormation allows has about ten thousand values; a long text counts as some
_MOST_VALUES: Final = 1_000_000
_CHARACTERS_OF_VALUE: Final = 64
_OPEN: Final = -1
# A template has up to a megabyte (AWS CloudFormation User Guide, "Understand CloudFormation quotas", read 2026-11)
_MOST_YAML_CHARACTERS: Final = 2**21
# The section of the tables that a Terraform plan reads and does not make, as resources by address
DATA: Final = "Data"
# `terraform show -json` begins with it
_PLAN: Final = '"format_version"'
_HEAD_CHARACTERS: Final = 1_000
_ZIP: Final = b"PK\x03\x04"
_STAGE_FOLDER: Final = "assembly-"
# What the Serverless Framework deploys, in the folder that serverless package writes
DEPLOYED_BY_SERVERLESS: Final = "cloudformation-template-update-stack.json"
_BLANK: Final = re.compile(r"\s*")
# The wrapper of the GitHub action setup-terraform wrote the command before Terraform's output, and commands of the
# workflow behind it (github.com/hashicorp/setup-terraform, wrapper/terraform.js, read 2026-11; later versions do not)
_WRAPPER: Final = "[command]"
_WRAPPED: Final = re.compile(r"^(?:\[command\]|::).*$", re.MULTILINE)
_OBJECT: Final = re.compile(r'^[ \t]*(?=\{\s*")', re.MULTILINE)
_BROKEN: Final = re.compile(r'[{}\],]|\[\s*[\[{"\d-]')
_LONGEST_LINE: Final = 60


class TemplateError(HighwaterError, ValueError):
    """A template cannot be read, or does not contain what the caller needs."""


class NoTemplate(TemplateError):
    """A file can be read, and is something else than a template or a plan."""


@dataclass(frozen=True, slots=True)
class Environment:
    """The environment that a stack is deployed to, as far as the assembly says.

    Attributes:
        account: The account's number; `None` if the stack is not bound to one.
        region: The region's name; `None` if the stack is not bound to one.
        stacks: The name of the stack; for a nested stack that of the outermost one, then the logical ids of the nested
            stacks down to its own. The name is empty if it is not known.
    """

    account: str | None = None
    region: str | None = None
    stacks: tuple[str, ...] = ("",)

    @property
    def stack(self) -> str | None:
        """The stack's name; `None` if it is not known, as that of a nested stack, which CloudFormation chooses."""
        return self.stacks[0] or None if len(self.stacks) == 1 else None

    def nested(self, logical_id: str) -> Environment:
        """Return the environment of a stack that this one nests."""
        return replace(self, stacks=(*self.stacks, logical_id))


@dataclass(frozen=True, slots=True)
class Doubled:
    """A duplicate key of a mapping; CloudFormation uses the last one, or rejects the template.

    Attributes:
        path: The keys that lead to the mapping, from the top.
        key: The key itself.
        line: The line of its second occurrence, `None` if that is not known.
    """

    path: tuple[str, ...]
    key: str
    line: int | None


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a file; only JSON documents can follow one another.

    Attributes:
        where: The file, as messages name it, with the document's first line if there are several.
        body: The parsed document.
        doubled: Its duplicate keys.
    """

    where: str
    body: Any
    doubled: tuple[Doubled, ...] = ()


@dataclass(frozen=True, slots=True)
class Dialect:
    """The terms of messages about a template: CloudFormation's, or those of the format that it was made from.

    Attributes:
        words: By term of CloudFormation, such as `MinCapacity`, the other format's. A message asks for each by name.
        separator: What is before the last part of a table's name: `/` in a construct's path.
    """

    words: Mapping[str, str] = field(default_factory=dict)
    separator: str = "/"

    def word(self, term: str) -> str:
        """Return what the format calls a term of CloudFormation's."""
        return self.words.get(term, term)

    def is_end(self, end: str, name: str) -> bool:
        """Return whether *end* is the last parts of a table's name, with its last index or without."""
        whole = re.sub(r"\[[^\[]*\]$", "", name) if self.separator == "." else name
        return any(each.endswith(f"{self.separator}{end}") for each in (name, whole))


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A part of a template that its reader left out.

    Attributes:
        where: Its place.
        what: Why, behind the place in a sentence.
        content: What is declared there, as text.
    """

    where: str
    what: str
    content: str = ""


@dataclass(frozen=True, slots=True)
class Planned:
    """The change of one resource in a Terraform plan.

    Attributes:
        actions: In their order: `no-op`, `create`, `update`, `delete`, `forget`.
        previous: Its address before, if the plan moves it; `None` otherwise.
        paths: The attributes that make the plan replace it, such as `warm_throughput[0].write_units_per_second`; a
            tainted or forced replacement has none.
        kind: Its type, such as `aws_dynamodb_table_replica`.
        is_imported: Whether the plan imports an existing object at this address.
        before: Its attributes before the change; empty for a new one.
        is_deposed: Whether it is an object that an earlier apply replaced, and did not delete.
    """

    actions: tuple[str, ...]
    previous: str | None = None
    paths: tuple[str, ...] = ()
    kind: str = ""
    is_imported: bool = False
    before: Mapping[str, Any] = field(default_factory=dict)
    is_deposed: bool = False

    @property
    def is_replacement(self) -> bool:
        """Whether the plan creates another object at this address and deletes or forgets the present one."""
        return "create" in self.actions and len(self.actions) > 1


@dataclass(frozen=True, slots=True)
class Template:
    """One CloudFormation template.

    Attributes:
        where: The template's file, as messages name it.
        body: The parsed document.
        environment: The environment that its stack is deployed to.
        doubled: Duplicate keys.
        nested: By logical id the file of each nested stack's template, if the assembly contains it.
        paths: By logical id the path of the construct that made it, if the assembly has it.
        dialect: The words in which messages speak of it.
        notes: What its reader took for granted, a line each.
        left_out: What its reader left out.
        planned: By address the change of each resource in a Terraform plan; empty for others.
    """

    where: str
    body: dict[str, Any]
    environment: Environment = field(default_factory=Environment)
    doubled: tuple[Doubled, ...] = ()
    nested: Mapping[str, str] = field(default_factory=dict)
    paths: Mapping[str, str] = field(default_factory=dict)
    dialect: Dialect = field(default_factory=Dialect)
    notes: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    planned: Mapping[str, Planned] = field(default_factory=dict)
    # each resource is looked up many times
    _sections: dict[str, dict[str, Any]] = field(init=False, repr=False, compare=False, default_factory=dict)

    @property
    def is_plan(self) -> bool:
        """Whether it was made from a Terraform plan or state, whose resources have addresses for logical ids."""
        return bool(self.dialect.words)

    @property
    def stage(self) -> str:
        """The stage that its stack belongs to, as the assembly's folders name it; empty for none."""
        folder = Path(self.folder).name
        return folder.removeprefix(_STAGE_FOLDER) if folder.startswith(_STAGE_FOLDER) else ""

    @property
    def folder(self) -> str:
        """The folder that the file is in."""
        return str(Path(self.where).parent)

    @property
    def stem(self) -> str:
        """The file's name without its endings, by which references from other templates name this one."""
        return Path(self.where).name.split(".template")[0].split(".nested")[0]

    def section(self, name: str) -> dict[str, Any]:
        """Return a top-level section such as `Resources`; an empty mapping if the template has no such section."""
        if name not in self._sections:
            section = self.body.get(name)
            self._sections[name] = (
                {str(key): value for key, value in section.items()} if isinstance(section, dict) else {}
            )
        return self._sections[name]

    def resource(self, logical_id: str) -> dict[str, Any]:
        """Return a resource; an empty mapping if the template has none of that logical id."""
        resource = self.section("Resources").get(logical_id)
        return resource if isinstance(resource, dict) else {}

    def doubled_error(self, found: Doubled) -> TemplateError:
        """Return, without raising it, the error about a duplicate key that matters."""
        line = "" if found.line is None else f", line {found.line}"
        kind = "JSON" if found.line is None else "YAML"
        return TemplateError(
            f"{self.where}{line}: is not valid {kind}: the key {found.key!r} occurs twice in one mapping"
        )


def load_template(file: Path, *, may_be_empty: bool = False) -> Template:
    """Load one template; *may_be_empty* allows one without resources, which a stack of an assembly may be.

    Raises `TemplateError` if it cannot be read, is neither JSON nor YAML, or is not a template.
    """
    document = read_document(file)
    if may_be_empty and isinstance(document.body, dict) and "Resources" not in document.body:
        document = replace(document, body={**document.body, "Resources": {}})
    return template_of(document)


def template_of(document: Document) -> Template:
    """Return a document as a template; raises `NoTemplate` if it is none."""
    body = document.body
    if isinstance(body, list):
        raise NoTemplate(
            f"{document.where}: is a list of {len(body)}, and neither a CloudFormation template nor a Terraform plan "
            "or state as JSON; give each template in a file of its own"
        )
    if not isinstance(body, dict) or not isinstance(body.get("Resources"), dict):
        raise NoTemplate(
            f"{document.where}: is neither a CloudFormation template, as it has no Resources section, nor a Terraform "
            "plan or state as JSON; give a template, or what terraform show -json prints"
        )
    return Template(document.where, body, doubled=document.doubled)


def read_document(file: Path) -> Document:
    """Return the only document of a file; raises `TemplateError` if there are several, or as `read_documents` does."""
    documents = read_documents(file)
    if len(documents) > 1:
        raise TemplateError(f"{file}: has {len(documents)} JSON documents; give a file for each")
    return documents[0]


def read_documents(file: Path) -> list[Document]:
    """Return the content of a file of JSON, of JSON documents one after another, or of YAML.

    Raises `TemplateError` if it cannot be read, or is neither JSON nor YAML.
    """
    try:
        text = text_of(file, read_file(file))
    except OSError as error:
        raise TemplateError(f"{file}: cannot be read: {error.strerror}") from error
    return parse_documents(str(file), text, is_json=file.suffix == ".json")


def text_of(file: Path, content: bytes) -> str:
    """Return the text of a file's bytes; raises `TemplateError` if they are none."""
    if content.startswith(_ZIP):
        raise TemplateError(
            f"{file}: is a ZIP file, which Terraform writes plans in; give what terraform show -json {file} prints"
        )
    try:
        text = decode_text(content)
    except UnicodeDecodeError as error:
        raise TemplateError(f"{file}: cannot be read: it is neither UTF-8 nor UTF-16 text") from error
    # the lines stay, so that those of messages are right
    return _WRAPPED.sub("", text) if text.lstrip().startswith(_WRAPPER) else text


def parse_documents(where: str, text: str, *, is_json: bool) -> list[Document]:
    """Return the documents in a text; *is_json* allows no YAML. Raises `TemplateError`, which begins with *where*."""
    try:
        return _parse(where, text, is_json=is_json)
    except TemplateError:
        raise
    except json.JSONDecodeError as error:
        odd = _text_around(where, text)
        raise odd or TemplateError(f"{where}, line {error.lineno}: is not valid JSON: {error.msg}") from error
    except yaml.YAMLError as error:
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
        line = f", line {mark.line + 1}" if mark else ""
        raise TemplateError(f"{where}{line}: is not valid YAML: {problem or 'it cannot be parsed'}") from error
    except RecursionError as error:
        raise TemplateError(f"{where}: is nested too deeply to be a CloudFormation template") from error
    except (KeyError, TypeError, ValueError) as error:
        raise TemplateError(f"{where}: contains a value that cannot be read: {str(error).splitlines()[0]}") from error


def _parse(where: str, text: str, *, is_json: bool) -> list[Document]:
    # plans of Terraform may have any size; CloudFormation takes a megabyte
    if _PLAN not in text[:_HEAD_CHARACTERS] and sum(map(text.count, "[{,")) > _MOST_VALUES:
        raise TemplateError(f"{where}: has more than {_MOST_VALUES:,} values, which no template may have")
    if is_json or text.lstrip().startswith("{"):
        # tried whatever the file's name is: JSON may be indented by tabs, which YAML forbids
        try:
            return _parse_json(where, text)
        except json.JSONDecodeError as no_json:
            if is_json:
                raise
            try:
                return [_parse_yaml(where, text)]
            except yaml.YAMLError:
                raise no_json from None
    # a plan is too long to be tried as YAML
    if _PLAN in text and (odd := _text_around(where, text)) is not None:
        raise odd
    return [_parse_yaml(where, text)]


def _text_around(where: str, text: str) -> TemplateError | None:
    """Return the error about text before a JSON object, or behind a plan; `None` if there is none."""
    begin = _OBJECT.search(text)
    try:
        body, end = json.JSONDecoder().raw_decode(text, begin.end()) if begin else ({}, 0)
    except (ValueError, RecursionError):
        return None
    before = text[: begin.end()].strip() if begin else ""
    odd = before or (text[end:].strip() if "format_version" in body else "")
    # JSON that is broken is no such text
    if not odd or _BROKEN.match(odd):
        return None
    line = odd.splitlines()[0]
    shown = line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}..."
    is_wrapped = any(_WRAPPED.match(each) for each in odd.splitlines())
    fix = (
        "the wrapper of setup-terraform wrote it: set terraform_wrapper: false there"
        if is_wrapped
        else "write standard output alone to the file, without 2>&1"
    )
    return TemplateError(f"{where}: has text {'before' if before else 'behind'} its JSON, {shown!r}; {fix}")


def _parse_json(where: str, text: str) -> list[Document]:
    decoder = json.JSONDecoder(object_pairs_hook=_Pairs)
    found: list[tuple[int, Any]] = []
    at = _after_blanks(text, 0)
    while not found or at < len(text):
        try:
            body, end = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            if found and error.pos == at:
                raise json.JSONDecodeError("Extra data", text, at) from None
            raise
        found.append((at, body))
        at = _after_blanks(text, end)
    is_one = len(found) == 1
    return [
        Document(
            where if is_one else f"{where}, line {text.count(chr(10), 0, begin) + 1}",
            body,
            tuple(_doubled_pairs(body, ())),
        )
        for begin, body in found
    ]


def _after_blanks(text: str, at: int) -> int:
    blanks = _BLANK.match(text, at)
    return blanks.end() if blanks else at


class _Pairs(dict[str, Any]):
    """A JSON object that remembers its duplicate keys."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        keys = [key for key, _ in pairs]
        self.doubled = tuple(key for key in self if keys.count(key) > 1) if len(keys) > len(self) else ()


def _doubled_pairs(value: Any, path: tuple[str, ...]) -> Iterator[Doubled]:
    if isinstance(value, _Pairs):
        yield from (Doubled(path, key, None) for key in value.doubled)
        for key, item in value.items():
            yield from _doubled_pairs(item, (*path, key))
    elif isinstance(value, list):
        for item in value:
            yield from _doubled_pairs(item, path)


def _parse_yaml(where: str, text: str) -> Document:
    if len(text) > _MOST_YAML_CHARACTERS:
        most = f"{_MOST_YAML_CHARACTERS:,} characters of YAML"
        raise TemplateError(f"{where}: has more than {most}, which no template may have")
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return Document(where, None)
        _check_size(node, where)
        doubled = tuple(_doubled_nodes(node, (), set()))
        return Document(where, loader.construct_document(node), doubled)
    finally:
        loader.dispose()


def _check_size(root: yaml.Node, where: str) -> None:
    """Raise `TemplateError` for YAML that is too large once its aliases are expanded, or whose aliases form a circle.

    It is counted before anything is expanded, each node once. Keys that are merged (`<<`) count like any other value.
    """
    sizes: dict[int, int] = {}
    # a node is met a second time, with its size still open, when all within it have been counted
    waiting = [root]
    while waiting:
        node = waiting[-1]
        inner = _inner_nodes(node)
        size = sizes.get(id(node))
        if size is None and inner:
            sizes[id(node)] = _OPEN
            unknown = [each for each in inner if id(each) not in sizes]
            if any(sizes.get(id(each)) == _OPEN for each in inner):
                raise TemplateError(f"{where}: an alias of its YAML leads to a part that it is in itself")
            waiting += unknown
            continue
        waiting.pop()
        if size is None or size == _OPEN:
            own = 1 + (len(node.value) // _CHARACTERS_OF_VALUE if isinstance(node, yaml.ScalarNode) else 0)
            sizes[id(node)] = own + sum(max(sizes[id(each)], 0) for each in inner)
            if sizes[id(node)] > _MOST_VALUES:
                raise TemplateError(f"{where}: is too large once its YAML aliases are expanded")


def _inner_nodes(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [each for pair in node.value for each in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _doubled_nodes(node: yaml.Node, path: tuple[str, ...], seen: set[int]) -> Iterator[Doubled]:
    # an alias leads to a node that was visited before
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        keys = set()
        for key, value in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else ""
            if name in keys and name not in ("", "<<"):
                yield Doubled(path, name, key.start_mark.line + 1)
            keys.add(name)
            yield from _doubled_nodes(value, (*path, name), seen)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            yield from _doubled_nodes(value, path, seen)


class _Loader(yaml.SafeLoader):
    """Loads YAML with CloudFormation's short forms (`!Ref x`, `!GetAtt a.b`, `!Sub ...`)."""


def _short_form(loader: yaml.Loader, tag: str, node: yaml.Node) -> dict[str, Any]:
    value: Any
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        value = loader.construct_mapping(node, deep=True) if isinstance(node, yaml.MappingNode) else None
    if tag == "GetAtt" and isinstance(value, str):
        value = value.split(".", 1)
    return {tag if tag in ("Ref", "Condition") else f"Fn::{tag}": value}


_Loader.add_multi_constructor("!", _short_form)
# CloudFormation reads dates as text, and also the single `=` of old YAML
_NOT_TEXT = ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:value")
_Loader.yaml_implicit_resolvers = {
    letter: [(tag, pattern) for tag, pattern in resolvers if tag not in _NOT_TEXT]
    for letter, resolvers in _Loader.yaml_implicit_resolvers.items()
}
