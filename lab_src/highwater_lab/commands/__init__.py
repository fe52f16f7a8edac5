"""The lab's commands of the `highwater` CLI, which finds them by their entry points."""
