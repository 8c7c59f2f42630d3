"""What template.yaml grants, watches and lets through, compared with what the layer does."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from animal_store import api_key, auth
from cfnlint.decode import cfn_yaml  # type: ignore[import-untyped]

from tests.support import openapi
from tests.support.fault_injection import FaultyStore
from tests.support.handlers import TEMPLATE
from tests.support.requests import Send
from tests.support.stack import parameters, resolve, role_statements
from tools import ROOT
from tools.local.events import EXAMPLE_KEY
from tools.packaging.sdk_data import OPERATIONS

DOCUMENT = cfn_yaml.load(str(ROOT / "template.yaml"))
RESOURCES = DOCUMENT["Resources"]
FOLDERS = {name: function.code.name for name, function in TEMPLATE.functions.items()}
TABLES = {table.name: name for name, table in TEMPLATE.tables.items()}
ARNS = {f"{name}.Arn": name for name in TEMPLATE.tables}


def send_every_kind_of_request(send: Send, folder: str) -> None:
    """Make a function call DynamoDB in every way that it has."""
    body = json.dumps(
        {
            name: each["examples"][0]
            for name, each in openapi.schema("NewPet")["properties"].items()
        }
    )
    for headers in ({}, {"Idempotency-Key": ["a"]}, {"Idempotency-Key": ["a"]}):
        send(folder, body=body, headers=headers)
    send(folder, multiValueQueryStringParameters={"status": ["sold"]})


def accesses(
    action: str, params: dict[str, Any]
) -> Iterator[tuple[str, str, str, set[str]]]:
    """Yield what IAM asks about a call: an action, a resource, a partition and attributes."""
    if action == "TransactWriteItems":
        for part in params["TransactItems"]:
            for name, own in part.items():  # Put, Update, Delete or ConditionCheck
                yield from accesses(f"{name}Item", own)
        return
    table = TABLES[params["TableName"]]
    resource = (
        f"{table}/index/{params['IndexName']}" if "IndexName" in params else table
    )
    values = params.get("ExpressionAttributeValues", {})
    item = params.get("Item") or params.get("Key") or {"pk": values[":partition"]}
    key = item.get("pk") or item["hash"]
    partition = re.sub("#.*", "#*", key["S"])
    condition = re.findall(r"\((\w+)\)|(\w+) <=", params.get("ConditionExpression", ""))
    attributes = {*item, *params.get("ExpressionAttributeNames", {}).values()}
    yield f"dynamodb:{action}", resource, partition, attributes.union(*condition) - {""}


def rights(calls: list[tuple[str, dict[str, Any]]]) -> dict[tuple[str, str], Any]:
    """Return the rights that calls need, with the partitions and, for a write, the attributes."""
    needed: dict[tuple[str, str], Any] = {}
    for call in calls:
        for action, resource, partition, attributes in accesses(*call):
            keys = needed.setdefault((action, resource), {})
            if resource == "AnimalsTable":
                keys.setdefault("dynamodb:LeadingKeys", set()).add(partition)
                if action not in {"dynamodb:GetItem", "dynamodb:Query"}:
                    keys.setdefault("dynamodb:Attributes", set()).update(attributes)
    return needed


def granted_rights(function: str) -> dict[tuple[str, str], Any]:
    """Return a function's rights to DynamoDB in template.yaml, with the conditions on each."""
    granted = {}
    role = RESOURCES[function]["Properties"]["Role"]["Fn::GetAtt"][0]
    for name, statement in role_statements(DOCUMENT):
        if name == role and str(statement["Action"]).startswith("dynamodb:"):
            arn = resolve(statement["Resource"], ARNS)
            keys: dict[str, set[str]] = {}
            for operator, condition in statement.get("Condition", {}).items():
                has_pattern = "*" in str(condition)
                assert (
                    operator
                    == f"ForAllValues:String{'Like' if has_pattern else 'Equals'}"
                )
                keys |= {key: set(values) for key, values in condition.items()}
            granted[statement["Action"], arn] = keys
    return granted


