"""The emulated DynamoDB: the cost of requests, their throttling, and the control plane of capacity."""
