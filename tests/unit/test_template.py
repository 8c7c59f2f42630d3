"""What template.yaml grants, watches and lets through, compared with what the layer does."""

import fnmatch
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from animal_store import api_key as api_keys
from animal_store import auth, catalogue, dynamodb, operation
from cfnlint.decode import cfn_yaml  # type: ignore[import-untyped]

from tests.unit.conftest import TEMPLATE, Ask, Output
from tools import ROOT

RESOURCES = cfn_yaml.load(str(ROOT / "template.yaml"))["Resources"]
FOLDERS = {name: function.code.name for name, function in TEMPLATE.functions.items()}
BODY = '{"name": "Rex", "categoryId": 3, "status": "sold"}'


def requests(ask: Ask, folder: str) -> None:
    """Send a function every kind of request that makes it call DynamoDB in another way."""
    if folder == "create_pet":
        ask(folder, body=BODY)
        for _ in range(2):
            ask(folder, body=BODY, headers={"Idempotency-Key": ["a"]})
    ask(folder)
    ask(folder, query={"status": ["sold"]})


# -- permissions -------------------------------------------------------------------------------------------------------


class Access(NamedTuple):
    """What IAM asks about a call, or about a part of a transaction."""

    action: str
    resource: str
    partitions: set[str]
    attributes: set[str]


def accesses(action: str, params: dict[str, Any]) -> Iterator[Access]:
    """Yield what a call accesses; the parts of a transaction one by one, and together."""
    if action == "TransactWriteItems":
        parts = [access for part in params["TransactItems"] for access in accesses("PutItem", part["Put"])]
        yield from parts
        together = [set().union(*(getattr(part, field) for part in parts)) for field in ("partitions", "attributes")]
        yield Access(*parts[0][:2], *together)
        return
    (table,) = (name for name, table in TEMPLATE.tables.items() if table.name == params["TableName"])
    item = (
        params.get("Item") or params.get("Key") or {"pk": params.get("ExpressionAttributeValues", {}).get(":partition")}
    )
    condition = re.findall(r"[(\s](\w+)[)\s]", f" {params.get('ConditionExpression', '')} ")
    named = {*item, *params.get("ExpressionAttributeNames", {}).values(), *condition} - {"OR", "AND", "NOT"}
    index = f"/index/{params['IndexName']}" if "IndexName" in params else ""
    yield Access(f"dynamodb:{action}", f"{table}{index}", {next(iter(item.values()))["S"]}, named)


def allows(statement: dict[str, Any], access: Access) -> bool:
    """Tell whether a statement allows an access, as IAM evaluates it."""
    resource = statement["Resource"]
    name = (
        resource["Fn::GetAtt"][0]
        if "Fn::GetAtt" in resource
        else resource["Fn::Sub"].replace("${AnimalsTable.Arn}", "AnimalsTable")
    )
    if (statement["Action"], name) != access[:2]:
        return False
    values = {"dynamodb:LeadingKeys": access.partitions, "dynamodb:Attributes": access.attributes}
    for operator, keys in statement.get("Condition", {}).items():
        for key, patterns in keys.items():
            for value in values[key]:
                matches = fnmatch.fnmatchcase if operator.endswith("StringLike") else str.__eq__
                if not any(matches(value, pattern) for pattern in patterns):
                    return False
    return True


def statements(function: str) -> list[dict[str, Any]]:
    """Return what a function's role says of DynamoDB."""
    role = RESOURCES[RESOURCES[function]["Properties"]["Role"]["Fn::GetAtt"][0]]
    return [
        statement
        for policy in role["Properties"]["Policies"]
        for statement in policy["PolicyDocument"]["Statement"]
        if str(statement["Action"]).startswith("dynamodb:")
    ]


@pytest.mark.parametrize("function", FOLDERS)
def test_a_role_allows_what_its_function_does_and_nothing_that_it_does_not(function: str, ask: Ask) -> None:
    made: list[Access] = []

    def record(params: dict[str, Any], model: Any, **_: object) -> None:
        made.extend(accesses(model.name, params))

    dynamodb.client.meta.events.register("provide-client-params.dynamodb", record)
    try:
        requests(ask, FOLDERS[function])
    finally:
        dynamodb.client.meta.events.unregister("provide-client-params.dynamodb", record)
    assert made
    for access in made:
        assert any(allows(statement, access) for statement in statements(function)), access
    for statement in statements(function):
        assert any(allows(statement, access) for access in made), f"{statement['Sid']} is not used"


