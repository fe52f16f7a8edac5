"""The server of the local cloud: MiniStack with Application Auto Scaling, capacity control and a separate clock."""
