"""listPets, `GET /v1/pets`: one page of animals by ascending id."""

from animal_store import cursor
from animal_store.operation import Response, operation
from animal_store.pet_status import PET_STATUSES
from animal_store.pets import PETS
from animal_store.request import Request


@operation("listPets")
def handler(request: Request) -> Response:
    """Return a page of animals; a `Link` header (RFC 8288) leads to the next one, if any."""
    limit = request.integer("limit", minimum=1, maximum=100, default=20)
    status = request.choice("status", PET_STATUSES)
    start = request.parameter("cursor")
    request.refuse_other_parameters()
    after = 0 if start is None else cursor.decode(start, status)
    pets, has_next = PETS.page(limit, after, ("status", status) if status else None)
    headers = {}
    if has_next:
        following = cursor.encode(pets[-1]["id"], status)
        url = request.collection_url(limit=limit, status=status, cursor=following)
        headers["Link"] = f'<{url}>; rel="next"'
    return Response(200, pets, headers)
