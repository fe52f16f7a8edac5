"""The error of the package `traffic`.

HighwaterError
└── TrafficError (also a ValueError): traffic cannot be read or used; the message is one line with place, problem, fix
"""

from __future__ import annotations

from highwater.core import HighwaterError


class TrafficError(HighwaterError, ValueError):
    """Traffic cannot be read, or cannot be scaled, moved or simulated as requested."""
