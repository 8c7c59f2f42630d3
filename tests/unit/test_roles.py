"""What template.yaml grants, watches and lets through, compared with what the layer does."""

import json
import re
from itertools import product
from typing import Any

import pytest
from animal_store import api_key

from tests.support import handlers, openapi
from tests.support.fault_injection import FaultyStore
from tests.support.handlers import EVENTS, SUCCESSES, TEMPLATE
from tests.support.stack import role_statements, staged
from tools.local.events import EXAMPLE_KEY
from tools.packaging.sdk_data import OPERATIONS

STACK = staged()
RESOURCES = STACK["Resources"]
ARNS = {table.name: f"{name}.Arn" for name, table in TEMPLATE.tables.items()}
Rights = dict[tuple[str, str], set[str]]
"""By action and table or index: partitions and, for a write, attributes."""


def add_needed(rights: Rights, operation: str, params: dict[str, Any]) -> None:
    """Add what IAM asks about a call."""
    if operation == "TransactWriteItems":
        for part in params["TransactItems"]:
            ((kind, own),) = part.items()
            add_needed(rights, f"{kind}Item", own)
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


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def granted_rights(function: str) -> Rights:
    """Return a function's rights to DynamoDB in template.yaml."""
    rights: Rights = {}
    for name, statement in role_statements(STACK):
        if RESOURCES[function]["Properties"]["Role"] != f"{name}.Arn":
            continue
        assert statement["Effect"] == "Allow"
        conditions: set[str] = set()
        for operator, keys in statement.get("Condition", {}).items():
            kind = "Like" if "*" in str(keys) else "Equals"
            assert operator == f"ForAllValues:String{kind}"
            conditions.update(*keys.values())
        for right in product(
            listed(statement["Action"]), listed(statement["Resource"])
        ):
            assert right not in rights, (
                "two statements: one could undo the other's condition"
            )
            rights[right] = conditions
    return {
        right: rights[right] for right in rights if right[0].startswith("dynamodb:")
    }


@pytest.mark.parametrize("function", TEMPLATE.functions)
def test_roles_allow_what_their_functions_do_and_no_more(
    function: str, store: FaultyStore
) -> None:
    for name in SUCCESSES:
        if handlers.function_of(EVENTS[name]) == function:
            whole = {"body": json.dumps(openapi.example("NewPet"))}
            handlers.send(name, **whole if name.startswith("create-201") else {})

    assert store.calls, f"events/ has no event that {function} answers with 20x."
    needed: Rights = {}
    for call in store.calls:
        add_needed(needed, *call)
    assert granted_rights(function) == needed, (
        f"template.yaml: let the role of {function} do what the function does, and no more. Name "
        "the partitions in dynamodb:LeadingKeys, and for a write the attributes in "
        "dynamodb:Attributes. (Left: what it may do. Right: what it does.)"
    )
    assert {name for name, _ in store.calls} <= set(OPERATIONS), (
        "The built layer does not describe each call of DynamoDB that the function makes: see "
        "OPERATIONS in tools/packaging/sdk_data.py."
    )


def test_dashboard_shows_metrics_that_the_layer_counts() -> None:
    """Those of test_telemetry.py, and of the access log."""
    body = RESOURCES["Dashboard"]["Properties"]["DashboardBody"].replace('\\"', "")
    searches = {
        text.partition("'")[0] for text in body.split("SEARCH('{AnimalStore,")[1:]
    }

    assert searches == {
        "Stage,Method,Resource} Stage=production MetricName=Failed",
        "Stage,Operation,Code} Stage=production MetricName=Errors",
        "Stage,Operation,KeyLabel} Stage=production MetricName=DeprecatedCalls",
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
