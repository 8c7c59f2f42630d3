"""The resources of the interface as pydantic models: `NewPet` comes in, `Pet` and `Error` go out."""

from typing import Annotated, Literal

from pydantic import AliasPath, BaseModel, ConfigDict, Field, TypeAdapter

PetStatus = Literal["available", "pending", "sold"]

Int64 = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]
Name = Annotated[str, Field(min_length=1, max_length=256, pattern=r"\S")]


class NewPet(BaseModel):
    """An animal as a client sends it. Strict: no text, boolean or fraction is taken for an integer."""

    model_config = ConfigDict(strict=True, frozen=True)

    name: Name
    categoryId: Int64  # noqa: N815 - the interface's own spelling
    # None stands for "absent". The type leaves it out so that an explicit null in the body is refused.
    status: PetStatus = None  # type: ignore[assignment]


class Pet(BaseModel):
    """An animal as the service answers it.

    The validation aliases are DynamoDB's JSON (`{"id": {"N": "7"}, ...}`): a response of the store becomes animals in
    one step, without the SDK's own decoding into `Decimal` and back.
    """

    model_config = ConfigDict(frozen=True, validate_by_name=True)

    id: Int64 = Field(validation_alias=AliasPath("id", "N"))
    name: str = Field(validation_alias=AliasPath("name", "S"))
    categoryId: Int64 = Field(validation_alias=AliasPath("categoryId", "N"))  # noqa: N815
    status: PetStatus = Field(default=None, validation_alias=AliasPath("status", "S"))  # type: ignore[arg-type]


class Error(BaseModel):
    """The body of every error answer.

    `code` is machine-readable (`errors.STATUS_OF_CODE`), `message` is for people, `status` repeats the HTTP status.
    """

    code: str
    message: str
    status: int


_PETS = TypeAdapter(list[Pet])


def render_pet(pet: Pet) -> bytes:
    """Write an animal as JSON; an absent status stays absent."""
    return pet.model_dump_json(exclude_none=True).encode()


def render_pets(pets: list[Pet]) -> bytes:
    """Write a list of animals as a JSON array."""
    return _PETS.dump_json(pets, exclude_none=True)
