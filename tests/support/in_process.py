"""The local service with its gateway in this process: HTTP without a socket.

The contract suite runs against it unless it gets a base URL.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest import mock

from starlette.testclient import TestClient

from tools.local.folder import DataFolder
from tools.local.open_store import open_store
from tools.local.routes import application
from tools.local.template import load_template

BASE_URL = "http://127.0.0.1:3000/v1"


@contextmanager
def layer_copy() -> Iterator[None]:
    """Let the block import a copy of the layer and change the environment; then undo both."""
    modules = dict(sys.modules)
    with mock.patch.dict(os.environ), mock.patch.object(sys, "path", [*sys.path]):
        try:
            yield
        finally:
            # Remove the copy's modules, so that no later import mixes them with the original.
            for name in list(sys.modules):
                if name.startswith("animal_store."):
                    del sys.modules[name]
            sys.modules.update(modules)


@contextmanager
def local_client(data: Path) -> Iterator[tuple[TestClient, str]]:
    """Open a service with an empty store; yield its client and a valid key."""
    store = open_store(DataFolder(data), load_template())
    with ExitStack() as stack:
        with layer_copy():
            service = stack.enter_context(store)
            gateway = service.gateway()
        client = TestClient(application(gateway), BASE_URL, follow_redirects=False)
        yield stack.enter_context(client), service.api_key()
