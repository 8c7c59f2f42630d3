"""The models: what of the store's JSON becomes an animal, and the compiled form that ships."""

import ast
import importlib
import sys
from types import ModuleType

import pytest
from animal_store import models, validators
from pydantic_core import ValidationError

REX = b'{"Item": {"pk": {"S": "pet"}, "id": {"N": "1"}, "name": {"S": "Rex"}, "categoryId": {"N": "9007199254740993"}}}'


@pytest.mark.parametrize("change", [(b'"N": "1"', b'"S": "1"'), (b'"S": "Rex"', b'"N": "1"'), (b'"id"', b'"ID"')])
def test_item_of_another_shape_is_refused(change: tuple[bytes, bytes]) -> None:
    assert validators.PET_ITEM.json(REX)["Item"] == {"id": 1, "name": "Rex", "categoryId": 2**53 + 1}

    with pytest.raises(ValidationError):
        validators.PET_ITEM.json(REX.replace(*change))


def test_compiled_schemas_are_plain_data_and_those_in_the_layer_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    schemas = models.compile_core_schemas()
    assert ast.literal_eval(repr(schemas)) == schemas
    assert not any(f"'{reference}'" in repr(schemas) for reference in ("ref", "definitions", "definition-ref"))

    shipped = ModuleType("animal_store.core_schemas")
    shipped.CORE_SCHEMAS = {name: {"type": "int"} for name in schemas}  # type: ignore[attr-defined]
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "animal_store.core_schemas", shipped)
        patch.setitem(sys.modules, "animal_store.models", None)  # not shipped
        patch.delitem(sys.modules, "animal_store.validators")
        fresh = importlib.import_module("animal_store.validators")
    assert fresh.NEW_PET.python(7) == 7
