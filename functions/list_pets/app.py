"""`GET /v1/pets`: listPets lists a page of animals by ascending id."""

from animal_store import paging
from animal_store.constraints import PET_STATUSES
from animal_store.operation import operation
from animal_store.pets import PETS
from animal_store.request import Caller, Request
from animal_store.response import Response


@operation("listPets", parameters=(*paging.PARAMETERS, "status"))
def handler(request: Request, _caller: Caller) -> Response:
    """Return a page of animals; a `Link` header (RFC 8288) leads to the next page, if any."""
    status = request.choice("status", PET_STATUSES)
    return paging.page(request, PETS, status=status)
