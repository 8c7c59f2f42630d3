"""`animal-store invoke`: run one handler in this process, on the store of DATA."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from tools.local import LocalError
from tools.local.folder import DataFolder

EventFile = Annotated[
    Path,
    typer.Argument(exists=True, dir_okay=False, help="An API Gateway proxy event."),
]


def invoke(event: EventFile) -> None:
    """Run one handler with an event; its response goes to stdout, its log to stderr."""
    from tools.local import events
    from tools.local.service import load_template, open_store

    with (
        explained(str(event)),
        redirect_stdout(sys.stderr),
        open_store(DataFolder()) as store,
    ):
        content = json.loads(event.read_text("utf-8"))
        # Cursors belong to a stage.
        template = load_template(
            stage=content.get("requestContext", {}).get("stage", "local")
        )
        function, gateway = template.function_of(content), store.load(template)
        events.prepare_for(content, gateway, store.dynamodb)
        # Longer than the function's own seconds: a person may be at a breakpoint.
        response = gateway.invoke(function, content, seconds=15 * 60)
    show(response)


@contextmanager
def explained(what: str) -> Iterator[None]:
    """End a command with a message where what it was given cannot be used."""
    try:
        yield
    except (
        LocalError,
        AttributeError,
        LookupError,
        OSError,
        TypeError,
        ValueError,
    ) as error:
        print(f"{what}: {error}", file=sys.stderr)
        raise typer.Exit(1) from None


def show(response: Any) -> NoReturn:
    """Print a response and end the command: with status 1 if it is a failure of the service."""
    print(json.dumps(response, indent=2, ensure_ascii=False))
    raise typer.Exit(response["statusCode"] >= HTTPStatus.INTERNAL_SERVER_ERROR)
