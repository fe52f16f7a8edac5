"""Sharded partition keys: where items are, and the order and the cursor of what is read from several shards."""
