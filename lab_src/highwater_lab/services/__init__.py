"""The services around a table: UpdateTable, target tracking, schedules, how late each is, and what it all costs."""
