"""Try with each function's role what the template grants it by name, and what it does not grant."""

from collections.abc import Iterator, Mapping
from typing import Any

from botocore.exceptions import ClientError

from tools.deployment.emulator import ACCOUNT, Emulator
from tools.deployment.service import DeploymentError
from tools.deployment.stage import client

_ANIMAL, _KEY = {"pk": {"S": "pet"}, "id": {"N": "0"}}, {"hash": {"S": "role-trial"}}

Grant = tuple[str, str]
Call = tuple[str, dict[str, Any]]


def try_all(aws: Emulator, template: Mapping[str, Any], resources: Mapping[str, str]) -> int:
    """Make every call with every role; return how many.

    What a statement grants beyond the actions and tables that it names, by a wildcard for instance, is found as a call
    that is allowed and should not be. What is missing is found by the contract suite too.
    """
    calls = dict(_calls(resources["AnimalsTable"], resources["ApiKeysTable"]))
    roles = [name for name in resources if f"{name.removesuffix('Role')}Function" in resources]
    problems = []
    for role in roles:
        arn = f"arn:aws:iam::{ACCOUNT}:role/{resources[role]}"
        granted = {grant for grant in _granted(template["Resources"][role]) if grant[0].startswith("dynamodb:")}
        aws.use(client("sts").assume_role(RoleArn=arn, RoleSessionName="rehearsal")["Credentials"])
        allowed = {grant for grant, call in calls.items() if _allowed(*call)}
        aws.use()
        problems += [f"{role} has {action} on {target}, which is not granted" for action, target in allowed - granted]
        problems += [f"{role} lacks {action} on {target}, or it is not tried" for action, target in granted - allowed]
    client("dynamodb").delete_item(TableName=resources["AnimalsTable"], Key=_ANIMAL)
    if problems:
        raise DeploymentError("\n".join(problems))
    return len(calls) * len(roles)


def _granted(role: Mapping[str, Any]) -> Iterator[Grant]:
    """Read the statements as they are written: action by action, with its one resource."""
    policies = role["Properties"]["Policies"]
    for statement in (statement for policy in policies for statement in policy["PolicyDocument"]["Statement"]):
        actions, target = statement["Action"], statement["Resource"]
        if isinstance(target, dict):
            target = target.get("Fn::Sub", "").replace("${", "").replace(".Arn}", "") or target["Fn::GetAtt"][0]
        for action in [actions] if isinstance(actions, str) else actions:
            yield action, str(target)


def _calls(animals: str, keys: str) -> Iterator[tuple[Grant, Call]]:
    """Write a call for each permission: the client's method and its arguments."""
    for target, table, key in (("AnimalsTable", animals, _ANIMAL), ("ApiKeysTable", keys, _KEY)):
        for action in ("GetItem", "UpdateItem", "DeleteItem"):
            yield _call(action, target, TableName=table, Key=key)
        for action in ("Scan", "DescribeTable", "DeleteTable"):
            yield _call(action, target, TableName=table)
        yield _call("PutItem", target, TableName=table, Item=key)
        name, value = next(iter(key.items()))
        yield _call("Query", target, TableName=table, KeyConditions=_equals(name, value))
    target, index = "AnimalsTable/index/by-status", {"TableName": animals, "IndexName": "by-status"}
    yield _call("Scan", target, **index)
    yield _call("Query", target, **index, KeyConditions=_equals("status", {"S": "sold"}))


def _call(action: str, target: str, **arguments: Any) -> tuple[Grant, Call]:
    return (f"dynamodb:{action}", target), (action, arguments)


def _equals(name: str, value: Any) -> dict[str, Any]:
    return {name: {"ComparisonOperator": "EQ", "AttributeValueList": [value]}}


def _allowed(action: str, arguments: dict[str, Any]) -> bool:
    dynamodb = client("dynamodb")
    method = {operation: name for name, operation in dynamodb.meta.method_to_api_mapping.items()}[action]
    try:
        getattr(dynamodb, method)(**arguments)
    except ClientError as error:
        return bool(error.response["Error"]["Code"] != "AccessDeniedException")  # refused for another reason
    return True
