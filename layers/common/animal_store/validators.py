"""The compiled validators of what comes from outside: a client's body and the store's responses.

Compiling a model into a core schema needs all of pydantic: half a cold start more. `make
build` therefore puts the compiled schemas next to this module; without them (in the source tree)
the same function compiles them here.
"""

from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from pydantic_core import SchemaValidator

if TYPE_CHECKING:
    from animal_store.models import ApiKeyItem, NewPet, PetItem, PetQuery

try:
    from animal_store.core_schemas import (  # type: ignore[import-not-found,unused-ignore]
        CORE_SCHEMAS,
    )
except ModuleNotFoundError:
    from animal_store.models import compile_core_schemas

    CORE_SCHEMAS = compile_core_schemas()

Model = TypeVar("Model")


class Validator(Generic[Model]):
    """Turns untrusted input into a model.

    Args:
        core_schema: The compiled model.
    """

    def __init__(self, core_schema: Any) -> None:
        self._validator = SchemaValidator(core_schema)

    def python(self, value: object) -> Model:
        """Validate a Python value; raises pydantic_core's ValidationError."""
        return cast("Model", self._validator.validate_python(value))

    def json(self, text: bytes) -> Model:
        """Validate JSON; raises pydantic_core's ValidationError."""
        return cast("Model", self._validator.validate_json(text))


NEW_PET: "Validator[NewPet]" = Validator(CORE_SCHEMAS["NewPet"])
PET_QUERY: "Validator[PetQuery]" = Validator(CORE_SCHEMAS["PetQuery"])
PET_ITEM: "Validator[PetItem]" = Validator(CORE_SCHEMAS["PetItem"])
API_KEY_ITEM: "Validator[ApiKeyItem]" = Validator(CORE_SCHEMAS["ApiKeyItem"])
