"""The compiled validators of what comes from outside: a client's body and the store's responses."""

from typing import Generic, TypeVar, cast

from pydantic import TypeAdapter
from pydantic_core import SchemaValidator  # noqa: TC002

from animal_store.models import ApiKeyItem, NewPet, PetItem, PetQuery

Model = TypeVar("Model")


class Validator(Generic[Model]):
    """Turns untrusted input into a model.

    Args:
        model: The model.
    """

    def __init__(self, model: type[Model]) -> None:
        self._validator = cast("SchemaValidator", TypeAdapter(model).validator)

    def python(self, value: object) -> Model:
        """Validate a Python value; raises pydantic_core's ValidationError."""
        return cast("Model", self._validator.validate_python(value))

    def json(self, text: bytes) -> Model:
        """Validate JSON; raises pydantic_core's ValidationError."""
        return cast("Model", self._validator.validate_json(text))


NEW_PET = Validator(NewPet)
PET_QUERY = Validator(PetQuery)
PET_ITEM = Validator(PetItem)
API_KEY_ITEM = Validator(ApiKeyItem)
