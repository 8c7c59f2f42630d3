"""`POST /v1/pets`: createPet adds an animal under a new id."""

from typing import TYPE_CHECKING

from animal_store.operation import operation
from animal_store.pets import PETS
from animal_store.request import Caller, Request
from animal_store.response import Response
from animal_store.validators import Validator

if TYPE_CHECKING:
    from animal_store.models import NewPet

_NEW_PET: "Validator[NewPet]" = Validator("NewPet")


@operation("createPet")
def handler(request: Request, caller: Caller) -> Response:
    """Add the animal in the body and return it.

    For 24 hours, further requests of the caller with the same Idempotency-Key add nothing.
    """
    idempotency_key = request.idempotency_key()
    new_pet = request.body(_NEW_PET)
    pet, is_replayed = PETS.create(new_pet, caller, idempotency_key)
    headers = {"Idempotency-Replayed": "true"} if is_replayed else {}
    return Response(201, pet, headers)
