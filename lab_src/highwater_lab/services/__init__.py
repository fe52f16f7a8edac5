"""The services around a table: target tracking, schedules, how late each is, and what it all costs."""
