"""SECURITY.md says what a stolen key can do; what it can do follows from the roles of the functions."""

import json
import re
from typing import Any

from tests.template.conftest import Template
from tools import ROOT

# In the words of SECURITY.md. An action that is not here is a new thing to say there.
VERBS = {
    "dynamodb:Query": "list",
    "dynamodb:Scan": "list",
    "dynamodb:GetItem": "read",
    "dynamodb:BatchGetItem": "read",
    "dynamodb:PutItem": "add",
    "dynamodb:UpdateItem": "change",
    "dynamodb:DeleteItem": "delete",
}
# createPet takes the next id with it. That no animal is written over is tested in tests/unit/test_dynamodb.py.
TAKES_IDS = ("CreatePetRole", "dynamodb:UpdateItem")


def allowed(stack: Template, table: str) -> set[tuple[str, str]]:
    """List which role allows which action on a table."""
    return {
        (name, action)
        for name, resource in stack["Resources"].items()
        if resource["Type"] == "AWS::IAM::Role"
        for policy in resource["Properties"].get("Policies", ())
        for statement in policy["PolicyDocument"]["Statement"]
        if re.search(rf"\b{table}\b", json.dumps(statement["Resource"])) or statement["Resource"] == "*"
        for action in _list(statement["Action"])
        if not action.startswith("xray:")
    }


def _list(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]


def test_a_stolen_key_can_do_what_is_said_and_no_more(stack: Template) -> None:
    text = " ".join((ROOT / "SECURITY.md").read_text("utf-8").split())
    found = re.search(r"\*\*A stolen key\*\* can (.*?), until .*? It can (.*?) nothing", text)
    assert found
    can, cannot = (set(re.findall(r"\b(?:list|read|add|change|delete)\b", part)) for part in found.groups())

    verbs = {VERBS[action] for role, action in allowed(stack, "AnimalsTable") - {TAKES_IDS}}

    assert verbs == can
    assert cannot == set(VERBS.values()) - can


def test_no_key_opens_the_table_of_keys(stack: Template) -> None:
    assert {action for _, action in allowed(stack, "ApiKeysTable")} == {"dynamodb:GetItem"}
