"""Compiles models that cannot be compiled."""

from typing import Annotated, NotRequired

import pytest
from animal_store.models import Name, compile_core_schema
from pydantic import Field, StringConstraints
from typing_extensions import TypedDict

NO_CONTROL_CHARACTERS = Field(pattern=r"^[^\x00-\x1f]*$")


class Required(TypedDict):
    """A model whose member has two patterns."""

    name: Annotated[Name, NO_CONTROL_CHARACTERS]


class Optional(TypedDict):
    """A model whose optional member has two patterns, the second in another notation."""

    name: NotRequired[Annotated[Name, StringConstraints(pattern="^[a-z]*$")]]


@pytest.mark.parametrize("model", [Required, Optional])
def test_compiling_a_model_whose_member_has_two_patterns_fails(model: type) -> None:
    """Without this check, pydantic would silently ignore the first pattern."""
    with pytest.raises(TypeError, match="has two patterns"):
        compile_core_schema(model)
