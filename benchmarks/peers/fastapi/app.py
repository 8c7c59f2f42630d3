"""FastAPI behind Mangum, with the Logger and the Metrics of Powertools."""

import time
from typing import Annotated

import animals
from animals import NewPet, Page, Pet
from fastapi import Depends, FastAPI, HTTPException, Query, Request, Response
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from mangum import Mangum

bearer = HTTPBearer(auto_error=False)


Credentials = Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]


def authenticate(credentials: Credentials):
    if credentials is None or not animals.is_authorized(
        f"{credentials.scheme} {credentials.credentials}"
    ):
        raise HTTPException(401, "Missing or invalid API key.")


app = FastAPI(title="Animal store", dependencies=[Depends(authenticate)])


@app.middleware("http")
async def observe(request: Request, call_next):
    started = time.perf_counter()
    response = await call_next(request)
    operation = request.scope["route"].operation_id
    animals.record(operation, response.status_code, started)
    return response


@app.get("/v1/pets", operation_id="listPets", response_model_exclude_none=True)
def list_pets(response: Response, page: Annotated[Page, Query()]) -> list[Pet]:
    pets, headers = animals.list_pets(page)
    response.headers.update(headers)
    return pets


@app.post(
    "/v1/pets",
    operation_id="createPet",
    status_code=201,
    response_model_exclude_none=True,
)
def create_pet(new: NewPet) -> Pet:
    return animals.create_pet(new)


@app.get(
    "/v1/pets/{petId}",
    operation_id="getPet",
    deprecated=True,
    response_model_exclude_none=True,
)
def get_pet(petId: int) -> Pet:  # noqa: N803 - the interface's own spelling
    pet = animals.get_pet(petId)
    if pet is None:
        raise HTTPException(404, "There is no such animal.")
    return pet


handler = Mangum(app, lifespan="off")
handler.__name__ = "handler"
handler = animals.logger.inject_lambda_context(handler, clear_state=True)
handler = animals.metrics.log_metrics(handler, capture_cold_start_metric=True)
