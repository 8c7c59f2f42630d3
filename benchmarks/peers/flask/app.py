"""Flask behind apig-wsgi, with the Logger and the Metrics of Powertools."""

import time

import animals
from apig_wsgi import make_lambda_handler
from flask import Flask, Response, abort, g, jsonify, request
from pydantic import ValidationError

app = Flask(__name__)


@app.before_request
def authenticate() -> None:
    g.started = time.perf_counter()
    if not animals.is_authorized(request.headers.get("Authorization")):
        abort(401, "Missing or invalid API key.")


@app.after_request
def observe(response: Response) -> Response:
    animals.record(request.endpoint or "unknown", response.status_code, g.started)
    return response


@app.errorhandler(ValidationError)
def invalid_request(error: ValidationError) -> tuple[str, int]:
    return error.json(), 400


@app.get("/v1/pets", endpoint="listPets")
def list_pets() -> Response:
    pets, headers = animals.list_pets(animals.Page.model_validate(request.args.to_dict()))
    response = jsonify([pet.model_dump(exclude_none=True) for pet in pets])
    response.headers.update(headers)
    return response


@app.post("/v1/pets", endpoint="createPet")
def create_pet() -> tuple[dict, int]:
    new = animals.NewPet.model_validate_json(request.get_data())
    return animals.create_pet(new).model_dump(exclude_none=True), 201


@app.get("/v1/pets/<int:petId>", endpoint="getPet")
def get_pet(petId: int) -> dict:  # noqa: N803 - the interface's own spelling
    pet = animals.get_pet(petId)
    if pet is None:
        abort(404, "There is no such animal.")
    return pet.model_dump(exclude_none=True)


handler = make_lambda_handler(app)
handler = animals.logger.inject_lambda_context(handler, clear_state=True)
handler = animals.metrics.log_metrics(handler, capture_cold_start_metric=True)
