"""A handler that uses the resolver of Powertools for AWS Lambda, with validation."""

from typing import Annotated, Literal

import store
from aws_lambda_powertools.event_handler import APIGatewayRestResolver, Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError
from aws_lambda_powertools.event_handler.openapi.params import Query
from pydantic import BaseModel


class NewPet(BaseModel):
    name: str
    categoryId: int
    status: Literal["available", "pending", "sold"] | None = None


class Pet(NewPet):
    id: int


app = APIGatewayRestResolver(enable_validation=True)


@app.get("/v1/pets")
def list_pets(
    limit: Annotated[int, Query(ge=1, le=100)] = 20, cursor: int = 0
) -> Response[list[Pet]]:
    items, link = store.query(limit, cursor)
    pets = [Pet(**item) for item in items]
    return Response(200, content_type="application/json", body=pets, headers=link)


@app.post("/v1/pets")
def create_pet(new: NewPet) -> Response[Pet]:
    pet = Pet(**store.create(new.model_dump(exclude_none=True)))
    return Response(201, content_type="application/json", body=pet)


@app.get("/v1/pets/<petId>")
def get_pet(petId: int) -> Pet:  # noqa: N803 - the interface's own spelling
    pet = store.get(petId)
    if pet is None:
        raise NotFoundError("There is no such animal.")
    return Pet(**pet)


def handler(event, context):
    return app.resolve(event, context)
