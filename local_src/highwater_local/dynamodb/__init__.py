"""DynamoDB in this cloud: what requests cost, which of them are throttled, and the control plane of capacity."""
