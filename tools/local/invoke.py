"""`animal-store invoke`: run one handler in this process, on the store of DATA, for instance under a debugger."""

import json
import re
import sys
from contextlib import redirect_stdout
from http import HTTPStatus
from pathlib import Path
from typing import Annotated

import typer

from tools.local import LocalError
from tools.local.folder import DataFolder


def invoke(
    event: Annotated[
        Path, typer.Argument(exists=True, dir_okay=False, help="An API Gateway proxy event.")
    ],
) -> None:
    """Run one handler with an event; its response goes to stdout, its log to stderr."""
    from tools.local.service import load_template, open_store

    try:
        template = load_template()
        with redirect_stdout(sys.stderr), open_store(DataFolder()) as store:
            gateway, key = store.load(template), store.key(template)
            from animal_store.api_key import is_well_formed

            # The keys in `events/` are examples that open nothing.
            text = re.sub(
                r"\w+",
                lambda word: key if is_well_formed(word[0]) else word[0],
                event.read_text("utf-8"),
            )
            content = json.loads(text)
            route, _ = template.find(content.get("httpMethod"), content.get("path", ""))
            # Longer than the function's own seconds: a person may be at a breakpoint.
            response = gateway.invoke(template.functions[route.function], content, seconds=15 * 60)
    except (LocalError, LookupError, ValueError) as error:
        print(f"{event}: {error}", file=sys.stderr)
        raise typer.Exit(1) from None
    print(json.dumps(response, indent=2, ensure_ascii=False))
    raise typer.Exit(response["statusCode"] >= HTTPStatus.INTERNAL_SERVER_ERROR)
