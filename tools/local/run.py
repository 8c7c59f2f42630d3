"""`make run`: the whole service in this process, until Ctrl-C. `make reset`: an empty store."""

import json
import logging
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from datetime import UTC, datetime

from tools.local import LocalError
from tools.local.app import application, serve
from tools.local.folder import DataFolder, base_url
from tools.local.listener import listen_on_port
from tools.local.output import Output, open_log
from tools.local.service import examples, load_template, open_store

_say = logging.getLogger(__name__).info


def run() -> None:
    """Serve the API on this machine (PORT, DATA, WAF=true, AWS_ENDPOINT_URL_DYNAMODB)."""
    folder = DataFolder()
    logging.basicConfig(stream=sys.stdout, format="%(message)s")
    # A line that cannot be written, because whoever read stdout has gone, is lost; no request is.
    logging.raiseExceptions = False
    for name in (__package__, "uvicorn.access"):
        logging.getLogger(name).setLevel(logging.INFO)
    # `breakpoint()` in a request's thread would wait for stdin for ever: switch it off. A debugger
    # has a hook of its own.
    os.environ.setdefault("PYTHONBREAKPOINT", "0")
    with (
        port_and_folder(folder) as listener,
        open_log(folder.log) as log,
        redirect_stdout(Output(log)) as output,
        redirect_stderr(output),
        open_store(folder) as service,
    ):
        template = load_template(Waf=os.environ.get("WAF") or "false")
        app = application(service.gateway(template))
        port, key = listener.getsockname()[1], service.api_key(template)
        # A browser does not send what follows #.
        page = f"\nDocs: http://127.0.0.1:{port}/docs#key={key}"
        _say(greeting(base_url(port), key, page))
        serve(app, listener)


@contextmanager
def port_and_folder(folder: DataFolder) -> Iterator[socket.socket]:
    """Listen on PORT and hold the folder; one LocalError says what is wrong with either."""
    problems = []
    with ExitStack() as stack:
        try:
            listener = stack.enter_context(listen_on_port())
        except LocalError as error:
            problems.append(str(error))
        try:
            stack.enter_context(folder.held_by_service())
        except LocalError as error:
            problems.append(str(error))
        if problems:
            raise LocalError("\n".join(problems))
        yield listener


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
