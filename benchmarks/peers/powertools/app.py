"""Powertools for AWS Lambda: resolver with validation, Logger, Metrics, Tracer; `boto3.resource`."""

import time
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
from aws_lambda_powertools import Tracer
from aws_lambda_powertools.event_handler import APIGatewayRestResolver, Response, content_types
from aws_lambda_powertools.event_handler.exceptions import NotFoundError, UnauthorizedError
from aws_lambda_powertools.event_handler.middlewares import NextMiddleware
from aws_lambda_powertools.event_handler.openapi.exceptions import RequestValidationError
from aws_lambda_powertools.event_handler.openapi.params import Path, Query
from aws_lambda_powertools.logging import correlation_paths
from aws_lambda_powertools.utilities.typing import LambdaContext

tracer = Tracer()
app = APIGatewayRestResolver(enable_validation=True)

OPERATIONS = {("GET", "/v1/pets"): "listPets", ("POST", "/v1/pets"): "createPet", ("GET", "/v1/pets/{petId}"): "getPet"}


def observe(app: APIGatewayRestResolver, next_middleware: NextMiddleware) -> Response:
    started = time.perf_counter()
    response = next_middleware(app)
    event = app.current_event
    record(OPERATIONS[event.http_method, event.resource], response.status_code, started)
    return response


def authenticate(app: APIGatewayRestResolver, next_middleware: NextMiddleware) -> Response:
    if not is_authorized(app.current_event.headers.get("Authorization")):
        raise UnauthorizedError("Missing or invalid API key.")
    return next_middleware(app)


app.use(middlewares=[observe, authenticate])


@app.exception_handler(RequestValidationError)
def invalid_request(error: RequestValidationError) -> Response:
    first = error.errors()[0]
    return json_error(400, "invalid_request", f"{first['loc'][-1]}: {first['msg']}")


@app.exception_handler(UnauthorizedError)
def unauthorized(error: UnauthorizedError) -> Response:
    return json_error(401, "unauthorized", error.msg)


@app.exception_handler(NotFoundError)
def not_found(error: NotFoundError) -> Response:
    return json_error(404, "not_found", error.msg)


def json_error(status: int, code: str, message: str) -> Response:
    return Response(status, content_type=content_types.APPLICATION_JSON, body=error_body(code, message, status))


@app.get("/v1/pets")
@tracer.capture_method
def list_pets_route(
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    status: Annotated[PetStatus | None, Query()] = None,
    cursor: Annotated[str | None, Query()] = None,
) -> Response[list[Pet]]:
    pets, following = list_pets(limit, status, cursor)
    headers = {"Link": link("/v1/pets", limit, status, following)} if following else {}
    return Response(200, content_type=content_types.APPLICATION_JSON, body=pets, headers=headers)


@app.post("/v1/pets")
@tracer.capture_method
def create_pet_route(new: NewPet) -> Response[Pet]:
    return Response(201, content_type=content_types.APPLICATION_JSON, body=create_pet(new))


@app.get("/v1/pets/<petId>", deprecated=True)
@tracer.capture_method
def get_pet_route(petId: Annotated[int, Path()]) -> Pet:  # noqa: N803 - the interface's own spelling
    pet = get_pet(petId)
    if pet is None:
        raise NotFoundError("There is no such animal.")
    return pet


@logger.inject_lambda_context(correlation_id_path=correlation_paths.API_GATEWAY_REST)
@tracer.capture_lambda_handler
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: dict, context: LambdaContext) -> dict:
    return app.resolve(event, context)
