"""listPets, `GET /v1/pets`: one page of animals by ascending id."""

from typing import Annotated

from animal_store import catalogue, cursor
from animal_store.models import PetStatus, render_pets
from animal_store.operation import Response, operation
from animal_store.request import Digits, Request
from pydantic import BaseModel, Field


class Parameters(BaseModel):
    """The query string."""

    limit: Annotated[Digits, Field(ge=1, le=100)] = 20
    status: PetStatus | None = None
    cursor: str | None = None


@operation("listPets")
def handler(request: Request) -> Response:
    """Answer a full page, or the last one; a `Link` (RFC 8288) leads to the page that follows."""
    query = request.query(Parameters)
    after = 0 if query.cursor is None else cursor.decode(query.cursor, query.status)
    page = catalogue.list_pets(query.limit, query.status, after)
    headers = {}
    if page.has_next:
        following = cursor.encode(page.pets[-1].id, query.status)
        url = request.collection_url(limit=query.limit, status=query.status, cursor=following)
        headers["Link"] = f'<{url}>; rel="next"'
    return Response(200, render_pets(page.pets), headers)
