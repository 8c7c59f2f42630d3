"""`python -m tools invoke`: run one handler in this process with an event from a file, for instance under a debugger.

It uses the store of DATA, together with a running `make run` or without. A key in the event is replaced by the key of
this machine, because the keys in `events/` are examples that open nothing.
"""

import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tools.local import LocalError
from tools.local.folder import DataFolder

if TYPE_CHECKING:
    from tools.local.template import Function, Template

# The longest that Lambda allows: a person at a breakpoint takes longer than the function's own seconds.
_SECONDS = 15 * 60
_BEARER = "Bearer "
_SERVER_ERROR = 500


def invoke(
    event: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="An API Gateway proxy event.")],
) -> None:
    """Run one handler with an event; its response goes to stdout, its log to stderr."""
    from tools.local.service import load_template, open_store

    try:
        template, content = load_template(), json.loads(event.read_text("utf-8"))
        with redirect_stdout(sys.stderr), open_store(DataFolder()) as store:
            gateway, key = store.load(template), store.key(template)
            response = gateway.invoke(_function(template, content), with_key(content, key), _SECONDS)
    except (LocalError, ValueError) as error:
        print(f"{event}: {error}", file=sys.stderr)
        raise typer.Exit(1) from None
    print(json.dumps(response, indent=2, ensure_ascii=False))
    if response["statusCode"] >= _SERVER_ERROR:
        raise typer.Exit(1)


def _function(template: "Template", event: dict[str, Any]) -> "Function":
    """Find the function that API Gateway would send an event to."""
    route, _ = template.find(str(event.get("httpMethod")), str(event.get("path")))
    if route is None:
        raise ValueError(f"no function answers {event.get('httpMethod')} {event.get('path')}")
    return template.functions[route.function]


def with_key(event: dict[str, Any], key: str) -> dict[str, Any]:
    """Replace what has the form of an API key in an event; one without a key, or with nonsense, stays as it is."""
    from animal_store import api_key

    def replaced(name: str, value: str) -> str:
        is_key = name.lower() == "authorization" and api_key.is_well_formed(value.removeprefix(_BEARER))
        return _BEARER + key if is_key else value

    single, multiple = event.get("headers") or {}, event.get("multiValueHeaders") or {}
    return event | {
        "headers": {name: replaced(name, value) for name, value in single.items()},
        "multiValueHeaders": {name: [replaced(name, value) for value in values] for name, values in multiple.items()},
    }
