"""Each role of ops/bootstrap.yaml may do what permissions.yaml says, and no more."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.iam import Request, evaluate
from tests.support.stack import decided

TABLES = yaml.safe_load(Path(__file__).with_name("permissions.yaml").read_text())
# What ops/bootstrap.yaml's names stand for.
NAMES = {
    "AWS::AccountId": "123456789012",
    "AWS::Partition": "aws",
    "AWS::Region": "eu-west-1",
    "AWS::StackName": "animal-store-production-bootstrap",
    "ArtifactBucket.Arn": "arn:aws:s3:::bucket",
    "ExecutionRole.Arn": "arn:aws:iam::123456789012:role/animal-store-bootstrap/execution",
}


def policy(name: str) -> Any:
    """Return all statements of a role, or of a policy, of production's ops/bootstrap.yaml."""
    stack = decided("ops/bootstrap.yaml", Stage="production", **NAMES)["Resources"]
    properties = stack[name]["Properties"]
    if name == "ArtifactBucketPolicy":
        # The program knows no policies of buckets: this one's refusals, for whoever may do all.
        allowed = {"Effect": "Allow", "Action": "*", "Resource": "*"}
        refusals = [
            {key: value for key, value in statement.items() if key != "Principal"}
            for statement in properties["PolicyDocument"]["Statement"]
        ]
        return {"Version": "2012-10-17", "Statement": [allowed, *refusals]}
    policies = [
        stack[each]["Properties"] for each in properties.get("ManagedPolicyArns", [])
    ]
    statements = []
    for each in properties.get("Policies", policies) or [properties]:
        statements += each["PolicyDocument"]["Statement"]
    return {"Version": "2012-10-17", "Statement": statements}


def requests(row: dict[str, Any]) -> list[Request]:
    """Return the requests of a row, each with whether it is allowed."""
    actions = row.get("may") or row["may not"]
    return [
        {
            "action": action,
            "allowed": "may" in row,
            "context": row.get("with", {}),
            "resource": TABLES["resources"][row["resource"]],
        }
        for action in actions
    ]


@pytest.mark.parametrize("role", TABLES["roles"])
def test_role_may_do_what_its_table_says(role: str) -> None:
    expected = []
    for row in TABLES["roles"][role]:
        expected += requests(row)

    assert evaluate(policy(role), expected) == expected
