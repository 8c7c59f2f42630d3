"""FastAPI behind Mangum."""

from typing import Annotated

import store
from fastapi import FastAPI, HTTPException, Query, Response
from mangum import Mangum
from models import NewPet, Pet

app = FastAPI()


@app.get("/v1/pets", response_model_exclude_none=True)
def list_pets(
    response: Response,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    cursor: str | None = None,
) -> list[Pet]:
    pets, link = store.query(limit, cursor)
    response.headers.update(link)
    return pets


@app.post("/v1/pets", status_code=201, response_model_exclude_none=True)
def create_pet(new: NewPet) -> Pet:
    return store.create(new.model_dump(exclude_none=True))


@app.get("/v1/pets/{petId}", response_model_exclude_none=True)
def get_pet(petId: int) -> Pet:  # noqa: N803 - the interface's own spelling
    pet = store.get(petId)
    if pet is None:
        raise HTTPException(404, "There is no such animal.")
    return pet


handler = Mangum(app, lifespan="off")
