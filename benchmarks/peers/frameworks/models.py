"""The models that the frameworks share, as their documentation teaches."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

PetStatus = Literal["available", "pending", "sold"]
Int64 = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]


class NewPet(BaseModel):
    model_config = ConfigDict(strict=True)
    name: Annotated[str, Field(min_length=1, max_length=256)]
    categoryId: Int64
    status: PetStatus | None = None


class Pet(NewPet):
    id: Int64
