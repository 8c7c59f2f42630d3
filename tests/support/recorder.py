"""Record what a role calls, in this process and in those that it starts, such as sam.

A plugin of botocore, which each client loads that is made while `recording` lasts. botocore calls
plugins experimental: should they go, nothing is recorded, and the comparison of calls fails.
"""

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[2]


@contextlib.contextmanager
def recording(calls: Path) -> Iterator[None]:
    """Append each call to a file, as a line of JSON: service, operation, and its parameters."""
    variables = {
        "BOTOCORE_EXPERIMENTAL__PLUGINS": f"recorder={__name__}",
        "PYTHONPATH": str(_ROOT),
        "RECORDED_CALLS": str(calls),
    }
    os.environ |= variables
    yield
    for name in variables:
        del os.environ[name]


def initialize_client_plugin(client: Any) -> None:
    """Let a client record its calls; botocore asks each plugin for this function."""
    service, path = (
        client.meta.service_model.service_name,
        Path(os.environ["RECORDED_CALLS"]),
    )

    def record(params: dict[str, Any], model: Any, **_: Any) -> None:
        texts = {
            name: str(value) for name, value in params.items() if name != "TemplateBody"
        }
        with path.open("a", encoding="utf-8") as calls:
            calls.write(json.dumps([service, model.name, texts]) + "\n")

    # Only a role's credentials have a session; the account's administrator has none here.
    if os.environ.get("AWS_SESSION_TOKEN"):
        client.meta.events.register("provide-client-params.*.*", record)
