"""The local service in the tests' own process, without a socket."""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from unittest import mock

import httpx2
from anyio.from_thread import start_blocking_portal

from tools.key_table import KeyTable
from tools.local.app import Application
from tools.local.folder import DataFolder
from tools.local.output import Output, open_log
from tools.local.service import KEY_TABLE, load_template, open_store


@dataclass(frozen=True)
class Target:
    """A service to send requests to; without a second key, what needs two is skipped."""

    base_url: str
    api_keys: list[str]
    transport: httpx2.BaseTransport | None = None


@contextmanager
def own_layer() -> Iterator[None]:
    """Let code load a copy of the layer, in its own environment; then undo both."""
    modules = dict(sys.modules)
    with mock.patch.dict(os.environ), mock.patch.object(sys, "path", [*sys.path]):
        try:
            yield
        finally:
            # What only the copy has loaded would be mixed with the original later.
            for name in list(sys.modules):
                if name.startswith("animal_store."):
                    del sys.modules[name]
            sys.modules.update(modules)


async def _send(asgi: httpx2.ASGITransport, request: httpx2.Request) -> httpx2.Response:
    response = await asgi.handle_async_request(request)
    content = await response.aread()
    if request.method == "HEAD":
        content = b""  # as a server does
    return httpx2.Response(
        response.status_code,
        headers=response.headers,
        stream=httpx2.ByteStream(content),
    )


@contextmanager
def service_in_process(data: Path) -> Iterator[Target]:
    """Open a service with an empty store and two keys."""
    template = load_template()
    with ExitStack() as stack:
        with own_layer():
            store = stack.enter_context(open_store(DataFolder(data)))
            log = stack.enter_context(closing(open_log(data / "functions.log")))
            application = Application(store.load(template), Output(log))
        keys = KeyTable(store.dynamodb, template.tables[KEY_TABLE].name)
        first, _ = keys.issue("first", "test")
        second, _ = keys.issue("second", "test")
        portal = stack.enter_context(start_blocking_portal())
        send = partial(portal.call, _send, httpx2.ASGITransport(application))
        transport = httpx2.MockTransport(send)
        yield Target("http://127.0.0.1:3000/v1", [first, second], transport)
