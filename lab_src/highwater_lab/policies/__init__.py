"""Scaling policies: each decides a table's capacity, in its own module, through the interface in `policy`."""
