"""Templates: which table has which capacity, targets, policies and schedules, from what gets deployed."""

from highwater_lab.template.document import TemplateError, load_templates
from highwater_lab.template.tables import find_table, find_tables

__all__ = ["TemplateError", "find_table", "find_tables", "load_templates"]
