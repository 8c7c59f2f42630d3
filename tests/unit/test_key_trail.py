"""What a key did can be found: the runbook's query of the log and its command for the table."""

import io
import json
import re
from typing import TYPE_CHECKING

import pytest
from animal_store import api_key

from tests import functions
from tests.unit.conftest import Ask, lines
from tools import ROOT

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

SECTION = (ROOT / "docs/runbook.md").read_text().split("### What did a key do?\n")[1].split("\n## ")[0]
EXAMPLE = "3f9a0c12d4e5"


@pytest.fixture
def stolen(ask: Ask, tables: "DynamoDBClient", output: io.StringIO) -> str:  # noqa: ARG001 - it takes what is printed
    """Give the id of a key that has done something beside another key."""
    key = api_key.generate("test")
    functions.add_key(tables, key)
    headers = {"Authorization": [f"Bearer {key}"]}
    ask("create_pet")
    ask("create_pet", headers=headers)
    for _ in range(2):
        ask("create_pet", headers=headers | {"Idempotency-Key": ["key"]})
    ask("list_pets", headers=headers)
    ask("get_pet", headers=headers)
    return api_key.digest(key)[: api_key.ID_LENGTH]


def test_log_tells_what_the_key_did(stolen: str, output: io.StringIO) -> None:
    fields, condition, *_ = (line.strip(" |") for line in SECTION.split("\n\n")[1].splitlines())
    name, value = condition.removeprefix("filter ").split(" = ")
    assert json.loads(value) == EXAMPLE

    found = [line for line in lines(output) if line.get(name) == stolen]

    done = [("createPet", 7), ("createPet", 8), ("createPet", 8), ("listPets", None), ("getPet", None)]
    assert [(line["Operation"], line.get("PetId")) for line in found] == done
    # A field that no line has would be an empty column; the others are there when there is something to say.
    asked = set(fields.removeprefix("fields ").split(", ")) - {"@timestamp", "Code", "xray_trace_id"}
    assert asked <= {member for line in found for member in line}


def test_table_tells_what_the_key_added(stolen: str, tables: "DynamoDBClient") -> None:
    (name,) = re.findall(r"--filter-expression '(\w+) = :key'", SECTION)
    (columns,) = re.findall(r"--projection-expression '(.+)'", SECTION)

    added = [item for item in functions.items(tables) if item.get(name) == {"S": stolen}]

    assert [item["id"]["N"] for item in added] == ["7", "8"]
    assert all(item.keys() >= set(columns.split(", ")) for item in added)
