"""An error of the store whose body is cut off or garbled on its way: nobody knows what it was."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from animal_store import catalogue
from animal_store.auth import Caller
from animal_store.errors import ServiceUnavailable

from tests.unit.fault_injection import Wire, answer

if TYPE_CHECKING:
    from animal_store.models import NewPet

pytestmark = pytest.mark.usefixtures("tables", "budget")

CALLER = Caller("0" * 64, "unit tests")
REX: "NewPet" = {"name": "Rex", "categoryId": 1}

CALLS: dict[str, Callable[[], Any]] = {
    "GetItem": lambda: catalogue.get_pet(1),
    "Query": lambda: catalogue.list_pets(20, None, after=0),
    "UpdateItem": lambda: catalogue.create_pet(REX, CALLER, None),
    "PutItem": lambda: catalogue.create_pet(REX, CALLER, None),
    "TransactWriteItems": lambda: catalogue.create_pet(REX, CALLER, "key"),
}


@pytest.mark.parametrize("body", [b'{"__type": "Condition', b"", b"<html>"], ids=["cut off", "empty", "no JSON"])
@pytest.mark.parametrize("operation", CALLS)
def test_unreadable_error_is_unavailability(operation: str, body: bytes, wire: Wire) -> None:
    wire.fail(operation, *[answer(400, body)] * 3)

    with pytest.raises(ServiceUnavailable):
        CALLS[operation]()
