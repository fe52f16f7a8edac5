"""The services around a table: UpdateTable, auto scaling, schedules, how late each is, and what it all costs."""
