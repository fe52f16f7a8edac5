"""Ways to size a table, each in its own small file behind the interface in `policy`."""
