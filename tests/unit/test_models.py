"""The models: what of the store's JSON becomes an animal, and the compiled form that ships."""

import ast
import importlib
import sys
from types import ModuleType
from typing import Any

import pytest
from animal_store import models, validators
from animal_store.validators import API_KEY_ITEM, PET_ITEM, PET_QUERY
from pydantic_core import ValidationError

REX = b'{"pk": {"S": "pet"}, "id": {"N": "1"}, "name": {"S": "Rex"}, "categoryId": {"N": "9223372036854775807"}'


def test_item_becomes_an_animal_without_what_is_only_for_the_store() -> None:
    body = (
        b'{"Item": '
        + REX
        + b', "status": {"S": "sold"}, "token": {"S": "0a"}, "createdBy": {"S": "0a"}, "createdAt": {"N": "1"}}}'
    )

    assert PET_ITEM.json(body)["Item"] == {"id": 1, "name": "Rex", "categoryId": 2**63 - 1, "status": "sold"}


def test_absent_status_stays_absent() -> None:
    assert PET_ITEM.json(b'{"Item": ' + REX + b"}}")["Item"] == {"id": 1, "name": "Rex", "categoryId": 2**63 - 1}


def test_absent_item_stays_absent() -> None:
    assert PET_ITEM.json(b"{}") == {}


def test_animals_of_a_query_keep_their_order() -> None:
    items = b", ".join(REX.replace(b'"1"', b'"%d"' % number) + b"}" for number in (3, 1, 2))

    assert [pet["id"] for pet in PET_QUERY.json(b'{"Items": [' + items + b'], "Count": 3}')["Items"]] == [3, 1, 2]


@pytest.mark.parametrize("change", [(b'"N": "1"', b'"S": "1"'), (b'"S": "Rex"', b'"N": "1"'), (b'"id"', b'"ID"')])
def test_item_of_another_shape_is_refused(change: tuple[bytes, bytes]) -> None:
    with pytest.raises(ValidationError):
        PET_ITEM.json(b'{"Item": ' + REX.replace(*change) + b"}}")


def test_key_has_its_label_and_times() -> None:
    body = b'{"Item": {"hash": {"S": "0"}, "label": {"S": "x"}, "expires": {"N": "5"}, "revoked": {"N": "4"}}}'

    assert API_KEY_ITEM.json(body)["Item"] == {"label": "x", "expires": {"N": 5}, "revoked": {"N": "4"}}


def test_compiled_schemas_are_plain_data_that_a_source_file_can_hold() -> None:
    schemas = models.compile_core_schemas()

    assert set(schemas) == {"NewPet", "PetQuery", "PetItem", "ApiKeyItem"}
    assert ast.literal_eval(repr(schemas)) == schemas


def test_compiled_schemas_hold_no_reference() -> None:
    def keys(schema: Any) -> set[str]:
        if isinstance(schema, dict):
            return (
                {"ref"} & schema.keys()
                | {kind for kind in [schema.get("type")] if kind in ("definitions", "definition-ref")}
                | {key for value in schema.values() for key in keys(value)}
            )
        return {key for value in schema for key in keys(value)} if isinstance(schema, list) else set()

    assert keys(models.compile_core_schemas()) == set()


def test_schemas_beside_the_module_are_used_where_there_are_any(monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = ModuleType("animal_store.core_schemas")
    shipped.CORE_SCHEMAS = {name: {"type": "int"} for name in validators.CORE_SCHEMAS}  # type: ignore[attr-defined]
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "animal_store.core_schemas", shipped)
        patch.setitem(sys.modules, "animal_store.models", None)  # not shipped
        patch.delitem(sys.modules, "animal_store.validators")
        fresh = importlib.import_module("animal_store.validators")

    assert fresh is not validators
    assert fresh.NEW_PET.python(7) == 7
