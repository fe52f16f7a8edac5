"""Reads the capacity, targets, scaling policies and schedules of each table from CloudFormation templates."""

from highwater_lab.template.document import TemplateError, load_templates
from highwater_lab.template.selection import find_table, find_tables

__all__ = ["TemplateError", "find_table", "find_tables", "load_templates"]
