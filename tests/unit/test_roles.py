"""What template.yaml grants, watches and lets through, compared with what the layer does and openapi.yaml says."""

import fnmatch
import io
import itertools
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from animal_store import api_key, auth, catalogue, operation
from cfnlint.decode import cfn_yaml  # type: ignore[import-untyped]

from tests.support import openapi
from tests.support.fault_injection import FaultyStore
from tests.support.handlers import TEMPLATE
from tests.support.requests import Send, log_entries
from tests.support.stack import parameters
from tools import ROOT
from tools.local.events import EXAMPLE_KEY
from tools.packaging.sdk_data import OPERATIONS

DOCUMENT = cfn_yaml.load(str(ROOT / "template.yaml"))
RESOURCES = DOCUMENT["Resources"]
FOLDERS = {name: function.code.name for name, function in TEMPLATE.functions.items()}


def send_every_kind_of_request(send: Send, folder: str) -> None:
    """Make a function call DynamoDB in every way that it has."""
    body = json.dumps(
        {name: each["examples"][0] for name, each in openapi.schema("NewPet")["properties"].items()}
    )
    for headers in ({}, {"Idempotency-Key": ["a"]}, {"Idempotency-Key": ["a"]}):
        send(folder, body=body, headers=headers)
    send(folder, multiValueQueryStringParameters={"status": ["sold"]})


class Access(NamedTuple):
    """What IAM asks about a call, or about a part of a transaction."""

    action: str
    resource: str
    partitions: set[str]
    attributes: set[str]


def accesses(action: str, params: dict[str, Any]) -> Iterator[Access]:
    """Yield what a call accesses; the parts of a transaction one by one, and together."""
    if action == "TransactWriteItems":
        parts = [
            access
            for part in params["TransactItems"]
            for name, own in part.items()  # Put, Update, Delete or ConditionCheck
            for access in accesses(f"{name}Item", own)
        ]
        yield from parts
        for action_and_table in {part[:2] for part in parts}:
            same = [part for part in parts if part[:2] == action_and_table]
            partitions = set().union(*(part.partitions for part in same))
            attributes = set().union(*(part.attributes for part in same))
            yield Access(*action_and_table, partitions, attributes)
        return
    (table,) = (
        name for name, table in TEMPLATE.tables.items() if table.name == params["TableName"]
    )
    item = (
        params.get("Item")
        or params.get("Key")
        or {"pk": params["ExpressionAttributeValues"][":partition"]}
    )
    condition = re.findall(r"[(\s](\w+)[)\s]", f" {params.get('ConditionExpression', '')} ")
    named = {*item, *params.get("ExpressionAttributeNames", {}).values(), *condition} - {
        "OR",
        "AND",
        "NOT",
    }
    index = f"/index/{params['IndexName']}" if "IndexName" in params else ""
    yield Access(
        f"dynamodb:{action}", f"{table}{index}", {(item.get("pk") or item["hash"])["S"]}, named
    )


def allows(statement: dict[str, Any], access: Access) -> bool:
    """Tell whether a statement allows an access, as IAM evaluates it."""
    resource = statement["Resource"]
    arn = resource["Fn::GetAtt"][0] if "Fn::GetAtt" in resource else resource["Fn::Sub"]
    if (statement["Action"], arn.replace("${AnimalsTable.Arn}", "AnimalsTable")) != access[:2]:
        return False
    values = {"dynamodb:LeadingKeys": access.partitions, "dynamodb:Attributes": access.attributes}
    return all(
        any(
            (fnmatch.fnmatchcase if operator.endswith("StringLike") else str.__eq__)(value, each)
            for each in patterns
        )
        for operator, keys in statement.get("Condition", {}).items()
        for key, patterns in keys.items()
        for value in values[key]
    )


def statements(function: str) -> list[dict[str, Any]]:
    """Return what a function's role says of DynamoDB."""
    role = RESOURCES[RESOURCES[function]["Properties"]["Role"]["Fn::GetAtt"][0]]
    granted = [
        each
        for policy in role["Properties"]["Policies"]
        for each in policy["PolicyDocument"]["Statement"]
    ]
    return [statement for statement in granted if str(statement["Action"]).startswith("dynamodb:")]


