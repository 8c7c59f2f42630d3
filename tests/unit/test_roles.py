"""Compares the roles and heartbeats in template.yaml with the calls that the functions make."""

import json
from typing import Any

import pytest

from tests.contract import openapi
from tests.support import handlers
from tests.support.fault_injection import FaultyStore
from tests.support.handlers import EVENTS, SUCCESSES, TEMPLATE
from tests.support.stack import read_stage
from tools.local.template import read_stack
from tools.packaging.sdk_data import OPERATIONS

RESOURCES = read_stage()["Resources"]
ARNS = {table["TableName"]: f"{name}.Arn" for name, table in TEMPLATE.tables.items()}
Rights = dict[tuple[str, str], set[str]]
"""Maps an action and a resource to the allowed partitions and, for a write, attributes."""


def add_rights_for_call(
    rights: Rights, operation: str, parameters: dict[str, Any]
) -> None:
    """Add the rights that IAM requires for a call to DynamoDB."""
    if operation == "TransactWriteItems":
        for part in parameters["TransactItems"]:
            ((action, write),) = part.items()
            add_rights_for_call(rights, f"{action}Item", write)
        return
    table, index = parameters["TableName"], parameters.get("IndexName")
    arn = f"{ARNS[table]}/index/{index}" if index else ARNS[table]
    conditions = rights.setdefault((f"dynamodb:{operation}", arn), set())
    if index or table != handlers.ANIMALS:
        return
    key = parameters.get("Item") or parameters.get("Key")
    if not key:
        # The condition of a Query has one string, the partition key.
        values = parameters["ExpressionAttributeValues"].values()
        (key,) = [{"pk": value} for value in values if "S" in value]
    partition, separator, _ = key["pk"]["S"].partition("#")
    conditions.add(f"{partition}#*" if separator else partition)
    if operation not in {"GetItem", "Query"}:
        conditions.update(key, parameters.get("ExpressionAttributeNames", {}).values())


def granted_rights(function: str) -> Rights:
    """Return the rights that a function's role has in template.yaml."""
    name = RESOURCES[function]["Properties"]["Role"].removesuffix(".Arn")
    role = RESOURCES[name]["Properties"]
    (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "lambda.amazonaws.com"}
    (policy,) = role["Policies"]
    rights: Rights = {}
    for statement in policy["PolicyDocument"]["Statement"]:
        assert statement["Effect"] == "Allow"
        conditions: set[str] = set()
        for operator, keys in statement.get("Condition", {}).items():
            comparison = "StringLike" if "*" in str(keys) else "StringEquals"
            assert operator == f"ForAllValues:{comparison}"
            conditions.update(*keys.values())
        actions = statement["Action"]
        if isinstance(actions, str):
            actions = [actions]
        for action in actions:
            right = action, statement["Resource"]
            assert right not in rights, (
                f"two statements allow {right}: either's condition is enough"
            )
            rights[right] = conditions
    return rights


@pytest.mark.parametrize("function", TEMPLATE.functions)
def test_role_allows_exactly_the_calls_of_its_function(
    function: str, store: FaultyStore
) -> None:
    pet = {}
    for name, schema in openapi.SCHEMAS["NewPet"]["properties"].items():
        pet[name] = schema["examples"][0]
    for name in SUCCESSES:
        if handlers.function_of(EVENTS[name]) == function:
            body = json.dumps(pet) if name.startswith("create-201") else None
            handlers.send(name, body=body)
    assert store.calls, f"events/ has no event that {function} answers with 20x."

    log_group = f"{function.removesuffix('Function')}LogGroup.Arn"
    required: Rights = {
        ("logs:CreateLogStream", log_group): set(),
        ("logs:PutLogEvents", log_group): set(),
    }
    for call in store.calls:
        add_rights_for_call(required, *call)
    assert granted_rights(function) == required, (
        f"template.yaml: the role of {function} (left) must allow exactly the calls that the "
        "function makes (right). Name the partitions in dynamodb:LeadingKeys, and for a write the "
        "attributes in dynamodb:Attributes. (If the extra ones are right, models.py lacks them.)"
    )
    assert {name for name, _ in store.calls} <= set(OPERATIONS), (
        "The function makes a call to DynamoDB that the built layer does not support. Add it to "
        "OPERATIONS in tools/packaging/sdk_data.py."
    )


@pytest.mark.parametrize("function", TEMPLATE.functions)
def test_permissions_boundary_allows_every_action_of_the_role(function: str) -> None:
    stack = read_stack("ops/bootstrap.yaml", Stage="production")
    boundary = str(stack["Resources"]["Boundary"])

    for action, _ in granted_rights(function):
        assert f"'{action}'" in boundary, f"ops/bootstrap.yaml: allow {action}"


@openapi.each_operation
def test_heartbeat_looks_up_its_key_and_is_unauthorized(
    operation: openapi.Operation, store: FaultyStore
) -> None:
    function = f"{operation.block}Function"
    heartbeat = RESOURCES[function]["Properties"]["Events"]["Heartbeat"]["Properties"]

    response = handlers.invoke(function, json.loads(heartbeat["Input"]))

    assert heartbeat["Schedule"] == "rate(5 minutes)"
    (line,) = response.lines
    assert [call["TableName"] for _, call in store.calls] == [
        handlers.service().keys().name
    ]
    assert (line["Stage"], line["Operation"]) == ("heartbeat-production", operation.id)
    assert line["Code"] == "unauthorized"
