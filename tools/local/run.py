"""`make run`: the whole service in this process, until Ctrl-C. `make reset`: an empty store."""

import json
import logging
import os
import socket
import sys
from contextlib import redirect_stderr, redirect_stdout
from datetime import UTC, datetime

from tools.local import LocalError
from tools.local.app import application, serve
from tools.local.folder import DataFolder, base_url
from tools.local.output import Output, open_log
from tools.local.service import examples, load_template, open_store

_say = logging.getLogger(__name__).info


def run() -> None:
    """Serve the API on this machine (PORT, DATA, AWS_ENDPOINT_URL_DYNAMODB)."""
    folder = DataFolder()
    logging.basicConfig(stream=sys.stdout, format="%(message)s")
    for name in (__package__, "uvicorn.access"):
        logging.getLogger(name).setLevel(logging.INFO)
    # Threads that answer requests have no terminal; a debugger has a hook of its own.
    os.environ.setdefault("PYTHONBREAKPOINT", "0")
    with (
        listen() as listener,
        folder.held_by_service(),
        open_log(folder.log) as log,
        redirect_stdout(Output(log)) as output,
        redirect_stderr(output),
        open_store(folder) as store,
    ):
        # As asyncio does for its own sockets: else each response waits 40 ms for the client's ACK.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        template = load_template()
        app = application(store.load(template))
        port, key = listener.getsockname()[1], store.key(template)
        # A browser does not send what follows #.
        page = f"\nDocs: http://127.0.0.1:{port}/docs#key={key}"
        _say(greeting(base_url(port), key, page))
        serve(app, listener)


def listen() -> socket.socket:
    """Listen on PORT of this machine, or say why that cannot be done."""
    port = os.environ.get("PORT") or "3000"
    try:
        return socket.create_server(("127.0.0.1", int(port)))
    except (OSError, ValueError) as error:
        raise LocalError(
            f"cannot listen on port {port}: {error}. Use another: PORT=8080; any: PORT=0"
        ) from error


def greeting(url: str, key: str, more: str = "") -> str:
    """Say where a service is, and how to call it."""
    header = f'-H "Authorization: Bearer {key}"'
    body = json.dumps(examples()[0])
    return f"""\
Base URL: {url}
API key: {key}{more}

Try it (Ctrl-C stops the service; data survives restarts):
  curl -i {url}/pets {header} -H 'Content-Type: application/json' -d '{body}'
  curl -i '{url}/pets?limit=5' {header}
  curl -i {url}/pets/1 {header}
"""


def reset() -> None:
    """Empty the local store (DATA): rename it, so that the next start has an empty one."""
    folder = DataFolder()
    old = folder.path / f"store.{datetime.now(UTC):%Y%m%d-%H%M%S.%fZ}.old"
    with folder.held_by_service():
        folder.store.rename(old)
    print(f"{folder.path}: the store is now {old}; the next start has an empty one.")
