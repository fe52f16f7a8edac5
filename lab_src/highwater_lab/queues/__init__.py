"""Simulated queues in front of a table's writes."""
