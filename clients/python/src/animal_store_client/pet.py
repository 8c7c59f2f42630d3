"""An animal as the API returns it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from animal_store_client.errors import InvalidResponseError

PetStatus = Literal["available", "pending", "sold"]


@dataclass(frozen=True, slots=True)
class Pet:
    """An animal.

    Args:
        id: Given by the service.
        name: Exactly as it was created.
        category_id: Its category.
        status: A `PetStatus`, or one that is newer than this client; None if the animal has none.
        raw: The JSON object as received, with members that are newer than this client.
        replayed: True if `create` was answered from an earlier request with the same idempotency key.
    """

    id: int
    name: str
    category_id: int
    status: str | None = None
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    replayed: bool = field(default=False, repr=False, compare=False)

    @classmethod
    def from_json(cls, value: Any, *, replayed: bool = False) -> Self:
        """Read an animal of a response.

        Raises:
            InvalidResponseError: It is not one.
        """
        match value:
            case {"id": int(id_), "name": str(name), "categoryId": int(category_id), **others}:
                status = others.get("status")
                return cls(
                    id_,
                    name,
                    category_id,
                    None if status is None else str(status),
                    dict(value),
                    replayed,
                )
        raise InvalidResponseError(f"The response is not an animal: {str(value)[:200]}")
