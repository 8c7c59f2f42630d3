"""What template.yaml grants, watches and lets through, compared with what the layer does."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from animal_store import api_key

from tests.support import handlers, openapi
from tests.support.fault_injection import FaultyStore
from tests.support.handlers import EVENTS, SUCCESSES, TEMPLATE
from tests.support.stack import load, resolve, role_statements
from tools.local.events import EXAMPLE_KEY
from tools.packaging.sdk_data import OPERATIONS

DOCUMENT = load("template.yaml")
RESOURCES = DOCUMENT["Resources"]
ARNS = {f"{name}.Arn": table.name for name, table in TEMPLATE.tables.items()}
Right = tuple[str, str, str]
"""An action, a table or index, and a condition that holds: `dynamodb:LeadingKeys pet`."""


def needed_rights(operation: str, params: dict[str, Any]) -> Iterator[Right]:
    """Yield what IAM asks about a call: partition and, for a write, attributes."""
    if operation == "TransactWriteItems":
        for part in params["TransactItems"]:
            ((kind, own),) = part.items()
            yield from needed_rights(f"{kind}Item", own)
        return
    action, resource = f"dynamodb:{operation}", params["TableName"]
    if "IndexName" in params:
        resource += f"/index/{params['IndexName']}"
    yield action, resource, ""
    if resource != handlers.ANIMALS:
        return
    item = params.get("Item") or params.get("Key", {})
    key = item.get("pk") or params["ExpressionAttributeValues"][":partition"]
    yield action, resource, "dynamodb:LeadingKeys " + re.sub("#.*", "#*", key["S"])
    if operation not in {"GetItem", "Query"}:
        names = params.get("ExpressionAttributeNames", {}).values()
        named = re.findall(r"(?<!:)\b[a-z]+\b", params.get("ConditionExpression", ""))
        for attribute in (*item, *names, *named):
            yield action, resource, f"dynamodb:Attributes {attribute}"


def conditions_of(statement: dict[str, Any]) -> Iterator[str]:
    """Yield the conditions of a statement: `dynamodb:LeadingKeys pet`."""
    for operator, condition in statement.get("Condition", {}).items():
        kind = "Like" if "*" in str(condition) else "Equals"
        assert operator == f"ForAllValues:String{kind}"
        for key, values in condition.items():
            yield from (f"{key} {value}" for value in values)


def granted_rights(function: str) -> Iterator[Right]:
    """Yield a function's rights to DynamoDB in template.yaml."""
    role = RESOURCES[function]["Properties"]["Role"]["Fn::GetAtt"][0]
    for name, statement in role_statements(DOCUMENT):
        action = statement["Action"]
        assert statement["Effect"] == "Allow"
        if name != role or "dynamodb:" not in str(action):
            continue
        assert isinstance(action, str), f"template.yaml, {role}: a statement per action"
        resources = resolve(statement["Resource"], ARNS)
        for resource in resources if isinstance(resources, list) else [resources]:
            yield action, resource, ""
            for condition in conditions_of(statement):
                yield action, resource, condition


def send_successes(function: str) -> None:
    """Send a function its successful events; a creation has every member."""
    for name in SUCCESSES:
        if handlers.function_of(EVENTS[name]) == function:
            whole = {"body": json.dumps(openapi.example("NewPet"))}
            handlers.send(name, **whole if name.startswith("create-201") else {})


@pytest.mark.parametrize("function", TEMPLATE.functions)
def test_roles_allow_what_their_functions_do_and_no_more(
    function: str, store: FaultyStore
) -> None:
    send_successes(function)

    needed: set[Right] = set()
    for call in store.calls:
        needed.update(needed_rights(*call))
    assert set(granted_rights(function)) == needed, (
        f"template.yaml: let the role of {function} do what the function does, and no more. Name "
        "the partitions in dynamodb:LeadingKeys, and for a write the attributes in "
        "dynamodb:Attributes. (Left: what it may do. Right: what it does.)"
    )


def test_the_built_layer_describes_the_calls_that_functions_make(
    store: FaultyStore,
) -> None:
    for function in TEMPLATE.functions:
        send_successes(function)

    assert {name for name, _ in store.calls} == set(OPERATIONS), (
        "The built layer describes other calls of DynamoDB than the functions make: see OPERATIONS "
        "in tools/packaging/sdk_data.py."
    )


def test_dashboard_shows_metrics_that_the_layer_counts() -> None:
    """Those of test_telemetry.py, and of the access log."""
    body = RESOURCES["Dashboard"]["Properties"]["DashboardBody"]["Fn::Sub"]
    searches = re.findall(
        r"SEARCH\('\{AnimalStore,([\w,]+)\}.*?MetricName=\\\"(\w+)\\\"", body
    )

    assert len(searches) == body.count("SEARCH(")
    assert set(searches) == {
        ("Stage,Method,Resource", "Failed"),
        ("Stage,Operation,Code", "Errors"),
        ("Stage,Operation,KeyLabel", "DeprecatedCalls"),
    }


@pytest.mark.parametrize(
    ("header", "is_let_through"),
    [
        (f"Bearer {EXAMPLE_KEY}", True),
        pytest.param(f"bEARER  {api_key.generate('live')}  ", True, id="live"),
        (f"Bearer{EXAMPLE_KEY}", False),
        (f"Bearer {EXAMPLE_KEY}x", False),
        (f"Bearer {EXAMPLE_KEY[:-1]}", False),
        (f"Bearer {EXAMPLE_KEY.replace('test', 'dead')}", False),
    ],
)
def test_the_firewall_lets_every_key_through_that_the_layer_looks_up(
    header: str, is_let_through: bool, store: FaultyStore
) -> None:
    rules = RESOURCES["WebAcl"]["Properties"]["Rules"]
    (statement,) = (rule["Statement"] for rule in rules if "Allow" in rule["Action"])
    pattern = statement["RegexMatchStatement"]["RegexString"]

    handlers.send("list-200", headers={"Authorization": [header]})

    assert bool(re.search(pattern, header)) is is_let_through
    assert ("GetItem" in store.sent) is is_let_through
