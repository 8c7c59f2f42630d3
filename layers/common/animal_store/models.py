"""Models of the interface's resources and of DynamoDB's responses.

The models are typed dictionaries, so a validated value can be written as JSON without conversion.
The dictionary of an animal without a status has no entry `status`. No code that runs in AWS imports
this module.
"""

from typing import Annotated, Any, NotRequired

from pydantic import AliasPath, ConfigDict, Field, TypeAdapter, with_config
from typing_extensions import TypedDict  # before Python 3.12, pydantic needs this TypedDict

from animal_store.constraints import NOT_BLANK, PetStatus

Id = Annotated[int, Field(ge=1, le=2**63 - 1)]
Int64 = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]
Name = Annotated[str, Field(min_length=1, max_length=256, pattern=NOT_BLANK)]


@with_config(ConfigDict(strict=True))
class NewPet(TypedDict):
    """An animal as a client sends it. A string, boolean or fraction is not taken for an integer."""

    name: Name
    categoryId: Int64
    status: NotRequired[PetStatus]


class Pet(TypedDict):
    """An animal as the service returns it.

    The validation aliases are paths into DynamoDB's JSON (`{"id": {"N": "7"}, ...}`). So pydantic
    turns a response of DynamoDB into animals in one step, without a detour through `Decimal`.
    """

    id: Annotated[Int64, Field(validation_alias=AliasPath("id", "N"))]
    name: Annotated[str, Field(validation_alias=AliasPath("name", "S"))]
    categoryId: Annotated[Int64, Field(validation_alias=AliasPath("categoryId", "N"))]
    # Accept any text: a newer version may have stored a status that this one doesn't know.
    status: NotRequired[Annotated[str, Field(validation_alias=AliasPath("status", "S"))]]


class Error(TypedDict):
    """The body of an error response.

    `code` is for programs (`errors` lists the functions' codes), `message` is for people, and
    `status` repeats the HTTP status.
    """

    code: str
    message: str
    status: int


class Number(TypedDict):
    """An integer in DynamoDB's JSON."""

    N: int


class ApiKey(TypedDict):
    """The attributes that functions read in an API key's record. Times are seconds since 1970.

    `expires` and `revoked` have no alias path. With a path, a value of another type would count as
    absent. For instance, if somebody set `expires` to `{"S": "2026-01-01"}` by hand, the key would
    never expire. Any value of `revoked` revokes the key.
    """

    label: Annotated[str, Field(validation_alias=AliasPath("label", "S"))]
    expires: NotRequired[Number]
    revoked: NotRequired[Any]


class Counter(TypedDict):
    """The attribute of a counter: the last id assigned."""

    value: Annotated[Id, Field(validation_alias=AliasPath("value", "N"))]


class PetQueryResponse(TypedDict):
    """DynamoDB's response to a Query for animals."""

    Items: list[Pet]


class PetItemResponse(TypedDict):
    """DynamoDB's response to a GetItem for an animal."""

    Item: NotRequired[Pet]


class ApiKeyItemResponse(TypedDict):
    """DynamoDB's response to a GetItem for an API key."""

    Item: NotRequired[ApiKey]


class CounterResponse(TypedDict):
    """DynamoDB's response to an UpdateItem of a counter."""

    Attributes: Counter


VALIDATED_MODELS = (
    NewPet,
    PetQueryResponse,
    PetItemResponse,
    ApiKeyItemResponse,
    CounterResponse,
)
"""The models that need a `Validator`."""


def compile_core_schemas() -> dict[str, Any]:
    """Compile the models in `VALIDATED_MODELS` into pydantic_core's schemas, which are plain data.

    Returns:
        Each model's schema, under the model's name.
    """
    return {
        model.__name__: _without_pydantic_keys(TypeAdapter(model).core_schema)
        for model in VALIDATED_MODELS
    }


def _without_pydantic_keys(schema: Any) -> Any:
    """Return a schema without classes, references and metadata, which these models do not need."""
    match schema:
        case dict():
            return {
                key: _without_pydantic_keys(value)
                for key, value in schema.items()
                if key not in {"cls", "metadata", "ref"}
            }
        case list() | tuple():
            return [_without_pydantic_keys(value) for value in schema]
    return schema
