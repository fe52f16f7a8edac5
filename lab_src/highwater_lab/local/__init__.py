"""The local cloud: an AWS endpoint on this machine for the real CDK CLI and real boto3 clients."""

from highwater_lab.local.cloud import CloudError, LocalCloud

__all__ = ["CloudError", "LocalCloud"]
