"""Each role of ops/bootstrap.yaml may do what permissions.yaml says, and no more."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.processes import install_npm_packages
from tests.support.stack import read_stack

PROGRAM = Path(__file__).with_name("evaluate_policies.mjs")
EXPECTED_PERMISSIONS = yaml.safe_load(
    Path(__file__).with_name("permissions.yaml").read_text()
)
PARAMETERS = {
    "AWS::AccountId": "123456789012",
    "AWS::Partition": "aws",
    "AWS::Region": "eu-west-1",
    "AWS::StackName": "animal-store-production-bootstrap",
    "ArtifactBucket.Arn": "arn:aws:s3:::bucket",
    "ExecutionRole.Arn": "arn:aws:iam::123456789012:role/animal-store-bootstrap/execution",
}
RESOURCES = read_stack("ops/bootstrap.yaml", Stage="production", **PARAMETERS)[
    "Resources"
]


def statements(name: str) -> list[dict[str, Any]]:
    """Return the statements of a policy, or of all policies of a role."""
    properties = RESOURCES[name]["Properties"]
    policies = [properties, *properties.get("Policies", [])]
    for policy in properties.get("ManagedPolicyArns", []):
        policies += [RESOURCES[policy]["Properties"]]
    result = []
    for policy in policies:
        result += policy.get("PolicyDocument", {}).get("Statement", [])
    return result


def check(statements: list[dict[str, Any]], table: dict[str, Any]) -> None:
    """Evaluate each row of a table; AWS's reference data says which conditions an action has."""
    expected = []
    for verb in ("may", "may not"):
        for name, actions in table[verb].items():
            service, resource, context = EXPECTED_PERMISSIONS["resources"][name]
            for action in actions:
                request = {"action": f"{service}:{action}", "resource": resource}
                expected += [request | {"context": context, "allowed": verb == "may"}]
    policy = {"Version": "2012-10-17", "Statement": statements}
    request_text = json.dumps({"policy": policy, "requests": expected})
    # Node.js looks for packages beside the program.
    program = shutil.copy(PROGRAM, install_npm_packages("iam").parent)
    verdicts = subprocess.check_output(["node", program], input=request_text, text=True)
    for verdict, row in zip(json.loads(verdicts), expected, strict=True):
        assert verdict == row, f"tests/ops/permissions.yaml says {row}"


@pytest.mark.parametrize("role", EXPECTED_PERMISSIONS["roles"])
def test_each_action_is_allowed_or_denied_to_a_role_as_permissions_yaml_says(
    role: str,
) -> None:
    check(statements(role), EXPECTED_PERMISSIONS["roles"][role])


def test_bucket_policy_denies_overwriting_artifacts_and_unencrypted_reads() -> None:
    # The program does not evaluate bucket policies, so add the refusals to a role that may do all.
    refusals = statements("ArtifactBucketPolicy")
    for statement in refusals:
        del statement["Principal"]
    allow_everything = {"Effect": "Allow", "Action": "*", "Resource": "*"}
    check([allow_everything, *refusals], EXPECTED_PERMISSIONS["bucket"])
