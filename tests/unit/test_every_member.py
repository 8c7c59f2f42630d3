"""Every member of an animal that openapi.yaml knows survives the way into the store and out of it."""

import json
from typing import Any

from tests import openapi
from tests.unit.conftest import Ask


def example(schema: dict[str, Any]) -> Any:
    return schema["examples"][0]


def test_an_animal_with_every_member_is_kept_whole(ask: Ask) -> None:
    new = {name: example(schema) for name, schema in openapi.schema("NewPet")["properties"].items()}
    pet = {"id": 1, **new}

    created = ask("create_pet", body=json.dumps(new))

    assert created.body == pet
    assert ask("list_pets").body == [pet]
    assert ask("list_pets", query={"status": [new["status"]]}).body == [pet]
    assert ask("get_pet", pet_id="1").body == pet
