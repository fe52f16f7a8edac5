"""Reads the capacity, targets, scaling policies and schedules of each table from templates and Terraform plans."""

from highwater_lab.template.assembly import is_plan, load_prior, load_templates
from highwater_lab.template.document import TemplateError
from highwater_lab.template.guard import Consequence, Hazard, HazardKind, accept, hazards_of, two_deploys
from highwater_lab.template.listed import ListedTable, tables_called
from highwater_lab.template.matching import is_moved, match_tables
from highwater_lab.template.parameters import read_parameters
from highwater_lab.template.remarks import Remark, RemarkKind
from highwater_lab.template.selection import ListedApp, check_given, find_table, read_app, several_match

__all__ = [
    "Consequence",
    "Hazard",
    "HazardKind",
    "ListedApp",
    "ListedTable",
    "Remark",
    "RemarkKind",
    "TemplateError",
    "accept",
    "check_given",
    "find_table",
    "hazards_of",
    "is_moved",
    "is_plan",
    "load_prior",
    "load_templates",
    "match_tables",
    "read_app",
    "read_parameters",
    "several_match",
    "tables_called",
    "two_deploys",
]
