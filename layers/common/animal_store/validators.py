"""Validates data from outside: clients' bodies and the store's responses.

Compiling a model needs pydantic, whose import would make a cold start take 1.5 times as many
instructions. So `make build` puts the compiled schemas next to this module. A checkout doesn't
have them: there, this module compiles the models when it is imported.
"""

from typing import Generic, TypeVar, cast

from pydantic_core import SchemaValidator

try:
    from animal_store.core_schemas import (  # type: ignore[import,unused-ignore]
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

    def validate(self, value: object) -> Model:
        """Validate a Python value; return it as the model.

        Raises:
            ValidationError: The value is not valid (pydantic_core's exception).
        """
        return cast("Model", self._validator.validate_python(value))

    def validate_json(self, text: bytes) -> Model:
        """Validate JSON; return it as the model.

        Raises:
            ValidationError: The text is not JSON, or is not valid (pydantic_core's exception).
        """
        return cast("Model", self._validator.validate_json(text))
