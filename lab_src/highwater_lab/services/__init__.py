"""The services around a table: UpdateTable, auto scaling and schedules, with their delays and prices."""
