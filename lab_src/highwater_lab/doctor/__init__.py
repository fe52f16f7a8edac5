"""The doctor: whether an account, a region and an app in it are as Highwater needs them; nothing is changed."""

from highwater_lab.doctor.app import App
from highwater_lab.doctor.checks import CHECKS, run_checks
from highwater_lab.doctor.place import CheckedPlace
from highwater_lab.doctor.result import Result, State, unread

__all__ = ["CHECKS", "App", "CheckedPlace", "Result", "State", "run_checks", "unread"]
