"""FastAPI behind Mangum, with the Logger and the Metrics of Powertools; `boto3.resource`."""

import time
from collections.abc import Awaitable, Callable
from typing import Annotated

from animals import (
    NewPet,
    Pet,
    PetStatus,
    create_pet,
    error_body,
    get_pet,
    is_authorized,
    link,
    list_pets,
    logger,
    metrics,
    record,
)
from fastapi import Depends, FastAPI, HTTPException, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from mangum import Mangum

bearer = HTTPBearer(auto_error=False)


def authenticate(credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]) -> None:
    if credentials is None or not is_authorized(f"{credentials.scheme} {credentials.credentials}"):
        raise HTTPException(401, "Missing or invalid API key.")


app = FastAPI(title="Animal store", dependencies=[Depends(authenticate)])

CODES = {401: "unauthorized", 404: "not_found"}


@app.middleware("http")
async def observe(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
    started = time.perf_counter()
    response = await call_next(request)
    route = request.scope.get("route")
    record(route.operation_id if route else "unknown", response.status_code, started)
    return response


@app.exception_handler(RequestValidationError)
def invalid_request(_request: Request, error: RequestValidationError) -> JSONResponse:
    first = error.errors()[0]
    return JSONResponse(error_body("invalid_request", f"{first['loc'][-1]}: {first['msg']}", 400), 400)


@app.exception_handler(HTTPException)
def http_error(_request: Request, error: HTTPException) -> JSONResponse:
    return JSONResponse(error_body(CODES[error.status_code], error.detail, error.status_code), error.status_code)


@app.get("/v1/pets", operation_id="listPets", response_model_exclude_none=True)
def list_pets_route(
    response: Response,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    status: PetStatus | None = None,
    cursor: str | None = None,
) -> list[Pet]:
    pets, following = list_pets(limit, status, cursor)
    if following:
        response.headers["Link"] = link("/v1/pets", limit, status, following)
    return pets


@app.post("/v1/pets", operation_id="createPet", status_code=201, response_model_exclude_none=True)
def create_pet_route(new: NewPet) -> Pet:
    return create_pet(new)


@app.get("/v1/pets/{petId}", operation_id="getPet", deprecated=True, response_model_exclude_none=True)
def get_pet_route(petId: int) -> Pet:  # noqa: N803 - the interface's own spelling
    pet = get_pet(petId)
    if pet is None:
        raise HTTPException(404, "There is no such animal.")
    return pet


handler = Mangum(app, lifespan="off")
handler.__name__ = "handler"
handler = logger.inject_lambda_context(handler, clear_state=True)
handler = metrics.log_metrics(handler, capture_cold_start_metric=True)
