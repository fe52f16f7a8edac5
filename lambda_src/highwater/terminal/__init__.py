"""What the commands of all distributions share: streams, tables and text for a terminal, and durations."""
