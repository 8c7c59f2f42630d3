"""Try with each function's role what the template grants it by name, and what it does not grant."""

from collections.abc import Iterator, Mapping
from typing import Any

from botocore.exceptions import ClientError

from tools.deployment.emulator import ACCOUNT
from tools.deployment.service import DeploymentError
from tools.deployment.stage import client

_KEYS = {"AnimalsTable": {"pk": {"S": "pet"}, "id": {"N": "0"}}, "ApiKeysTable": {"hash": {"S": "role-trial"}}}
_INDEXES = {"AnimalsTable": ("by-status", {"status": {"S": "sold"}})}


def try_all(template: Mapping[str, Any], resources: Mapping[str, str]) -> int:
    """Make every call with every role; return how many.

    What a statement grants beyond the actions and tables that it names, by a wildcard for instance, is found as a call
    that is allowed and should not be. What is missing is found by the contract suite too.
    """
    calls = {grant: call for table in _KEYS for grant, call in _calls(table, resources[table])}
    roles = [name for name in resources if f"{name.removesuffix('Role')}Function" in resources]
    problems = []
    for role in roles:
        policies = template["Resources"][role]["Properties"]["Policies"]
        granted = {grant for grant in _granted(policies) if grant[0].startswith("dynamodb:")}
        allowed = {grant for grant, (method, arguments) in calls.items() if _may(resources[role], method, arguments)}
        problems += [f"{role} has {action} on {target}, which is not granted" for action, target in allowed - granted]
        problems += [f"{role} lacks {action} on {target}, or it is not tried" for action, target in granted - allowed]
    client("dynamodb").delete_item(TableName=resources["AnimalsTable"], Key=_KEYS["AnimalsTable"])
    if problems:
        raise DeploymentError("\n".join(problems))
    return len(calls) * len(roles)


def _granted(policies: Any) -> Iterator[tuple[str, str]]:
    """Read the statements as they are written: action by action, resource by resource."""
    for statement in (statement for policy in policies for statement in policy["PolicyDocument"]["Statement"]):
        actions, target = statement["Action"], statement["Resource"]
        for action in [actions] if isinstance(actions, str) else actions:
            if "Fn::Sub" in target:
                yield action, target["Fn::Sub"].replace("${", "").replace(".Arn}", "")
            else:
                yield action, target["Fn::GetAtt"][0] if "Fn::GetAtt" in target else str(target)


def _calls(table: str, name: str) -> Iterator[tuple[tuple[str, str], tuple[str, dict[str, Any]]]]:
    """Write a call for every permission on a table and its index: the client's method, and its arguments."""
    key = _KEYS[table]
    for method in ("get_item", "update_item", "delete_item"):
        yield (f"dynamodb:{_action(method)}", table), (method, {"TableName": name, "Key": key})
    yield ("dynamodb:PutItem", table), ("put_item", {"TableName": name, "Item": key})
    for method in ("scan", "describe_table", "delete_table"):
        yield (f"dynamodb:{_action(method)}", table), (method, {"TableName": name})
    targets: list[tuple[str, dict[str, Any], dict[str, Any]]] = [(table, {}, key)]
    if table in _INDEXES:
        index, index_key = _INDEXES[table]
        targets.append((f"{table}/index/{index}", {"IndexName": index}, index_key))
        yield ("dynamodb:Scan", targets[-1][0]), ("scan", {"TableName": name, "IndexName": index})
    for target, options, query_key in targets:
        attribute, value = next(iter(query_key.items()))
        condition = {"ComparisonOperator": "EQ", "AttributeValueList": [value]}
        yield (
            ("dynamodb:Query", target),
            ("query", {"TableName": name, **options, "KeyConditions": {attribute: condition}}),
        )


def _action(method: str) -> str:
    return method.title().replace("_", "")


def _may(role: str, method: str, arguments: dict[str, Any]) -> bool:
    arn = f"arn:aws:iam::{ACCOUNT}:role/{role}"
    credentials = client("sts").assume_role(RoleArn=arn, RoleSessionName="rehearsal")["Credentials"]
    caller = client(
        "dynamodb",
        aws_access_key_id=credentials["AccessKeyId"],
        aws_secret_access_key=credentials["SecretAccessKey"],
        aws_session_token=credentials["SessionToken"],
    )
    try:
        getattr(caller, method)(**arguments)
    except ClientError as error:
        if error.response["Error"]["Code"] == "AccessDeniedException":
            return False
        raise
    return True
