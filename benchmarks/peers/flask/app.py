"""Flask behind apig-wsgi, with the Logger and the Metrics of Powertools; `boto3.resource`."""

import time

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
from apig_wsgi import make_lambda_handler
from flask import Flask, Response, abort, g, jsonify, request
from pydantic import TypeAdapter, ValidationError
from werkzeug.exceptions import HTTPException

app = Flask(__name__)

CODES = {400: "invalid_request", 401: "unauthorized", 404: "not_found"}
STATUS = TypeAdapter(PetStatus | None)
MAX_LIMIT = 100


@app.before_request
def authenticate() -> None:
    g.started = time.perf_counter()
    if not is_authorized(request.headers.get("Authorization")):
        abort(401, "Missing or invalid API key.")


@app.after_request
def observe(response: Response) -> Response:
    record(request.endpoint or "unknown", response.status_code, g.started)
    return response


@app.errorhandler(HTTPException)
def http_error(error: HTTPException) -> tuple[dict, int]:
    return error_body(CODES.get(error.code, "internal_error"), error.description, error.code), error.code


@app.get("/v1/pets", endpoint="listPets")
def list_pets_route() -> Response:
    try:
        limit = int(request.args.get("limit", 20))
        status = STATUS.validate_python(request.args.get("status"))
    except ValueError:
        abort(400, "limit or status is invalid.")
    if not 1 <= limit <= MAX_LIMIT:
        abort(400, "limit: must be 1 to 100.")
    pets, following = list_pets(limit, status, request.args.get("cursor"))
    response = jsonify([pet.model_dump(exclude_none=True) for pet in pets])
    if following:
        response.headers["Link"] = link("/v1/pets", limit, status, following)
    return response


@app.post("/v1/pets", endpoint="createPet")
def create_pet_route() -> tuple[dict, int]:
    try:
        new = NewPet.model_validate_json(request.get_data())
    except ValidationError as error:
        first = error.errors()[0]
        abort(400, f"{first['loc'][-1]}: {first['msg']}")
    return create_pet(new).model_dump(exclude_none=True), 201


@app.get("/v1/pets/<int:petId>", endpoint="getPet")
def get_pet_route(petId: int) -> dict:  # noqa: N803 - the interface's own spelling
    pet = get_pet(petId)
    if pet is None:
        abort(404, "There is no such animal.")
    return pet.model_dump(exclude_none=True)


handler = make_lambda_handler(app)
handler = logger.inject_lambda_context(handler, clear_state=True)
handler = metrics.log_metrics(handler, capture_cold_start_metric=True)
