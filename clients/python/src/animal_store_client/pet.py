"""An animal, and a page of them, as the API returns them."""

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
    """

    id: int
    name: str
    category_id: int
    status: AnyStatus = None
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    replayed: bool = field(default=False, repr=False, compare=False)

    @classmethod
    def from_json(cls, value: Any, *, replayed: bool = False) -> Self:
        """Read an animal from a response, or raise InvalidResponseError."""
        match value:
            case {"id": int(id_), "name": str(name), "categoryId": int(category_id)}:
                # Python counts True as an integer; JSON does not.
                if type(id_) is type(category_id) is int:
                    status = None if value.get("status") is None else str(value["status"])
                    return cls(id_, name, category_id, status, dict(value), replayed)
        raise InvalidResponseError(f"The response is not an animal: {str(value)[:200]}")


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the list, and what `pages` takes to go on after it; None after the last one."""

    pets: tuple[Pet, ...]
    cursor: str | None
