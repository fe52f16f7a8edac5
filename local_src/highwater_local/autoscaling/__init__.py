"""Application Auto Scaling for DynamoDB, as it is documented and was measured, by the cloud's clock."""
