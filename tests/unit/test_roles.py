"""What template.yaml grants, watches and lets through, compared with what the layer does."""

import json
import re
from typing import Any

import pytest
from animal_store import api_key

from tests.support import handlers, openapi
from tests.support.fault_injection import FaultyStore
from tests.support.handlers import EVENTS, SUCCESSES, TEMPLATE
from tests.support.stack import load, role_statements
from tools.deployment.template import resolve
from tools.local.events import EXAMPLE_KEY
from tools.packaging.sdk_data import OPERATIONS

DOCUMENT = load("template.yaml")
RESOURCES = DOCUMENT["Resources"]
Rights = dict[tuple[str, str], dict[str, set[str]]]
"""By action and resource: values of the condition keys."""


def add_right(rights: Rights, action: str, params: dict[str, Any]) -> None:
    """Add what IAM asks about a call: partition and, for a write, attributes."""
    tables = {table.name: name for name, table in TEMPLATE.tables.items()}
    resource = tables[params["TableName"]]
    if "IndexName" in params:
        resource += f"/index/{params['IndexName']}"
    conditions = rights.setdefault((f"dynamodb:{action}", resource), {})
    if resource != "AnimalsTable":
        return
    item = params.get("Item") or params.get("Key")
    key = item["pk"] if item else params["ExpressionAttributeValues"][":partition"]
    partition = re.sub("#.*", "#*", key["S"])
    conditions.setdefault("dynamodb:LeadingKeys", set()).add(partition)
    if action not in {"GetItem", "Query"}:
        names = params.get("ExpressionAttributeNames", {}).values()
        named = re.findall(r"(?<!:)\b[a-z]+\b", params.get("ConditionExpression", ""))
        attributes = conditions.setdefault("dynamodb:Attributes", set())
        attributes.update(item or (), names, named)


def needed_rights(calls: list[tuple[str, dict[str, Any]]]) -> Rights:
    """Return the rights that calls need."""
    rights: Rights = {}
    for action, params in calls:
        if action == "TransactWriteItems":
            for part in params["TransactItems"]:
                ((kind, own),) = part.items()
                add_right(rights, f"{kind}Item", own)
        else:
            add_right(rights, action, params)
    return rights


def granted_rights(function: str) -> Rights:
    """Return a function's rights to DynamoDB in template.yaml."""
    granted: Rights = {}
    arns = {f"{name}.Arn": name for name in TEMPLATE.tables}
    role = RESOURCES[function]["Properties"]["Role"]["Fn::GetAtt"][0]
    for name, statement in role_statements(DOCUMENT):
        if name == role and "dynamodb:" in str(statement["Action"]):
            assert isinstance(statement["Action"], str), "one action in a statement"
            arn = resolve(statement["Resource"], arns)
            right = granted.setdefault((statement["Action"], arn), {})
            for operator, condition in statement.get("Condition", {}).items():
                kind = "Like" if "*" in str(condition) else "Equals"
                assert operator == f"ForAllValues:String{kind}"
                for key, values in condition.items():
                    right[key] = set(values)
    return granted


def send_successes(function: str) -> None:
    """Send a function its successful events; a creation has every member."""
    members = openapi.schema("NewPet")["properties"]
    new = {name: schema["examples"][0] for name, schema in members.items()}
    for name in SUCCESSES:
        if handlers.function_of(EVENTS[name]) == function:
            handlers.send(name, body=json.dumps(new))


@pytest.mark.parametrize("function", TEMPLATE.functions)
def test_roles_allow_what_their_functions_do_and_no_more(
    function: str, store: FaultyStore
) -> None:
    send_successes(function)

    assert granted_rights(function) == needed_rights(store.calls), (
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
        "The built layer describes other calls of DynamoDB than the functions make: see _METHODS "
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
        ("Stage,Operation", "ColdStart"),
        ("Stage,Operation,Code", "Errors"),
        ("Stage,Operation,KeyLabel", "DeprecatedCalls"),
    }


@pytest.mark.parametrize(
    ("header", "is_let_through"),
    [
        (f"Bearer {EXAMPLE_KEY}", True),
        (f"bEARER  {EXAMPLE_KEY}  ", True),
        pytest.param(f"Bearer {api_key.generate('live')}", True, id="live"),
        (f"Basic {EXAMPLE_KEY}", False),
        (f"Bearer{EXAMPLE_KEY}", False),
        (f"Bearer {EXAMPLE_KEY}x", False),
        (f"Bearer {EXAMPLE_KEY[:-1]}", False),
        (f"Bearer {EXAMPLE_KEY.replace('test', 'dead')}", False),
        (EXAMPLE_KEY, False),
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
