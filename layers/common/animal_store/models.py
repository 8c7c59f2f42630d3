"""The resources of the interface, and the responses of the store that are read into them.

They are typed dictionaries: what validation lets through is JSON already, and an absent `status`
is simply not there. Whoever reads one that comes from outside makes a `Validator` by its name.
Nothing that runs in AWS imports this module.
"""

from typing import Annotated, Any, NotRequired

from pydantic import AliasPath, ConfigDict, Field, TypeAdapter, with_config
from typing_extensions import TypedDict  # pydantic needs it before Python 3.12

from animal_store.patterns import NOT_BLANK
from animal_store.pet_status import PetStatus

Int64 = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]
Name = Annotated[str, Field(min_length=1, max_length=256, pattern=NOT_BLANK)]


@with_config(ConfigDict(strict=True))
class NewPet(TypedDict):
    """An animal as a client sends it. No text, boolean or fraction is taken for an integer."""

    name: Name
    categoryId: Int64
    status: NotRequired[PetStatus]


class Pet(TypedDict):
    """An animal as the service returns it.

    The validation aliases are DynamoDB's JSON (`{"id": {"N": "7"}, ...}`): a response of the store
    becomes animals in one step, without the SDK's own decoding into `Decimal` and back.
    """

    id: Annotated[Int64, Field(validation_alias=AliasPath("id", "N"))]
    name: Annotated[str, Field(validation_alias=AliasPath("name", "S"))]
    categoryId: Annotated[Int64, Field(validation_alias=AliasPath("categoryId", "N"))]
    # Any text: a newer version may have stored a status that this one does not know.
    status: NotRequired[Annotated[str, Field(validation_alias=AliasPath("status", "S"))]]


class Error(TypedDict):
    """The body of every error response.

    `code` is machine-readable (`errors.STATUS_OF_CODE`), `message` is for people, `status` repeats
    the HTTP status.
    """

    code: str
    message: str
    status: int


class Number(TypedDict):
    """An integer in DynamoDB's JSON."""

    N: int


class ApiKey(TypedDict):
    """What functions read of an API key's record. Times are seconds since 1970.

    `expires` and `revoked` have no alias path: with one, a value of another type (a date written by
    hand) would pass for an absent one, and the key would stay valid. The value of `revoked` does
    not matter.
    """

    label: Annotated[str, Field(validation_alias=AliasPath("label", "S"))]
    expires: NotRequired[Number]
    revoked: NotRequired[Any]


class PetQuery(TypedDict):
    """DynamoDB's response to a Query for animals."""

    Items: list[Pet]


class PetItem(TypedDict):
    """DynamoDB's response to a GetItem for an animal."""

    Item: NotRequired[Pet]


class ApiKeyItem(TypedDict):
    """DynamoDB's response to a GetItem for an API key."""

    Item: NotRequired[ApiKey]


def compile_core_schemas() -> dict[str, Any]:
    """Compile what comes from outside, by name, into pydantic_core's schemas: plain data."""
    return {
        model.__name__: _plain(TypeAdapter(model).core_schema)
        for model in (NewPet, PetQuery, PetItem, ApiKeyItem)
    }


def _plain(schema: Any) -> Any:
    """Leave out what only pydantic itself reads: classes, references and metadata."""
    match schema:
        case dict():
            return {
                key: _plain(value)
                for key, value in schema.items()
                if key not in {"cls", "metadata", "ref"}
            }
        case list() | tuple():
            return [_plain(value) for value in schema]
    return schema
