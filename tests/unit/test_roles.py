"""Roles and heartbeats of template.yaml, compared with what the functions do."""

import json
from typing import Any

import pytest

from tests.support import handlers, openapi
from tests.support.fault_injection import FaultyStore
from tests.support.handlers import EVENTS, SUCCESSES, TEMPLATE
from tests.support.stack import block_of, role_statements, staged
from tools.packaging.sdk_data import OPERATIONS

STACK = staged()
RESOURCES = STACK["Resources"]
ARNS = {table.name: f"{name}.Arn" for name, table in TEMPLATE.tables.items()}
Rights = dict[tuple[str, str], set[str]]
"""By action and resource: partitions and, for a write, attributes."""


def add_needed(rights: Rights, operation: str, params: dict[str, Any]) -> None:
    """Add what IAM asks about a call."""
    if operation == "TransactWriteItems":
        for part in params["TransactItems"]:
            ((kind, write),) = part.items()
            add_needed(rights, f"{kind}Item", write)
        return
    table, index = params["TableName"], params.get("IndexName")
    arn = f"{ARNS[table]}/index/{index}" if index else ARNS[table]
    conditions = rights.setdefault((f"dynamodb:{operation}", arn), set())
    if index or table != handlers.ANIMALS:
        return
    values = params.get("ExpressionAttributeValues", {})
    item = params.get("Item") or params.get("Key") or {"pk": values[":partition"]}
    partition, mark, _ = item["pk"]["S"].partition("#")
    conditions.add(f"{partition}#*" if mark else partition)
    if operation not in {"GetItem", "Query"}:
        conditions.update(item, params.get("ExpressionAttributeNames", {}).values())


def needed_rights(function: str, store: FaultyStore) -> Rights:
    """Return what IAM asks about the calls of a function, and about its log."""
    log = f"{function.removesuffix('Function')}LogGroup.Arn"
    rights: Rights = {
        ("logs:CreateLogStream", log): set(),
        ("logs:PutLogEvents", log): set(),
    }
    for call in store.calls:
        add_needed(rights, *call)
    return rights


def granted_rights(function: str) -> Rights:
    """Return what template.yaml lets a function do."""
    role = RESOURCES[function]["Properties"]["Role"].removesuffix(".Arn")
    assert "ManagedPolicyArns" not in RESOURCES[role]["Properties"]
    rights: Rights = {}
    for name, statement in role_statements(STACK):
        if name != role:
            continue
        assert statement["Effect"] == "Allow"
        conditions: set[str] = set()
        for operator, keys in statement.get("Condition", {}).items():
            kind = "Like" if "*" in str(keys) else "Equals"
            assert operator == f"ForAllValues:String{kind}"
            conditions.update(*keys.values())
        actions = statement["Action"]
        for action in [actions] if isinstance(actions, str) else actions:
            right = action, statement["Resource"]
            assert right not in rights, "one could undo the other's condition"
            rights[right] = conditions
    return rights


@pytest.mark.parametrize("function", TEMPLATE.functions)
def test_roles_allow_what_their_functions_do_and_no_more(
    function: str, store: FaultyStore
) -> None:
    members = openapi.SCHEMAS["NewPet"]["properties"].items()
    pet = {name: declared["examples"][0] for name, declared in members}
    for name in SUCCESSES:
        if handlers.function_of(EVENTS[name]) == function:
            whole = {"body": json.dumps(pet)}
            handlers.send(name, **whole if name.startswith("create-201") else {})

    assert store.calls, f"events/ has no event that {function} answers with 20x."
    assert granted_rights(function) == needed_rights(function, store), (
        f"template.yaml: let the role of {function} do what the function does, and no more (unless "
        "models.py lacks a member). Name "
        "the partitions in dynamodb:LeadingKeys, and for a write the attributes in "
        "dynamodb:Attributes. (Left: what it may do. Right: what it does.)"
    )
    assert {name for name, _ in store.calls} <= set(OPERATIONS), (
        "The built layer does not describe each call of DynamoDB that the function makes: see "
        "OPERATIONS in tools/packaging/sdk_data.py."
    )


@pytest.mark.usefixtures("store")
@openapi.each_operation
def test_heartbeat_is_counted_as_its_alarm_expects(
    operation: openapi.Operation, capsys: pytest.CaptureFixture[str]
) -> None:
    block = block_of(operation.id)
    events = RESOURCES[f"{block}Function"]["Properties"]["Events"]
    heartbeat = events["Heartbeat"]["Properties"]

    handlers.invoke(json.loads(heartbeat["Input"]), function=f"{block}Function")

    line = json.loads(capsys.readouterr().out)
    assert (line["Stage"], line["Operation"]) == ("heartbeat-production", operation.id)
    assert line["Code"] == "unauthorized"
