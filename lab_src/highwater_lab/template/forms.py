"""Reads a file in the form in which a tool wrote it: a template, what AWS answered, plans of Terraform.

A form that lacks what is deployed is refused in one line that names the tool and the command that writes another form.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from highwater_lab.files import read_file
from highwater_lab.template.document import (
    DEPLOYED_BY_SERVERLESS,
    Document,
    NoTemplate,
    Template,
    TemplateError,
    parse_documents,
    read_documents,
    template_of,
    text_of,
)
from highwater_lab.template.intrinsics import OF_SERVERLESS
from highwater_lab.template.terraform import is_terraform, templates_of

# what the Serverless Framework writes beside the template that it deploys
_STATE_OF_SERVERLESS: Final = "serverless-state.json"
_ENDINGS: Final = (".json", ".yaml", ".yml", ".template")
# A file of a folder without any of these words is no template and no plan; YAML of a megabyte takes half a minute
_SIGNS: Final = ("Resources", "format_version", "lineage", "@level")
_BODY: Final = "TemplateBody"


def read_templates(file: Path, *, is_prior: bool = False) -> list[Template]:
    """Return the template in a file, or those of the Terraform plans and states in it.

    With *is_prior*, those of the states that the plans were made from. Raises `TemplateError` if the file cannot be
    read, or has another form.
    """
    return _templates_of(file, read_documents(file), is_prior=is_prior)


def find_templates(file: Path, *, is_prior: bool = False, is_strict: bool = False) -> list[Template]:
    """Return what `read_templates` returns, of a file that a folder has beside others; nothing if it is something else.

    Raises `TemplateError` for a file that cannot be parsed, or that is refused, if it mentions DynamoDB or with
    *is_strict*, and `OSError` if its bytes cannot be read.
    """
    content = read_file(file)
    try:
        text = text_of(file, content)
    except TemplateError:
        return []
    if not any(sign in text for sign in _SIGNS):
        return []
    try:
        return _templates_of(file, parse_documents(str(file), text, is_json=file.suffix == ".json"), is_prior=is_prior)
    except NoTemplate:
        return []
    except TemplateError:
        if is_strict or "dynamodb" in text.lower():
            raise
        return []


def _templates_of(file: Path, documents: list[Document], *, is_prior: bool) -> list[Template]:
    bodies = [_unwrapped(document) for document in documents]
    _refuse(file, bodies[0].body)
    if all(is_terraform(each.body) for each in bodies):
        return [made for each in bodies for made in templates_of(each.where, each.body, is_prior=is_prior)]
    if len(bodies) > 1:
        raise TemplateError(
            f"{file}: has {len(bodies)} JSON documents, and only Terraform plans are read from one file; give each "
            "template in a file of its own"
        )
    return [template_of(bodies[0])]


def _refuse(file: Path, body: Any) -> None:
    """Raise `TemplateError` for a document that a tool writes, and that lacks what is deployed."""
    if not isinstance(body, dict) or "Resources" in body:
        return
    if {"@level", "@message"} <= body.keys():
        raise TemplateError(
            f"{file}: is the log that terraform plan -json prints, which has no capacity; run terraform plan -out "
            "PLANFILE, and give what terraform show -json PLANFILE prints"
        )
    if file.name == _STATE_OF_SERVERLESS:
        raise TemplateError(
            f"{file}: is the state of the Serverless Framework, and no template; give the folder {file.parent}, or "
            f"{file.parent / DEPLOYED_BY_SERVERLESS}"
        )
    if {"service", "provider"} <= body.keys():
        raise TemplateError(
            f"{file}: is of the Serverless Framework, which makes another template of it to deploy; run serverless "
            f"package, and give {file.parent / '.serverless' / DEPLOYED_BY_SERVERLESS}"
        )
    if not is_terraform(body) and OF_SERVERLESS.search(str(body)):
        raise TemplateError(
            f"{file}: is a part of a configuration of the Serverless Framework; run serverless package, and give "
            f".serverless/{DEPLOYED_BY_SERVERLESS}"
        )


def _unwrapped(document: Document) -> Document:
    """Return the template in an answer of aws cloudformation get-template; other documents as they are."""
    body = document.body
    if isinstance(body, dict) and _BODY in body and "Resources" not in body:
        doubled = tuple(replace(each, path=each.path[1:]) for each in document.doubled if each.path[:1] == (_BODY,))
        document = replace(document, body=body[_BODY], doubled=doubled)
    if not isinstance(document.body, str):
        return document
    # the template as it was written, in JSON or YAML; with --query TemplateBody it is the whole answer
    parsed = parse_documents(f"{document.where}, {_BODY}", document.body, is_json=False)[0]
    return replace(parsed, where=document.where)


def entries_of(folder: Path) -> Iterator[Path]:
    """Yield the folders in a folder, and the files that end as templates and plans do, in order of their names.

    Of a folder that serverless package wrote, this is only the template that it deploys. Hidden folders, packages of
    Node and links to folders are left out.
    """
    deployed = folder / DEPLOYED_BY_SERVERLESS
    if deployed.is_file():
        yield deployed
        return
    for entry in sorted(folder.iterdir()):
        if entry.is_dir():
            is_left_out = entry.name.startswith(".") or entry.name == "node_modules" or entry.is_symlink()
        else:
            is_left_out = not entry.name.lower().endswith(_ENDINGS) or not entry.is_file()
        if not is_left_out:
            yield entry
