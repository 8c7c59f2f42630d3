"""An animal, and a page of animals, as the API returns them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from animal_store_client.errors import InvalidResponseError

PetStatus = Literal["available", "pending", "sold"]
AnyStatus = PetStatus | str | None
"""Any text, because a status may be newer than this client; None for no status."""


@dataclass(frozen=True, slots=True)
class Pet:
    """An animal.

    Args:
        id: The number that the service gave the animal.
        name: The name, exactly as it was sent when the animal was created.
        category_id: The number of the animal's category.
        status: The animal's availability; None if it was created without a status.
        raw: The JSON object as received; it may have members that are newer than this client.
        replayed: True if an earlier request with the same idempotency key added the animal.
        request_id: The id of the request that returned the animal, for questions to support.
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
            case {"id": bool()} | {"categoryId": bool()}:
                pass  # a bool is an int in Python, but not in JSON
            case {"id": int(id_), "name": str(name), "categoryId": int(category_id)}:
                rest = value.get("status"), dict(value), replayed, request_id
                return cls(id_, name, category_id, *rest)
        raise InvalidResponseError(f"The response is not an animal: {value!r:.200}")


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the list.

    Args:
        pets: The animals on the page.
        cursor: The value to pass to `pages` to resume after this page; None on the last page.
        request_id: The id of the request, for questions to support.
    """

    pets: tuple[Pet, ...]
    cursor: str | None
    request_id: str = field(default="", repr=False, compare=False)
