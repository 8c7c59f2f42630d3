"""`make run` serves the API in this process until Ctrl-C."""

import json
import logging
import os
import sys
from contextlib import redirect_stderr, redirect_stdout

import uvicorn

from tools.local.folder import DataFolder
from tools.local.listener import listen_on_port
from tools.local.open_store import open_store
from tools.local.openapi import examples
from tools.local.routes import application
from tools.local.template import load_template

_log = logging.getLogger(__name__)


def run() -> None:
    """Serve the API on this machine (variables: PORT, DATA)."""
    folder = DataFolder()
    logging.basicConfig(stream=sys.stdout, format="%(message)s")
    for name in (__package__, "uvicorn.access"):
        logging.getLogger(name).setLevel(logging.INFO)
    # With 0, Python ignores `breakpoint()`, which would wait for stdin for ever in a request's
    # thread. A debugger may have set another value, or replaced the hook.
    os.environ.setdefault("PYTHONBREAKPOINT", "0")
    with (
        folder.lock_for_service(),
        listen_on_port() as listener,
        folder.log.open("w", buffering=1, encoding="utf-8", errors="replace") as log,
        redirect_stdout(log),
        redirect_stderr(log),
        open_store(folder, load_template()) as service,
    ):
        app = application(service.gateway())
        port, key = listener.getsockname()[1], service.api_key()
        # The key follows #, because a browser never sends the part of a URL after # to a server.
        details = f"""
Docs: http://127.0.0.1:{port}/docs#key={key}
Log of the functions: {folder.log}"""
        _log.info(greeting(port, key, details))
        config = uvicorn.Config(
            app, log_config=None, proxy_headers=False, timeout_graceful_shutdown=1
        )
        uvicorn.Server(config).run([listener])


def greeting(port: int, key: str, details: str = "") -> str:
    """Return a text that names a service's URL and key, and shows how to call the service."""
    url = f"http://127.0.0.1:{port}/v1"
    header = f'-H "Authorization: Bearer {key}"'
    body = json.dumps(examples()[0])
    return f"""\
Base URL: {url}
API key: {key}{details}

Try it (Ctrl-C stops the service; data survives restarts):
  curl -i {url}/pets {header} -H 'Content-Type: application/json' -d '{body}'
  curl -i '{url}/pets?limit=5' {header}
  curl -i {url}/pets/1 {header}
"""
