"""Audits: what the tables of accounts waste and throttle, and the change that ends it, with its price."""

from highwater_lab.audit.account import LiveTable, RegionClients, list_tables, read_data, read_idle, read_tables
from highwater_lab.audit.folder import AuditError, AuditFolder
from highwater_lab.audit.judgement import AuditFinding, Judgement, Kind, Question, judge

__all__ = [
    "AuditError",
    "AuditFinding",
    "AuditFolder",
    "Judgement",
    "Kind",
    "LiveTable",
    "Question",
    "RegionClients",
    "judge",
    "list_tables",
    "read_data",
    "read_idle",
    "read_tables",
]
