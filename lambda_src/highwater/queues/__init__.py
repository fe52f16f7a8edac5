"""Queues that buffer writes: `BufferedProducer` sends them, and a function writes them within a budget."""

from __future__ import annotations

from typing import TYPE_CHECKING

from highwater.exports import exported

if TYPE_CHECKING:
    from highwater.queues.producer import BufferedProducer, BufferedWriteError, BufferFullError

__all__ = [
    "BufferFullError",
    "BufferedProducer",
    "BufferedWriteError",
]

__getattr__, __dir__ = exported(
    __name__,
    {
        "BufferFullError": "highwater.queues.producer",
        "BufferedProducer": "highwater.queues.producer",
        "BufferedWriteError": "highwater.queues.producer",
    },
)
