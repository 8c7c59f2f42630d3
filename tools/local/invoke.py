"""`python -m tools invoke`: runs one handler in this process with an event from a file, for instance under a debugger.

It uses the store of the running `make run`, or starts the local store for as long as it takes. A key in the event is
replaced by the key of this machine, because the keys in `events/` are examples that open nothing.
"""

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tools import ROOT
from tools.local import run as service
from tools.local.store import DataFolder, StoreError, use_external_environment, use_local_environment

if TYPE_CHECKING:
    from tools.local.template import Template

# The longest that Lambda allows: a person at a breakpoint takes longer than the function's own seconds.
_SECONDS = 15 * 60
_BEARER = "Bearer "
_SERVER_ERROR = 500


def invoke(
    event: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="An API Gateway proxy event.")],
    *,
    data: Annotated[Path, typer.Option(envvar="DATA", help="The folder of the local store.")] = Path(".local"),
    template: Annotated[Path, typer.Option(envvar="TEMPLATE", help="The SAM template.")] = ROOT / "template.yaml",
) -> None:
    """Run one handler with an event; its answer goes to stdout, its log to stderr."""
    from tools.local.functions import LoadError
    from tools.local.template import TemplateError
    from tools.local.template import load as load_template

    try:
        loaded = load_template(template, {"Stage": service.STAGE})
        with _store(loaded, DataFolder(data)) as key:
            answer = _invoke(loaded, with_key(json.loads(event.read_text("utf-8")), key))
    except (LoadError, StoreError, TemplateError, ValueError) as error:
        print(f"{event}: {error}" if isinstance(error, ValueError) else error, file=sys.stderr)
        raise typer.Exit(1) from None
    print(json.dumps(answer, indent=2, ensure_ascii=False))
    if answer["statusCode"] >= _SERVER_ERROR:
        raise typer.Exit(1)


def _invoke(template: "Template", event: dict[str, Any]) -> Any:
    """Find the function that API Gateway would send the event to, load it, and call its handler in this thread.

    Raises:
        ValueError: No function takes the event.
        LoadError: The handler cannot be imported.
    """
    from tools.local.functions import load, share_environment
    from tools.local.output import OutputLines

    found = template.find(str(event.get("httpMethod")), str(event.get("path")))
    if found is None:
        raise ValueError(f"no function answers {event.get('httpMethod')} {event.get('path')}")
    output = OutputLines(lambda _, line: print(line, file=sys.__stderr__))
    output.install()
    share_environment(template.functions.values())
    return load(template.functions[found.route.function], output).invoke(event, time.monotonic() + _SECONDS)


@contextmanager
def _store(template: "Template", folder: DataFolder) -> Iterator[str]:
    """Point this process at a store with the template's tables.

    Yields:
        A key that the store knows.
    """
    with ExitStack() as stack, redirect_stdout(sys.stderr):
        running = folder.running()
        if running is None:
            lock = stack.enter_context(folder.locked())
            settings = service.Settings(data=folder.path, endpoint=os.environ.get("AWS_ENDPOINT_URL_DYNAMODB") or None)
            store = service.start_store(settings, folder, lock, stack)
            if store:
                store.wait_until_ready()
        elif running.local_store:
            use_local_environment(running.dynamodb_endpoint)
        else:
            use_external_environment(running.dynamodb_endpoint)
        key = service.prepare(template, folder)
        yield key


def with_key(event: dict[str, Any], key: str) -> dict[str, Any]:
    """Replace what looks like an API key in an event; one without a key, or with nonsense, stays as it is.

    Args:
        event: An API Gateway proxy event.
        key: To put in.
    """
    from animal_store import api_key

    def replaced(name: str, value: str) -> str:
        is_key = name.lower() == "authorization" and api_key.is_well_formed(value.removeprefix(_BEARER))
        return _BEARER + key if is_key else value

    single, multiple = event.get("headers") or {}, event.get("multiValueHeaders") or {}
    return event | {
        "headers": {name: replaced(name, value) for name, value in single.items()},
        "multiValueHeaders": {name: [replaced(name, value) for value in values] for name, values in multiple.items()},
    }
