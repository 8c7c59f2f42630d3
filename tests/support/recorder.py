"""Record what is called in a role, in this process and in those that it starts, such as sam.

A botocore plugin, loaded by each client that is made while `recording` lasts. botocore calls
plugins experimental: if they go, nothing is recorded, and the comparison of calls fails.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

_ROOT = Path(__file__).parents[2]


@contextmanager
def recording(calls: Path) -> Iterator[None]:
    """Append each call to a file, as a line `service:Operation`."""
    variables = {
        "BOTOCORE_EXPERIMENTAL__PLUGINS": f"recorder={__name__}",
        "PYTHONPATH": str(_ROOT),
        "RECORDED_CALLS": str(calls),
    }
    with mock.patch.dict(os.environ, variables):
        yield


def initialize_client_plugin(client: Any) -> None:
    """Make a client record its calls; botocore calls this function of each plugin."""
    service = client.meta.service_model.service_name

    def record(model: Any, **_: Any) -> None:
        with Path(os.environ["RECORDED_CALLS"]).open("a", encoding="utf-8") as calls:
            calls.write(f"{service}:{model.name}\n")

    # Only a role's credentials have a session; the account's administrator has none here.
    if os.environ.get("AWS_SESSION_TOKEN"):
        client.meta.events.register("provide-client-params.*.*", record)
