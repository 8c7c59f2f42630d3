"""`make run`: the whole service in this process, until Ctrl-C. `make reset`: an empty store."""

import errno
import gc
import logging
import os
import signal
import socket
import sys
import threading
import time
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools import ROOT
from tools.local import LocalError
from tools.local.folder import DataFolder
from tools.local.output import Terminal, errors, redirected

if TYPE_CHECKING:
    from tools.local.app import Application
    from tools.local.service import Store

HOST = "127.0.0.1"
_CHECK_S = 0.3
_LARGEST_PORT = 65535
_UNAUTHORIZED = 401
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main() -> int:
    """Serve until a signal ends it; the exit status is 1 after a failure that has been explained."""
    for number in _SIGNALS:  # nothing is lost: what was answered is on disk
        signal.signal(number, lambda *_: os._exit(0))
    terminal = Terminal(sys.stdout)
    try:
        with ExitStack() as stack:
            _run(terminal, stack)
    except (LocalError, OSError) as error:  # OSError: a full disk, a file of the folder that cannot be written
        terminal.say(f"make run: {error}")
        return 1
    finally:
        terminal.close()
    return 0


def _run(terminal: Terminal, stack: ExitStack) -> None:
    folder = DataFolder()
    listener = stack.enter_context(_listen(os.environ.get("PORT") or "3000"))
    # asyncio does this for sockets that it makes itself. Without it each response waits 40 ms for the client's ACK.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    stack.enter_context(folder.locked())

    # Late: these take longer than to find that the port or the folder is taken. Collecting garbage, of which there is
    # none yet, would be 5 % of the start.
    gc.disable()
    import uvicorn

    from tools.local.app import Application
    from tools.local.service import load_template, open_store
    from tools.local.status import Metrics

    metrics, path = Metrics(), Path(os.environ.get("TEMPLATE") or ROOT / "template.yaml")
    stack.enter_context(redirected(metrics, errors(terminal.say, folder.log), log=folder.log))
    store, template = stack.enter_context(open_store(folder)), load_template(path)
    application = Application(store.load(template), metrics, partial(_log_request, terminal))
    base_url, key = f"http://{HOST}:{listener.getsockname()[1]}{template.base_path}", store.key(template)

    logging.getLogger("uvicorn").addHandler(terminal)
    settings: dict[str, Any] = {
        "log_config": None,
        "log_level": logging.WARNING,
        "proxy_headers": False,
        "server_header": False,
    }
    server = uvicorn.Server(
        uvicorn.Config(application, ws="none", lifespan="off", timeout_graceful_shutdown=1, **settings)
    )
    for number in _SIGNALS:
        signal.signal(number, server.handle_exit)
    if parent := os.environ.get("PARENT"):
        threading.Thread(target=_end_with, args=[int(parent)], daemon=True).start()
    if os.environ.get("RELOAD", "") not in {"", "0"}:
        threading.Thread(target=_reload, args=[path, store, application, terminal], daemon=True).start()
    gc.freeze()
    gc.enable()
    folder.announce(base_url)
    terminal.say(_greeting(base_url, base_url.removesuffix(template.base_path), key))
    server.run(sockets=[listener])


def _listen(port: str) -> socket.socket:
    if not (port.isascii() and port.isdigit() and int(port) <= _LARGEST_PORT):
        raise LocalError(f"PORT must be 0 (any free port) to {_LARGEST_PORT}, not {port}")
    try:
        return socket.create_server((HOST, int(port)), backlog=128)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise LocalError(
                f"port {port} is taken. Use another: make run PORT=8080, or any free one: PORT=0"
            ) from error
        raise LocalError(f"cannot listen on port {port}: {error.strerror}") from error


def _greeting(base_url: str, origin: str, key: str) -> str:
    header = f'-H "Authorization: Bearer {key}"'
    body = '{"name": "Rex", "categoryId": 1, "status": "available"}'
    return f"""\
Base URL: {base_url}
API key: {key}
Docs: {origin}/docs
Status: {origin}/status

Try it (Ctrl-C stops the service; data survives restarts):
  curl -i {base_url}/pets {header} -H 'Content-Type: application/json' -d '{body}'
  curl -i '{base_url}/pets?status=available&limit=5' {header}
  curl -i {base_url}/pets/1 {header}
"""


def _log_request(terminal: Terminal, method: str, target: str, status: int, seconds: float) -> None:
    hint = "  (needs: Authorization: Bearer API_KEY)" if status == _UNAUTHORIZED else ""
    terminal.say(f"{time.strftime('%H:%M:%S')}  {status}  {method} {target}  {seconds * 1000:.0f} ms{hint}")


def _end_with(parent: int) -> None:
    """End when the parent does: `make` that is killed leaves its recipes running."""
    while os.getppid() == parent:
        time.sleep(_CHECK_S)
    os.kill(os.getpid(), signal.SIGTERM)


def _reload(path: Path, store: "Store", application: "Application", terminal: Terminal) -> None:
    """Load everything again whenever a file of a function, a layer or the template changes."""
    from tools.local.service import load_template

    seen = _versions(path, application)
    while True:
        time.sleep(_CHECK_S)
        if (found := _versions(path, application)) == seen:
            continue
        seen = found
        try:
            application.gateway = store.load(load_template(path))
            terminal.say("Reloaded.")
        except LocalError as error:
            terminal.say(f"Not reloaded, the old handlers still answer: {error}; see {store.folder.log}")


def _versions(template: Path, application: "Application") -> dict[Path, int]:
    """Return when each file was changed that a reload would read."""
    functions = application.gateway.template.functions.values()
    folders = {folder for function in functions for folder in (function.code, *function.layers)}
    files = [template, *(file for folder in folders for file in folder.rglob("*.py"))]
    with suppress(OSError):  # replaced at this moment
        return {file: file.stat().st_mtime_ns for file in files}
    return {}


def reset() -> int:
    """Give the local store another name; the key of this machine is made known to the new one at the next start."""
    folder = DataFolder()
    try:
        with folder.locked():
            print(f"{folder.path}: the store is now {folder.move_store_away()}; the next start has an empty one.")
    except (LocalError, OSError) as error:
        print(f"make reset: {error}")
        return 1
    return 0
