"""`GET /v1/pets/{petId}`: getPet reads an animal. The operation is deprecated: use listPets."""

from animal_store.operation import Deprecation, operation
from animal_store.pets import PETS
from animal_store.request import Caller, NotFound, Request
from animal_store.response import Response

# The operation was deprecated on 5 December 2025, and will be removed five years later.
_DEPRECATION = Deprecation(since=1764892800, sunset="Thu, 05 Dec 2030 00:00:00 GMT")


@operation("getPet", parameters="ignored", deprecation=_DEPRECATION)
def handler(request: Request, _caller: Caller) -> Response:
    """Return the animal with the id in the path."""
    pet = PETS.get(request.identifier("petId"))
    if pet is None:
        raise NotFound
    return Response(200, pet)