@pytest.mark.parametrize(
    ("function", "access"),
    [
        pytest.param("CreatePetFunction", ("PutItem", {"counter"}, {"pk", "id"}), id="replace the counter"),
        pytest.param("CreatePetFunction", ("UpdateItem", {"pet"}, {"pk", "id"}), id="change an animal"),
        pytest.param(
            "CreatePetFunction", ("UpdateItem", {"counter"}, {"pk", "id", "expires"}), id="let the counter expire"
        ),
        pytest.param("CreatePetFunction", ("PutItem", {"pet"}, {"pk", "id", "owner"}), id="add an attribute"),
        pytest.param("CreatePetFunction", ("GetItem", {"pet"}, {"pk", "id"}), id="read an animal"),
        pytest.param("ListPetsFunction", ("Query", {"idempotency#a"}, set()), id="read idempotency records"),
        pytest.param("GetPetFunction", ("GetItem", {"counter"}, {"pk", "id"}), id="read the counter"),
    ],
)
def test_a_role_cannot(function: str, access: tuple[str, set[str], set[str]]) -> None:
    tried = Access(f"dynamodb:{access[0]}", "AnimalsTable", *access[1:])
    assert not any(allows(statement, tried) for statement in statements(function))


# -- metrics -----------------------------------------------------------------------------------------------------------


def test_alarms_and_dashboard_watch_metrics_that_the_layer_counts(
    ask: Ask, output: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in FOLDERS.values():
        monkeypatch.setattr(operation, "_cold_start", True)
        requests(ask, folder)
        ask(folder, headers={"Authorization": []})
        with monkeypatch.context() as broken:
            broken.setattr(catalogue, folder, None)
            ask(folder, body=BODY)
    counted = {
        (line["Operation"], *dimensions, metric["Name"])
        for line in output.requests
        for directive in line["_aws"]["CloudWatchMetrics"]
        for dimensions in directive["Dimensions"]
        for metric in directive["Metrics"]
    }
    metrics = [
        entry.get("MetricStat", {}).get("Metric", {}) for entry in RESOURCES["DeploymentAlarm"]["Properties"]["Metrics"]
    ]
    for metric in (metric for metric in metrics if metric.get("Namespace") == "AnimalStore"):
        dimensions = {dimension["Name"]: dimension["Value"] for dimension in metric["Dimensions"]}
        assert (dimensions["Operation"], *dimensions, metric["MetricName"]) in counted
        assert dimensions["Code"] in {line.get("Code") for line in output.requests}
    body = RESOURCES["Dashboard"]["Properties"]["DashboardBody"]["Fn::Sub"]
    searches = re.findall(r"SEARCH\('\{AnimalStore,([\w,]+)\}.*?MetricName=\\\"(\w+)\\\"", body)
    assert len(searches) == body.count("SEARCH(") > 0
    assert {(*names.split(","), metric) for names, metric in searches} <= {each[1:] for each in counted}


# -- firewall ----------------------------------------------------------------------------------------------------------


def test_the_firewall_lets_every_key_through_that_the_layer_looks_up() -> None:
    (rule,) = (rule for rule in RESOURCES["WebAcl"]["Properties"]["Rules"] if "Allow" in rule["Action"])
    pattern = rule["Statement"]["RegexMatchStatement"]["RegexString"]
    key = api_keys.generate("live")
    headers = [
        f"{scheme}{key}{end}" for scheme in ("Bearer ", "bEARER  ", "Basic ", "Bearer", "") for end in ("", "  ", "x")
    ]
    headers += ["", "Bearer ", f"Bearer {key[:-1]}", f"Bearer {key.replace('live', 'dead')}", f"Bearer {key} {key}"]
    for header in [*headers, f"Bearer {api_keys.generate('test')}"]:
        match = auth._BEARER.fullmatch(header)
        accepted = match is not None and api_keys.is_well_formed(match[1])
        assert (re.search(pattern, header) is not None) is accepted, header
