"""Makes what `terraform show -json` prints, of the resources that scale DynamoDB."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

Document = dict[str, Any]
INDEX = {
    "name": "by_state",
    "hash_key": "state",
    "projection_type": "ALL",
    "read_capacity": 21,
    "write_capacity": 22,
    "warm_throughput": [{"read_units_per_second": 14_000, "write_units_per_second": 4_100}],
}


def resource(address: str, **values: Any) -> Document:
    """An instance of a resource, with the members that Terraform derives from its address."""
    own = re.sub(r"^(module\.[\w-]+(\[[^\]]*\])?\.)*", "", address)
    kind, _, rest = own.partition(".")
    name, _, key = rest.partition("[")
    made: Document = {"address": address, "mode": "managed", "type": kind, "name": name, "values": values}
    if key:
        made["index"] = key[1:-2] if key.startswith('"') else int(key[:-1])
    return made


def table(address: str = "aws_dynamodb_table.orders", **values: Any) -> Document:
    """A provisioned table named `orders` with 5 read and 6 write units."""
    given = {"name": "orders", "billing_mode": "PROVISIONED", "read_capacity": 5, "write_capacity": 6}
    return resource(address, **(given | values))


def target(address: str = "aws_appautoscaling_target.write", **values: Any) -> Document:
    """The target of the writes of `orders`, from 7 to 70 units."""
    given = {
        "resource_id": "table/orders",
        "scalable_dimension": "dynamodb:table:WriteCapacityUnits",
        "service_namespace": "dynamodb",
        "min_capacity": 7,
        "max_capacity": 70,
    }
    return resource(address, **_changed(given, values))


def policy(
    address: str = "aws_appautoscaling_policy.write", *, tracking: Document | None = None, **values: Any
) -> Document:
    """Target tracking of the writes of `orders` at 65 %."""
    configuration = {
        "target_value": 65,
        "scale_in_cooldown": 61,
        "scale_out_cooldown": 62,
        "disable_scale_in": False,
        "customized_metric_specification": [],
        "predefined_metric_specification": [
            {"predefined_metric_type": "DynamoDBWriteCapacityUtilization", "resource_label": None}
        ],
    }
    given = {
        "name": "track",
        "policy_type": "TargetTrackingScaling",
        "resource_id": "table/orders",
        "scalable_dimension": "dynamodb:table:WriteCapacityUnits",
        "service_namespace": "dynamodb",
        "step_scaling_policy_configuration": [],
        "target_tracking_scaling_policy_configuration": [configuration | (tracking or {})],
    }
    return resource(address, **_changed(given, values))


def action(address: str = "aws_appautoscaling_scheduled_action.load", **values: Any) -> Document:
    """A scheduled action that raises the floor of the writes of `orders` to 40 at five in New York."""
    given = {
        "name": "load",
        "resource_id": "table/orders",
        "scalable_dimension": "dynamodb:table:WriteCapacityUnits",
        "service_namespace": "dynamodb",
        "schedule": "cron(0 5 * * ? *)",
        "timezone": "America/New_York",
        "start_time": None,
        "end_time": None,
        "scalable_target_action": [{"min_capacity": "40", "max_capacity": ""}],
    }
    return resource(address, **_changed(given, values))


def root_of(*resources: Document) -> Document:
    """The values of a root module: each resource in the module that its address names."""
    root: Document = {"resources": []}
    for each in resources:
        module, path = root, ""
        for step in re.finditer(r"module\.[\w-]+(\[[^\]]*\])?", each["address"].rpartition(each["type"])[0]):
            path = f"{path}.{step[0]}" if path else step[0]
            children = module.setdefault("child_modules", [])
            found = next((child for child in children if child["address"] == path), None)
            if found is None:
                found = {"address": path, "resources": []}
                children.append(found)
            module = found
        module["resources"].append(each)
    return {"root_module": root}


def plan(
    *resources: Document,
    root: Document | None = None,
    prior: tuple[Document, ...] | None = None,
    region: str | None = None,
    **members: Any,
) -> Document:
    """A plan of these resources; an attribute that is `UNKNOWN` is known only after apply.

    *root* is the configuration's root module, *prior* the resources of the state before, *region* that of the provider.
    """
    changes = []
    for each in resources:
        unknown = {key: True for key, value in each["values"].items() if value is UNKNOWN}
        each["values"] = {key: value for key, value in each["values"].items() if value is not UNKNOWN}
        changes.append({"address": each["address"], "change": {"actions": ["create"], "after_unknown": unknown}})
    provider = {"expressions": {"region": {"constant_value": region}}} if region else {}
    document: Document = {
        "format_version": "1.2",
        "terraform_version": "1.11.4",
        "planned_values": root_of(*resources),
        "resource_changes": changes,
        "configuration": {"provider_config": {"aws": {"name": "aws"} | provider}, "root_module": root or {}},
    }
    if prior is not None:
        document["prior_state"] = {"format_version": "1.0", "values": root_of(*prior)}
    return document | members


def state(*resources: Document) -> Document:
    """A state of these resources."""
    return {"format_version": "1.0", "terraform_version": "1.11.4", "values": root_of(*resources)}


def configured(kind: str, name: str, **references: list[str]) -> Document:
    """A resource of a configuration, with what each of its attributes refers to."""
    expressions = {attribute: {"references": listed} for attribute, listed in references.items()}
    return {
        "address": f"{kind}.{name}",
        "mode": "managed",
        "type": kind,
        "name": name,
        "provider_config_key": "aws",
        "expressions": expressions,
    }


UNKNOWN: Any = object()


def _changed(given: Document, values: Document) -> Document:
    return {key: value for key, value in (given | values).items() if value is not None or key not in values}


def saved(folder: Path, document: dict[str, Any], name: str = "plan.json") -> Path:
    """Write a plan, as `terraform show -json` prints it, to a file."""
    file = folder / name
    file.write_text(json.dumps(document))
    return file
