"""Application Auto Scaling for DynamoDB, as FACTS measured and documented it, on the cloud's clock."""
