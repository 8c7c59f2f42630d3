"""The compiled validators of what comes from outside: a client's body and the store's responses.

Compiling a model into a core schema needs all of pydantic: half a cold start more. `make
build` therefore puts the compiled schemas next to this module; without them (in the source tree)
the same function compiles them here.
"""

from typing import Generic, TypeVar, cast

from pydantic_core import SchemaValidator

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
        name: The model's name in `models`.
    """

    def __init__(self, name: str) -> None:
        self._validator = SchemaValidator(CORE_SCHEMAS[name])

    def python(self, value: object) -> Model:
        """Validate a Python value; raises pydantic_core's ValidationError."""
        return cast("Model", self._validator.validate_python(value))

    def json(self, text: bytes) -> Model:
        """Validate JSON; raises pydantic_core's ValidationError."""
        return cast("Model", self._validator.validate_json(text))
