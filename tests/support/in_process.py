"""The local service in the tests' own process, without a socket."""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest import mock

from starlette.testclient import TestClient

from tools.key_table import KeyTable
from tools.local.app import application
from tools.local.folder import DataFolder
from tools.local.service import KEY_TABLE, load_template, open_store


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


@contextmanager
def service_in_process(data: Path) -> Iterator[tuple[TestClient, str]]:
    """Open a service with an empty store; yield what sends requests to it, and a key."""
    template = load_template()
    with ExitStack() as stack:
        with own_layer():
            store = stack.enter_context(open_store(DataFolder(data)))
            app = application(store.load(template))
        keys = KeyTable(store.dynamodb, template.tables[KEY_TABLE].name)
        key, _ = keys.issue("tests", "test")
        base_url = "http://127.0.0.1:3000/v1"
        http = TestClient(app, base_url, follow_redirects=False)
        yield stack.enter_context(http), key
