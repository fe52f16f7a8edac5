"""Reads and writes of many items within a budget of capacity units; of the other folders, only `cli` imports it."""
