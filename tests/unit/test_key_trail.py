"""What a key did can be found: the runbook's query of the log and its command for the table, both followed here."""

import json
import re
import shlex
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from animal_store import api_key as api_keys
from animal_store import settings
from moto import mock_aws

from tests import functions
from tests.unit.conftest import Ask, Output
from tools import ROOT
from tools.local.tables import table_request

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

SECTION = (ROOT / "docs/runbook.md").read_text().split("### What did a key do?\n")[1].split("\n## ")[0]
EXAMPLE = "3f9a0c12d4e5"
REX = '{"name": "Rex", "categoryId": 1, "status": "sold"}'


@pytest.fixture
def stolen(ask: Ask, tables: "DynamoDBClient", output: Output) -> str:  # noqa: ARG001 - it takes what is printed
    """Give the id of a key that has done something beside another key."""
    key = api_keys.generate("test")
    item = {"hash": {"S": api_keys.digest(key)}, "label": {"S": "unit tests"}}
    tables.put_item(TableName=settings.API_KEYS_TABLE, Item=item)
    headers = {"Authorization": [f"Bearer {key}"]}
    ask("create_pet", body=REX)
    ask("create_pet", body=REX, headers=headers)
    ask("create_pet", body=REX, headers=headers | {"Idempotency-Key": ["key"]})
    ask("create_pet", body=REX)
    ask("list_pets", headers=headers)
    ask("get_pet", headers=headers)
    return api_keys.digest(key)[: api_keys.ID_LENGTH]


def test_log_tells_what_the_key_did(stolen: str, output: Output) -> None:
    query = SECTION.split("\n\n")[1]
    fields, condition, *_ = (line.strip(" |") for line in query.splitlines())
    name, value = condition.removeprefix("filter ").split(" = ")
    assert json.loads(value) == EXAMPLE

    found = [line for line in output.lines if line.get(name) == stolen]

    assert [(line["Operation"], line.get("PetId")) for line in found] == [
        ("createPet", 2),
        ("createPet", 3),
        ("listPets", None),
        ("getPet", None),
    ]
    # A field that no line has would be an empty column; the others are there when there is something to say.
    asked = set(fields.removeprefix("fields ").split(", ")) - {"@timestamp", "Code", "xray_trace_id"}
    assert asked <= {member for line in found for member in line}


def test_table_tells_what_the_key_added(stolen: str, tables: "DynamoDBClient") -> None:
    (command,) = re.findall(r"^(aws dynamodb query .*?)# \(AWS\)", SECTION.replace("\\\n", " "), re.MULTILINE)
    _, _, _, *options = shlex.split(command.replace('"$animals"', settings.ANIMALS_TABLE).replace(EXAMPLE, stolen))
    parameters: dict[str, Any] = {}
    for name, value in zip(options, [*options[1:], "--"], strict=True):
        if name.startswith("--") and name != "--output":
            parameter = "".join(word.capitalize() for word in name[2:].split("-"))
            given = json.loads(value) if value.startswith("{") else value
            parameters[parameter] = value.startswith("--") or given

    # The embedded store knows no filter: what it has is copied to moto.
    with mock_aws():
        dynamodb = boto3.client("dynamodb")
        dynamodb.create_table(**table_request(functions.TEMPLATE.tables["AnimalsTable"]))
        for item in functions.items(tables):
            dynamodb.put_item(TableName=settings.ANIMALS_TABLE, Item=item)
        items = dynamodb.query(**parameters)["Items"]

    assert [item["id"]["N"] for item in items] == ["2", "3"]
    assert all(item.keys() == {"id", "createdAt"} for item in items)
