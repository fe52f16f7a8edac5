"""The server of the local cloud: MiniStack with Application Auto Scaling, capacity control and a clock of its own."""
