"""`make run`: the whole service in this process, until Ctrl-C. `make reset`: an empty store."""

import logging
import os
import queue
import socket
import sys
import threading
import time
from contextlib import closing, redirect_stderr, redirect_stdout
from logging.handlers import QueueHandler, QueueListener
from pathlib import Path

from botocore.exceptions import ClientError

from tools import ROOT
from tools.local import LocalError
from tools.local.app import Application, serve
from tools.local.folder import DataFolder, base_url
from tools.local.output import Output, open_log
from tools.local.service import Store, load_template, open_store

_LAST_PORT = 65535
_IGNORED = """\
ignored a breakpoint: to stop there, run animal-store invoke EVENT, or this in VS Code"""
_WAITING = """\
New clients wait until others leave: the system is out of a resource, perhaps descriptors \
(ulimit -n)."""
_say = logging.getLogger(__name__).info


def run() -> None:
    """Serve the API on this machine (PORT, DATA, RELOAD=1, AWS_ENDPOINT_URL_DYNAMODB)."""
    folder = DataFolder()
    path = Path(os.environ.get("TEMPLATE") or ROOT / "template.yaml")
    _log_to_terminal()
    with (
        listen() as listener,
        folder.held_by_service() as service,
        closing(open_log(folder.log)) as log,
        redirect_stdout(Output(log)) as output,
        redirect_stderr(output),
        open_store(folder) as store,
    ):
        # As asyncio does for its own sockets: else each response waits 40 ms for the client's ACK.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        template = load_template(path)
        application = Application(store.load(template), output)
        if os.environ.get("RELOAD") == "1":
            arguments = [application, store, path]
            threading.Thread(target=_keep_reloaded, args=arguments, daemon=True).start()
        port, key = listener.getsockname()[1], store.key(template)
        origin = f"http://127.0.0.1:{port}"
        # A browser does not send what follows #.
        pages = f"\nDocs: {origin}/docs#key={key}\nStatus: {origin}/status"
        _say(greeting(base_url(port), key, pages))
        print(port, end="", file=service, flush=True)
        serve(application, listener)


def _log_to_terminal() -> None:
    """Log from a thread: a stopped terminal (Ctrl-S) or a full pipe delays no request."""
    logging.raiseExceptions = False  # what the queue has no room for is dropped
    lines: queue.Queue[logging.LogRecord] = queue.Queue(10_000)
    QueueListener(lines, logging.StreamHandler(sys.stdout)).start()
    logging.basicConfig(handlers=[QueueHandler(lines)], format="%(message)s")
    for name in (__package__, "uvicorn.access"):
        logging.getLogger(name).setLevel(logging.INFO)
    logging.getLogger("asyncio").addFilter(_Shortage())
    if sys.breakpointhook is sys.__breakpointhook__:  # no debugger has its own
        # Threads that answer requests have no terminal.
        sys.breakpointhook = lambda *_, **__: _say(_IGNORED)


class _Shortage(logging.Filter):
    """Says in a line a second that connections wait; asyncio writes a traceback for each try."""

    _said = 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        """Shorten such a record, and drop those that follow at once."""
        if "out of system resource" not in record.msg:
            return True
        if record.created - self._said < 1:
            return False
        self._said, record.msg, record.exc_info = record.created, _WAITING, None
        return True


def listen() -> socket.socket:
    """Listen on PORT of this machine, or say why that cannot be done."""
    port, why = os.environ.get("PORT") or "3000", "it is not a number from 0 to 65535"
    try:
        if port.isdecimal() and int(port) <= _LAST_PORT:
            return socket.create_server(("127.0.0.1", int(port)), backlog=128)
    except OSError as error:
        why = str(error)
    raise LocalError(
        f"cannot listen on port {port}: {why}. Use another: PORT=8080; any: PORT=0"
    )


def greeting(url: str, key: str, more: str = "") -> str:
    """Say where a service is, and how to call it."""
    header = f'-H "Authorization: Bearer {key}"'
    body = '{"name": "Rex", "categoryId": 1, "status": "available"}'
    return f"""\
Base URL: {url}
API key: {key}{more}

Try it (Ctrl-C stops the service; data survives restarts):
  curl -i {url}/pets {header} -H 'Content-Type: application/json' -d '{body}'
  curl -i '{url}/pets?status=available&limit=5' {header}
  curl -i {url}/pets/1 {header}
"""


def _keep_reloaded(application: Application, store: Store, template: Path) -> None:
    """Reload everything whenever a file of a function or a layer, or the template, changes."""
    seen = _modified(template)
    while True:
        time.sleep(0.3)
        try:
            found = _modified(template)
            if found != seen:
                seen = found
                application.gateway = store.load(load_template(template))
                _say("Reloaded.")
        except (LocalError, ClientError) as error:
            why = f"{error}; see {store.folder.log}"
            _say(f"Not reloaded, the old handlers still answer: {why}")
        except OSError:  # a file is being replaced
            continue


def _modified(template: Path) -> dict[Path, int]:
    folder = template.parent
    files = [*folder.glob("functions/**/*.py"), *folder.glob("layers/**/*.py")]
    return {file: file.stat().st_mtime_ns for file in [template, *files]}


def reset() -> None:
    """Empty the local store (DATA): rename it, so that the next start has an empty one."""
    folder = DataFolder()
    old = folder.path / f"store.{time.strftime('%Y%m%d-%H%M%S')}.old"
    if not folder.store.exists():
        raise LocalError(f"{folder.path} has no store, so there is nothing to empty.")
    with folder.held_by_service():
        folder.store.rename(old)
    print(f"{folder.path}: the store is now {old}; the next start has an empty one.")
