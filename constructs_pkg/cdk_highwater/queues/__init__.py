"""Queues that buffer a table's writes, and the function that drains them."""
