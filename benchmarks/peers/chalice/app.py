"""Chalice, with the Logger and the Metrics of Powertools as its own documentation adds them; `boto3.resource`."""

import time
from collections.abc import Callable

from animals import (
    NewPet,
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
from chalice import BadRequestError, Chalice, ConvertToMiddleware, NotFoundError, Response, UnauthorizedError
from chalice.app import ChaliceViewError, Request
from pydantic import TypeAdapter, ValidationError

app = Chalice(app_name="animal-store")
app.register_middleware(ConvertToMiddleware(logger.inject_lambda_context))
app.register_middleware(ConvertToMiddleware(metrics.log_metrics(capture_cold_start_metric=True)))

OPERATIONS = {("GET", "/v1/pets"): "listPets", ("POST", "/v1/pets"): "createPet", ("GET", "/v1/pets/{petId}"): "getPet"}
CODES = {400: "invalid_request", 401: "unauthorized", 404: "not_found"}
STATUS = TypeAdapter(PetStatus | None)
MAX_LIMIT = 100


@app.middleware("http")
def observe(request: Request, get_response: Callable[[Request], Response]) -> Response:
    started = time.perf_counter()
    response = get_response(request)
    record(OPERATIONS[request.method, request.path], response.status_code, started)
    return response


@app.middleware("http")
def render_errors(request: Request, get_response: Callable[[Request], Response]) -> Response:
    try:
        return get_response(request)
    except ChaliceViewError as error:
        status = error.STATUS_CODE
        return Response(error_body(CODES[status], str(error), status), status_code=status)


@app.middleware("http")
def authenticate(request: Request, get_response: Callable[[Request], Response]) -> Response:
    if not is_authorized(request.headers.get("authorization")):
        raise UnauthorizedError("Missing or invalid API key.")
    return get_response(request)


@app.route("/v1/pets", methods=["GET"])
def list_pets_route() -> Response:
    parameters = app.current_request.query_params or {}
    try:
        limit = int(parameters.get("limit", 20))
        status = STATUS.validate_python(parameters.get("status"))
    except ValueError as error:
        raise BadRequestError("limit or status is invalid.") from error
    if not 1 <= limit <= MAX_LIMIT:
        raise BadRequestError("limit: must be 1 to 100.")
    pets, following = list_pets(limit, status, parameters.get("cursor"))
    headers = {"Link": link("/v1/pets", limit, status, following)} if following else {}
    return Response([pet.model_dump(exclude_none=True) for pet in pets], headers=headers)


@app.route("/v1/pets", methods=["POST"])
def create_pet_route() -> Response:
    try:
        new = NewPet.model_validate_json(app.current_request.raw_body)
    except ValidationError as error:
        first = error.errors()[0]
        raise BadRequestError(f"{first['loc'][-1]}: {first['msg']}") from error
    return Response(create_pet(new).model_dump(exclude_none=True), status_code=201)


@app.route("/v1/pets/{petId}", methods=["GET"])
def get_pet_route(petId: str) -> dict:  # noqa: N803 - the interface's own spelling
    pet = get_pet(int(petId)) if petId.isdecimal() else None
    if pet is None:
        raise NotFoundError("There is no such animal.")
    return pet.model_dump(exclude_none=True)
