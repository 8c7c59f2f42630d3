"""getPet, `GET /v1/pets/{petId}`: one animal. Deprecated in favour of `GET /v1/pets?status=...`."""

from animal_store.errors import NotFound
from animal_store.operation import Deprecation, Response, operation
from animal_store.pets import PETS
from animal_store.request import Request, positive_int64

# Deprecated on 5 December 2025; removed five years later.
_DEPRECATION = Deprecation(since=1764892800, sunset="Thu, 05 Dec 2030 00:00:00 GMT")


@operation("getPet", _DEPRECATION)
def handler(request: Request) -> Response:
    """Return the animal; no animal has an id that is not a positive int64."""
    pet_id = positive_int64(request.path_parameter("petId"))
    pet = None if pet_id is None else PETS.get(pet_id)
    if pet is None:
        raise NotFound
    return Response(200, pet)
