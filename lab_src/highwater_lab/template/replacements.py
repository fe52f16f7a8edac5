"""The properties for whose change CloudFormation replaces a table, a scalable target or a scaling policy.

Sources, read 2026-11-29: CloudFormation Template Reference, "Update requires" of each property; the registry's schemas
(`createOnlyProperties`, `conditionalCreateOnlyProperties`) as cfn-lint 1.58 packs them; the service specification in
the CDK's CLI 2.1148.1 (`causesReplacement`). A test compares this list with the last two.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

TABLE: Final = "AWS::DynamoDB::Table"
GLOBAL_TABLE: Final = "AWS::DynamoDB::GlobalTable"
SIMPLE_TABLE: Final = "AWS::Serverless::SimpleTable"

NAME: Final = "TableName"
KEYS: Final = "KeySchema"
LOCAL_INDEXES: Final = "LocalSecondaryIndexes"
TYPES: Final = "AttributeDefinitions"

_OF_TABLE: Final = {
    NAME: "its name",
    KEYS: "its key schema",
    "ImportSourceSpecification": "the source of its import",
    # Neither source names these two. DynamoDB has no request that changes local secondary indexes. "Replacement if you
    # edit an existing AttributeDefinition": the reference, AWS::DynamoDB::Table, AttributeDefinitions
    LOCAL_INDEXES: "its local secondary indexes",
    TYPES: "the type of an attribute",
}

# by resource type each property, in the words of a report
REPLACED_FOR: Final[Mapping[str, Mapping[str, str]]] = {
    TABLE: _OF_TABLE,
    GLOBAL_TABLE: {
        NAME: _OF_TABLE[NAME],
        KEYS: _OF_TABLE[KEYS],
        LOCAL_INDEXES: _OF_TABLE[LOCAL_INDEXES],
        "GlobalTableSourceArn": "the table that it is a replica of",
    },
    # AWS SAM Developer Guide, AWS::Serverless::SimpleTable: SAM makes an AWS::DynamoDB::Table of it
    SIMPLE_TABLE: _OF_TABLE | {"PrimaryKey": "its primary key"},
    "AWS::ApplicationAutoScaling::ScalableTarget": {
        "ResourceId": "its table",
        "ScalableDimension": "its dimension",
        "ServiceNamespace": "its service",
    },
    "AWS::ApplicationAutoScaling::ScalingPolicy": {
        "PolicyName": "its name",
        "ResourceId": "its table",
        "ScalableDimension": "its dimension",
        "ScalingTargetId": "its scalable target",
        "ServiceNamespace": "its service",
    },
}
