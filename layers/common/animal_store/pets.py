"""The animals, as the functions of their operations use them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from animal_store.catalogue import Collection
from animal_store.validators import Validator

if TYPE_CHECKING:
    from animal_store.models import NewPet, Pet

PETS: Collection[NewPet, Pet] = Collection(
    "pet", "counter", Validator("PetQuery"), Validator("PetItem")
)