@pytest.mark.parametrize(("function", "folder"), FOLDERS.items(), ids=FOLDERS)
def test_roles_allow_what_their_functions_do_and_no_more(
    send: Send, store: FaultyStore, function: str, folder: str
) -> None:
    send_every_kind_of_request(send, folder)

    assert granted_rights(function) == rights(store.calls), (
        f"template.yaml: let the role of {function} do what the function does, and no more. Name "
        "the partitions in dynamodb:LeadingKeys, and for a write the attributes in "
        "dynamodb:Attributes. (Left: what it may do. Right: what it does.)"
    )


def test_the_built_layer_describes_the_calls_that_functions_make(
    send: Send, store: FaultyStore
) -> None:
    for folder in FOLDERS.values():
        send_every_kind_of_request(send, folder)
    assert {name for name, _ in store.calls} == set(OPERATIONS), (
        "The built layer describes other calls of DynamoDB than the functions make: see _METHODS "
        "in tools/packaging/sdk_data.py."
    )


def test_alarms_and_dashboard_watch_metrics_that_the_layer_counts() -> None:
    """Those of test_telemetry.py."""
    metrics = RESOURCES["DeploymentAlarm"]["Properties"]["Metrics"]
    watched = [
        metric["MetricStat"]["Metric"] for metric in metrics if "MetricStat" in metric
    ]
    body = RESOURCES["Dashboard"]["Properties"]["DashboardBody"]["Fn::Sub"]
    searches = re.findall(
        r"SEARCH\('\{AnimalStore,([\w,]+)\}.*?MetricName=\\\"(\w+)\\\"", body
    )

    for metric in watched:
        if metric["Namespace"] == "AnimalStore":
            stage, operation, version = metric["Dimensions"]
            assert (stage["Name"], operation["Name"]) == ("Stage", "Operation")
            assert (version["Name"], metric["MetricName"]) == ("Version", "Errors")
    assert len(searches) == body.count("SEARCH(")
    assert set(searches) == {
        ("Stage,Operation,Status", "Latency"),
        ("Stage,Operation,Status", "ColdStart"),
        ("Stage,Operation,Code", "Errors"),
        ("Stage,Operation,KeyLabel", "DeprecatedCalls"),
    }


@pytest.mark.parametrize("scheme", ["Bearer ", "bEARER  ", "Basic ", "Bearer", ""])
@pytest.mark.parametrize("end", ["", "  ", "x"])
@pytest.mark.parametrize(
    "key",
    [
        EXAMPLE_KEY,
        api_key.generate("live"),
        EXAMPLE_KEY[:-2],
        EXAMPLE_KEY.replace("test", "dead"),
    ],
    ids=["test", "live", "cut", "dead"],
)
def test_the_firewall_lets_every_key_through_that_the_layer_looks_up(
    scheme: str, key: str, end: str
) -> None:
    (statement,) = (
        rule["Statement"]
        for rule in RESOURCES["WebAcl"]["Properties"]["Rules"]
        if "Allow" in rule["Action"]
    )
    pattern = statement["RegexMatchStatement"]["RegexString"]
    header = f"{scheme}{key}{end}"

    match = auth._BEARER.fullmatch(header)

    accepted = match is not None and api_key.is_well_formed(match[1])
    assert bool(re.search(pattern, header)) is accepted


@pytest.mark.parametrize(
    ("parameter", "name"),
    [
        (
            "ThrottlingRate",
            "requests per second for each operation, all clients together",
        ),
        (
            "ThrottlingBurst",
            "requests at once for each operation, all clients together (burst)",
        ),
        ("RequestsPerKey", "requests per minute with one API key"),
        ("RequestsPerAddress", "requests per minute from one address"),
    ],
)
def test_limits_in_the_document_are_those_of_the_stages(
    parameter: str, name: str
) -> None:
    default = DOCUMENT["Parameters"][parameter].get("Default")
    production, staging = (
        int(parameters(stage).get(parameter, default))
        for stage in ("production", "staging")
    )

    row = f"| {name} | {production:,} | {staging:,} |"
    assert row in openapi.document()["info"]["description"]
