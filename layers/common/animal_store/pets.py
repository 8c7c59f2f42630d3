"""The catalogue of animals, for the functions that list, read or add animals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from animal_store.catalogue import Catalogue
from animal_store.validators import Validator

if TYPE_CHECKING:
    from animal_store.models import NewPet, Pet

PETS: Catalogue[NewPet, Pet] = Catalogue(
    partition="pet",
    counter="counter",
    item_response=Validator("PetItemResponse"),
    query_response=Validator("PetQueryResponse"),
)
