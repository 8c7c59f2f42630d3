"""Powertools for AWS Lambda: resolver with validation, Logger, Metrics, Tracer."""

import time
from typing import Annotated

import animals
from animals import NewPet, Page, Pet, PetStatus
from aws_lambda_powertools import Tracer
from aws_lambda_powertools.event_handler import (
    APIGatewayRestResolver,
    Response,
    content_types,
)
from aws_lambda_powertools.event_handler.exceptions import (
    NotFoundError,
    UnauthorizedError,
)
from aws_lambda_powertools.event_handler.openapi.params import Path, Query
from aws_lambda_powertools.logging import correlation_paths

tracer = Tracer()
app = APIGatewayRestResolver(enable_validation=True)


def observe(app, next_middleware):
    started = time.perf_counter()
    response = next_middleware(app)
    event = app.current_event
    operation = animals.OPERATIONS[event.http_method, event.resource]
    animals.record(operation, response.status_code, started)
    return response


def authenticate(app, next_middleware):
    if not animals.is_authorized(app.current_event.headers.get("Authorization")):
        raise UnauthorizedError("Missing or invalid API key.")
    return next_middleware(app)


app.use(middlewares=[observe, authenticate])


@app.get("/v1/pets")
@tracer.capture_method
def list_pets(
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    status: Annotated[PetStatus | None, Query()] = None,
    cursor: Annotated[str | None, Query()] = None,
) -> Response[list[Pet]]:
    pets, headers = animals.list_pets(Page(limit=limit, status=status, cursor=cursor))
    return Response(
        200, content_type=content_types.APPLICATION_JSON, body=pets, headers=headers
    )


@app.post("/v1/pets")
@tracer.capture_method
def create_pet(new: NewPet) -> Response[Pet]:
    return Response(
        201, content_type=content_types.APPLICATION_JSON, body=animals.create_pet(new)
    )


@app.get("/v1/pets/<petId>", deprecated=True)
@tracer.capture_method
def get_pet(petId: Annotated[int, Path()]) -> Pet:  # noqa: N803 - the interface's own spelling
    pet = animals.get_pet(petId)
    if pet is None:
        raise NotFoundError("There is no such animal.")
    return pet


@animals.logger.inject_lambda_context(
    correlation_id_path=correlation_paths.API_GATEWAY_REST
)
@tracer.capture_lambda_handler
@animals.metrics.log_metrics(capture_cold_start_metric=True)
def handler(event, context):
    return app.resolve(event, context)
