"""What the local cloud refuses beyond the rest when it is strict: missing permissions, and calls that meet or race."""