def test_roles_allow_what_their_functions_do_and_no_more(
    send: Send, store: FaultyStore, forget_keys: Callable[[], None]
) -> None:
    made: dict[str, list[Access]] = {}
    sent: set[str] = set()
    for function, folder in FOLDERS.items():
        forget_keys()
        store.calls.clear()
        send_every_kind_of_request(send, folder)
        made[function] = [access for call in store.calls for access in accesses(*call)]
        sent |= {name for name, _ in store.calls}
    assert sent == set(OPERATIONS), (
        "The built layer describes other calls of DynamoDB than the functions make: see _METHODS in "
        "tools/packaging/sdk_data.py."
    )
    of_table = [
        access for own in made.values() for access in own if access.resource == "AnimalsTable"
    ]
    actions = {access.action for access in of_table}
    partitions, attributes = (
        set().union(*parts) for parts in zip(*(each[2:] for each in of_table), strict=True)
    )

    for function, own in made.items():
        granted = statements(function)
        for access in own:
            assert any(allows(statement, access) for statement in granted), (
                f"template.yaml: let the role of {function} do what the function does: {access}"
            )
        for statement in granted:
            assert any(allows(statement, access) for access in own), (
                f"template.yaml: remove {statement['Sid']} from the role of {function}: "
                "the function never does that."
            )
        # Neither rows of the table that are another function's, nor attributes that it does not write.
        for action, partition, attribute in itertools.product(
            actions, partitions, {*attributes, "owner"}
        ):
            same = [access for access in own if access[:2] == (action, "AnimalsTable")]
            does = any(partition in access.partitions for access in same)
            does &= action.endswith(("GetItem", "Query")) or any(
                attribute in access.attributes for access in same
            )
            tried = Access(action, "AnimalsTable", {partition}, {attribute})
            assert does or not any(allows(statement, tried) for statement in granted), (
                f"template.yaml: the role of {function} allows more than the function does: {tried}. "
                "Name the partitions in dynamodb:LeadingKeys, and for a write the attributes in "
                "dynamodb:Attributes."
            )


def test_alarms_and_dashboard_watch_metrics_that_the_layer_counts(
    send: Send, output: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in FOLDERS.values():
        monkeypatch.setattr(operation, "_cold_start", True)
        send_every_kind_of_request(send, folder)
        with monkeypatch.context() as broken:
            broken.setattr(catalogue, folder, None)
            send(folder)
    counted = {
        (line["Operation"], line.get("Code"), *dimensions, metric["Name"])
        for line in log_entries(output)
        for directive in line.get("_aws", {}).get("CloudWatchMetrics", [])
        for dimensions in directive["Dimensions"]
        for metric in directive["Metrics"]
    }
    stats = [
        each.get("MetricStat", {}) for each in RESOURCES["DeploymentAlarm"]["Properties"]["Metrics"]
    ]
    for metric in [
        stat["Metric"] for stat in stats if stat.get("Metric", {}).get("Namespace") == "AnimalStore"
    ]:
        dimensions = {dimension["Name"]: dimension["Value"] for dimension in metric["Dimensions"]}
        assert (
            dimensions["Operation"],
            "internal_error",
            *dimensions,
            metric["MetricName"],
        ) in counted
    body = RESOURCES["Dashboard"]["Properties"]["DashboardBody"]["Fn::Sub"]
    searches = re.findall(r"SEARCH\('\{AnimalStore,([\w,]+)\}.*?MetricName=\\\"(\w+)\\\"", body)
    assert len(searches) == body.count("SEARCH(") > 0
    assert {(*names.split(","), metric) for names, metric in searches} <= {
        each[2:] for each in counted
    }


def test_the_firewall_lets_every_key_through_that_the_layer_looks_up() -> None:
    (rule,) = (
        rule for rule in RESOURCES["WebAcl"]["Properties"]["Rules"] if "Allow" in rule["Action"]
    )
    pattern = rule["Statement"]["RegexMatchStatement"]["RegexString"]
    schemes, ends = ("Bearer ", "bEARER  ", "Basic ", "Bearer", ""), ("", "  ", "x")
    for key in (
        EXAMPLE_KEY,
        api_key.generate("live"),
        "",
        EXAMPLE_KEY[:-2],
        EXAMPLE_KEY.replace("test", "dead"),
    ):
        for header in [f"{scheme}{key}{end}" for scheme in schemes for end in ends]:
            match = auth._BEARER.fullmatch(header)
            accepted = match is not None and api_key.is_well_formed(match[1])
            assert (re.search(pattern, header) is not None) is accepted, header


LIMITS = {
    "ThrottlingRate": "requests per second for each operation, all clients together",
    "ThrottlingBurst": "requests at once for each operation, all clients together (burst)",
    "RequestsPerKey": "requests per minute with one API key",
    "RequestsPerAddress": "requests per minute from one address",
}


def test_limits_in_the_document_are_those_of_the_stages() -> None:
    defaults = {
        name: parameter.get("Default") for name, parameter in DOCUMENT["Parameters"].items()
    }
    stages = [defaults | parameters(stage) for stage in ("production", "staging")]
    for parameter, name in LIMITS.items():
        row = " | ".join([name, *(f"{int(values[parameter]):,}" for values in stages)])
        assert f"| {row} |" in openapi.document()["info"]["description"]
