"""SECURITY.md says what a stolen key can do; what it can do follows from the roles of the functions."""

import json
import re

from tests.template.conftest import Template, as_list, statements
from tools import ROOT

# In the words of SECURITY.md. An action that is not here is a new thing to say there.
VERBS = {
    "dynamodb:Query": "list",
    "dynamodb:GetItem": "read",
    "dynamodb:PutItem": "add",
    "dynamodb:UpdateItem": "change",
    "dynamodb:DeleteItem": "delete",
}


def allowed(stack: Template, table: str) -> set[tuple[str, str]]:
    return {
        (role, action)
        for role, statement in statements(stack)
        if re.search(rf'\b{table}\b|^"\*"$', json.dumps(statement["Resource"]))
        for action in as_list(statement["Action"])
        if not action.startswith("xray:")
    }


def test_a_stolen_key_can_do_what_is_said_and_no_more(stack: Template) -> None:
    text = " ".join((ROOT / "SECURITY.md").read_text("utf-8").split())
    found = re.search(r"\*\*A stolen key\*\* can (.*?), until .*? It can (.*?) nothing", text)
    assert found
    can, cannot = (set(re.findall(r"\b(?:list|read|add|change|delete)\b", part)) for part in found.groups())
    # createPet takes the next id with it. That no animal is written over is tested in tests/unit/test_catalogue.py.
    takes_ids = ("CreatePetRole", "dynamodb:UpdateItem")

    assert {VERBS[action] for _, action in allowed(stack, "AnimalsTable") - {takes_ids}} == can
    assert cannot == set(VERBS.values()) - can
    # And reaches the table of keys with no key.
    assert {action for _, action in allowed(stack, "ApiKeysTable")} == {"dynamodb:GetItem"}
