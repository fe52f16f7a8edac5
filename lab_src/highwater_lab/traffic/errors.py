"""The error of the traffic.

HighwaterError
└── TrafficError (also a ValueError): traffic that cannot be read; one line says where, what, and what would do
"""

from __future__ import annotations

from highwater.core import HighwaterError


class TrafficError(HighwaterError, ValueError):
    """Traffic that cannot be read or used as asked."""
