"""Record the calls that the SDK makes, in this process and in those that it starts, such as sam.

A plugin of botocore, loaded by each client that is made while `recording` lasts. botocore calls
its plugins experimental: should they go, nothing is recorded, and the comparison fails.
"""

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


@contextlib.contextmanager
def recording(calls: Path) -> Iterator[None]:
    """Append to a file the calls of every client that is made meanwhile, one as JSON a line."""
    os.environ |= {
        "BOTOCORE_EXPERIMENTAL__PLUGINS": f"recorder={__name__}",
        "PYTHONPATH": f"{ROOT}",
        "RECORDED_CALLS": f"{calls}",
    }
    try:
        yield
    finally:
        for name in ("BOTOCORE_EXPERIMENTAL__PLUGINS", "PYTHONPATH", "RECORDED_CALLS"):
            del os.environ[name]


def initialize_client_plugin(client: Any) -> None:
    """Let a client record its calls; botocore asks each plugin for this function."""
    path, service = os.environ["RECORDED_CALLS"], client.meta.service_model.service_name

    def record(params: dict[str, Any], model: Any, **_: Any) -> None:
        texts = {name: value for name, value in params.items() if isinstance(value, (str, int))}
        texts.pop("TemplateBody", None)
        with Path(path).open("a") as calls:
            calls.write(json.dumps([service, model.name, texts]) + "\n")

    client.meta.events.register("provide-client-params.*.*", record)
