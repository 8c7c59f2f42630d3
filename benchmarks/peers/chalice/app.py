"""Chalice, with the Logger and the Metrics of Powertools as its own documentation adds them."""

import time
from collections.abc import Callable

import animals
from chalice import BadRequestError, Chalice, ConvertToMiddleware, NotFoundError, Response
from chalice.app import Request
from pydantic import ValidationError

app = handler = Chalice(app_name="animal-store")
app.register_middleware(ConvertToMiddleware(animals.logger.inject_lambda_context))
app.register_middleware(
    ConvertToMiddleware(animals.metrics.log_metrics(capture_cold_start_metric=True))
)


@app.middleware("http")
def observe(request: Request, get_response: Callable[[Request], Response]) -> Response:
    started = time.perf_counter()
    response = get_response(request)
    animals.record(animals.OPERATIONS[request.method, request.path], response.status_code, started)
    return response


@app.middleware("http")
def authenticate(request: Request, get_response: Callable[[Request], Response]) -> Response:
    if not animals.is_authorized(request.headers.get("authorization")):
        return Response({"Code": "UnauthorizedError"}, status_code=401)
    return get_response(request)


@app.route("/v1/pets", methods=["GET"])
def list_pets() -> Response:
    try:
        page = animals.Page.model_validate(dict(app.current_request.query_params or {}))
    except ValidationError as error:
        raise BadRequestError(str(error)) from error
    pets, headers = animals.list_pets(page)
    return Response([pet.model_dump(exclude_none=True) for pet in pets], headers=headers)


@app.route("/v1/pets", methods=["POST"])
def create_pet() -> Response:
    try:
        new = animals.NewPet.model_validate_json(app.current_request.raw_body)
    except ValidationError as error:
        raise BadRequestError(str(error)) from error
    return Response(animals.create_pet(new).model_dump(exclude_none=True), status_code=201)


@app.route("/v1/pets/{petId}", methods=["GET"])
def get_pet(petId: str) -> dict:  # noqa: N803 - the interface's own spelling
    pet = animals.get_pet(int(petId)) if petId.isdecimal() else None
    if pet is None:
        raise NotFoundError("There is no such animal.")
    return pet.model_dump(exclude_none=True)
