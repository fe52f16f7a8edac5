"""The lab's commands of `highwater`, found by entry points."""
