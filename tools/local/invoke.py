"""`animal-store invoke`: run one handler in this process, on the store of DATA."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from lambda_local import LocalError

from tools.local import events
from tools.local.folder import DataFolder
from tools.local.service import load_template, open_store

EventFile = Annotated[Path, typer.Argument(help="An API Gateway proxy event.")]


@contextmanager
def explained(event: Path) -> Iterator[None]:
    """Say which event cannot be used, because it is not from API Gateway, or not JSON."""
    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise LocalError(f"{event}: {error}") from error


def invoke(event: EventFile) -> None:
    """Run one handler with an event; its response goes to stdout, its log to stderr."""
    with (
        explained(event),
        redirect_stdout(sys.stderr),
        open_store(DataFolder()) as store,
    ):
        content = json.loads(event.read_text("utf-8"))
        # Cursors belong to a stage.
        stage = content.get("requestContext", {}).get("stage", "local")
        template = load_template(stage=stage)
        function, gateway = template.function_of(content), store.load(template)
        with events.prepared(content, gateway, store.dynamodb):
            # Longer than the function's own timeout: someone may be at a breakpoint.
            response = gateway.invoke(function, content, seconds=15 * 60)
    show(response)


def show(response: Any) -> NoReturn:
    """Print a response and end the command: with status 1 if it is a failure of the service."""
    print(json.dumps(response, indent=2, ensure_ascii=False))
    raise typer.Exit(response["statusCode"] >= HTTPStatus.INTERNAL_SERVER_ERROR)
