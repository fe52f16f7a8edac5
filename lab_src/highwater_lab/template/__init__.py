"""Reads the capacity, targets, scaling policies and schedules of each table from CloudFormation templates."""

from highwater_lab.template.document import TemplateError, load_templates
from highwater_lab.template.selection import ListedTable, find_table, list_tables

__all__ = ["ListedTable", "TemplateError", "find_table", "list_tables", "load_templates"]
