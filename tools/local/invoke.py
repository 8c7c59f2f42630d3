"""`animal-store invoke`: run one handler in this process, on the store of DATA."""

import json
import sys
from contextlib import redirect_stdout
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from tools.local import LocalError, events
from tools.local.folder import DataFolder
from tools.local.service import load_template, open_store
from tools.local.template import Template

EventFile = Annotated[Path, typer.Argument(help="An API Gateway proxy event.")]


def read(event: Path) -> tuple[dict[str, Any], Template, str]:
    """Read an event; LocalError if it is not one from API Gateway.

    Returns:
        The event, the template with its stage, whose cursors it may have, and its function.
    """
    try:
        content = json.loads(event.read_text("utf-8"))
        template = load_template(stage=content["requestContext"]["stage"])
        route, _ = template.find(content["httpMethod"], content["path"])
    except (LookupError, TypeError, ValueError) as error:
        raise LocalError(f"{event}: {error}") from error
    return content, template, route.function


def invoke(event: EventFile) -> None:
    """Run one handler with an event; its response goes to stdout, its log to stderr."""
    content, template, name = read(event)
    with redirect_stdout(sys.stderr), open_store(DataFolder()) as store:
        gateway = store.load(template)
        with events.prepared(content, gateway, store.dynamodb):
            # Longer than the function's own timeout: someone may be at a breakpoint.
            seconds = 15 * 60
            response = gateway.invoke(template.functions[name], content, seconds)
    show(response)


def show(response: Any) -> NoReturn:
    """Print a response and end the command: with status 1 if it is a failure of the service."""
    print(json.dumps(response, indent=2, ensure_ascii=False))
    raise typer.Exit(response["statusCode"] >= HTTPStatus.INTERNAL_SERVER_ERROR)
