"""Reads the capacity, targets, scaling policies and schedules of each table from templates and Terraform plans."""

from highwater_lab.template.assembly import is_plan, load_prior, load_templates
from highwater_lab.template.document import TemplateError
from highwater_lab.template.listed import ListedTable
from highwater_lab.template.parameters import read_parameters
from highwater_lab.template.selection import count_fixed, find_table, list_tables

__all__ = [
    "ListedTable",
    "TemplateError",
    "count_fixed",
    "find_table",
    "is_plan",
    "list_tables",
    "load_prior",
    "load_templates",
    "read_parameters",
]
