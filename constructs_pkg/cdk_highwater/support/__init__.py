"""What every construct uses: assets, checks of arguments, permissions, remarks for cdk-nag, quotas of a stack."""
