"""Roles of ops/bootstrap.yaml may do what permissions.yaml allows, and not what it forbids."""

import json
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.processes import install_npm_packages
from tools.local.template import read_stack

PROGRAM = Path(__file__).with_name("evaluate_policies.mjs")
EXPECTED_PERMISSIONS = yaml.safe_load(
    Path(__file__).with_name("permissions.yaml").read_text()
)
POLICIES = EXPECTED_PERMISSIONS["policies"]
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
    if name == "ArtifactBucketPolicy":
        # The program does not evaluate bucket policies, so add this policy's refusals to a role
        # that may do everything in S3.
        for statement in result:
            statement.pop("Principal", None)
        result.append({"Effect": "Allow", "Action": "s3:*", "Resource": "*"})
    return result


def as_list(value: str | list[str]) -> list[str]:
    """Return a policy's member as a list, even if it is one text."""
    return [value] if isinstance(value, str) else value


@pytest.mark.parametrize("name", POLICIES)
def test_policy_has_only_listed_services_and_listed_wildcards(name: str) -> None:
    wide: dict[str, set[str]] = {}
    for statement in statements(name):
        on_any_resource = "*" in as_list(statement["Resource"])
        for action in as_list(statement["Action"]):
            service, _, operation = action.partition(":")
            wide_actions = wide.setdefault(service, set())
            if "*" in operation or on_any_resource:
                wide_actions.add(operation)
    assert {
        service: sorted(operations) for service, operations in wide.items()
    } == POLICIES[name]["wide"]


def expected_requests(name: str) -> list[dict[str, Any]]:
    """Return a request for each action in a policy of permissions.yaml."""
    requests = []
    for verb in ("may", "may not"):
        for resource_name, actions in POLICIES[name][verb].items():
            service, resource, context = EXPECTED_PERMISSIONS["resources"][
                resource_name
            ]
            for action in actions:
                request = {
                    "action": f"{service}:{action}",
                    "resource": resource,
                    "context": context,
                    "allowed": verb == "may",
                }
                requests.append(request)
    return requests


@cache
def evaluated_policies() -> Any:
    """Evaluate all policies in one process, because Node.js takes long to start."""
    policies = {}
    for name in POLICIES:
        policy = {"Version": "2012-10-17", "Statement": statements(name)}
        policies[name] = {"policy": policy, "requests": expected_requests(name)}
    # Node.js looks for packages beside the program.
    program = shutil.copy(PROGRAM, install_npm_packages("iam").parent)
    output = subprocess.check_output(
        ["node", program], input=json.dumps(policies), text=True
    )
    return json.loads(output)


@pytest.mark.parametrize("name", POLICIES)
def test_policy_decides_as_permissions_yaml_says(name: str) -> None:
    requests = evaluated_policies()[name]["requests"]
    for request, expected in zip(requests, expected_requests(name), strict=True):
        assert request == expected, f"tests/ops/permissions.yaml says {expected}"
