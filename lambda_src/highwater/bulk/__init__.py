"""Reads and writes of many items within a budget of capacity units; nothing else of the runtime imports it."""
