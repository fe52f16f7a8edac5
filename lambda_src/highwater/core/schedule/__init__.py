"""What a plan asks for at an instant, and the scheduled actions that it compiles to."""
