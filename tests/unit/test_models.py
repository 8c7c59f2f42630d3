"""The compilation of the models."""

from typing import Annotated, NotRequired

import pytest
from animal_store.models import Name, compile_core_schema
from pydantic import Field, StringConstraints
from typing_extensions import TypedDict

NO_CONTROL = Field(pattern=r"^[^\x00-\x1f]*$")


class Required(TypedDict):
    """A member with a second pattern."""

    name: Annotated[Name, NO_CONTROL]


class Optional(TypedDict):
    """The same member, optional, with the pattern in pydantic's other form."""

    name: NotRequired[Annotated[Name, StringConstraints(pattern="^[a-z]*$")]]


@pytest.mark.parametrize("model", [Required, Optional])
def test_second_pattern_of_a_member_is_refused(model: type) -> None:
    """Pydantic would drop the first one silently."""
    with pytest.raises(TypeError, match="has two patterns"):
        compile_core_schema(model)
