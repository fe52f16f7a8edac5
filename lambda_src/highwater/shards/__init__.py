"""Hot partition keys: `count_keys` finds them, `ShardedKey` spreads one over several, `scatter_query` and `scatter_get`
read it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from highwater.exports import exported

if TYPE_CHECKING:
    from highwater.shards.counting import KeyCounts, count_keys
    from highwater.shards.key import ShardedKey, ShardError, Shards
    from highwater.shards.scatter import ScatterQuery, scatter_get, scatter_query

__all__ = [
    "KeyCounts",
    "ScatterQuery",
    "ShardError",
    "ShardedKey",
    "Shards",
    "count_keys",
    "scatter_get",
    "scatter_query",
]

__getattr__, __dir__ = exported(
    __name__,
    {
        "KeyCounts": "highwater.shards.counting",
        "ScatterQuery": "highwater.shards.scatter",
        "ShardError": "highwater.shards.key",
        "ShardedKey": "highwater.shards.key",
        "Shards": "highwater.shards.key",
        "count_keys": "highwater.shards.counting",
        "scatter_get": "highwater.shards.scatter",
        "scatter_query": "highwater.shards.scatter",
    },
)
