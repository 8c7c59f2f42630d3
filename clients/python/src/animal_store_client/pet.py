"""An animal, and a page of them, as the API returns them."""

import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from animal_store_client.errors import InvalidResponseError

PetStatus = Literal["available", "pending", "sold"]
AnyStatus = PetStatus | str | None
"""A status that may be newer than this client; None for none."""


@dataclass(frozen=True, slots=True)
class Pet:
    """An animal.

    Args:
        id: Given by the service.
        name: Exactly as it was created.
        category_id: Its category.
        status: Its availability.
        raw: The JSON object as received, with members that are newer than this client.
        replayed: True if `create` was answered from an earlier request with the same key.
        request_id: Of the response that it was in, to quote to support.
    """

    id: int
    name: str
    category_id: int
    status: AnyStatus = None
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    replayed: bool = field(default=False, repr=False, compare=False)
    request_id: str = field(default="", repr=False, compare=False)

    @classmethod
    def from_json(cls, value: Any, *, replayed: bool = False, request_id: str = "") -> Self:
        """Read an animal from a response, or raise InvalidResponseError."""
        match value:
            case {"id": int(id_), "name": str(name), "categoryId": int(category_id)}:
                # Python counts True as an integer; JSON does not.
                if type(id_) is type(category_id) is int:
                    status = None if value.get("status") is None else str(value["status"])
                    rest = dict(value), replayed, request_id
                    return cls(id_, name, category_id, status, *rest)
        raise InvalidResponseError(f"The response is not an animal: {reprlib.repr(value)}")


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the list.

    Args:
        pets: The animals.
        cursor: What `pages` takes to go on after this page; None after the last one.
        request_id: Of the response, to quote to support.
    """

    pets: tuple[Pet, ...]
    cursor: str | None
    request_id: str = field(default="", repr=False, compare=False)
