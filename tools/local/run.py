"""`make run`: the whole service in this process, until Ctrl-C. `make reset`: an empty store."""

import errno
import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from tools import ROOT
from tools.local import LocalError
from tools.local.folder import DataFolder
from tools.local.output import Metrics, log_to_terminal, redirected, show_exception

HOST = "127.0.0.1"
_CHECK_S = 0.3
_LAST_PORT = 65535
_say = logging.getLogger(__name__).info


def main() -> int:
    """Serve until a signal ends the process; return 1 after a failure has been explained."""
    try:
        with ExitStack() as stack:
            _run(stack)
    except (
        LocalError,
        OSError,
    ) as error:  # OSError: a full disk, a file of the folder that cannot be written
        print(f"make run: {error}")
    return 1


def _run(stack: ExitStack) -> None:
    folder = DataFolder()
    listener = stack.enter_context(listen(os.environ.get("PORT") or "3000"))
    # As asyncio does for its own sockets: else each response waits 40 ms for the client's ACK.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    service = stack.enter_context(folder.held_by_service())

    # Late: these take longer than to find that the port or the folder is taken.
    from tools.local.app import Application, server
    from tools.local.service import base_path, load_template, open_store

    metrics, path = (
        Metrics(),
        Path(os.environ.get("TEMPLATE") or ROOT / "template.yaml"),
    )
    log = stack.enter_context(
        folder.log.open("w", encoding="utf-8", errors="backslashreplace", buffering=1)
    )
    log_to_terminal()
    stack.enter_context(
        redirected(log.write, metrics, partial(show_exception, _say, folder.log))
    )
    store, template = stack.enter_context(open_store(folder)), load_template(path)
    application = Application(store.load(template), metrics)
    origin, key = f"http://{HOST}:{listener.getsockname()[1]}", store.key(template)

    def reload() -> None:
        application.gateway = store.load(load_template(path))

    if os.environ.get("RELOAD", "0") not in {"", "0"}:
        threading.Thread(
            target=_keep_reloaded, args=[reload, path, folder.log], daemon=True
        ).start()
    print(origin + base_path(template), end="", file=service, flush=True)
    pages = f"\nDocs: {origin}/docs\nStatus: {origin}/status"
    _say(greeting(origin + base_path(template), key, pages))
    server(application).run(sockets=[listener])


def listen(port: str) -> socket.socket:
    """Listen on a port of this machine, or say why that cannot be done."""
    why = "it is not a number from 0 to 65535"
    try:
        if port.isdecimal() and int(port) <= _LAST_PORT:
            return socket.create_server((HOST, int(port)), backlog=128)
    except OSError as error:
        why = "it is taken" if error.errno == errno.EADDRINUSE else str(error)
    raise LocalError(
        f"cannot listen on port {port}: {why}. Use another: PORT=8080; any: PORT=0"
    )


def greeting(base_url: str, key: str, more: str = "") -> str:
    """Say where a service is, and how to call it."""
    header = f'-H "Authorization: Bearer {key}"'
    body = '{"name": "Rex", "categoryId": 1, "status": "available"}'
    return f"""\
Base URL: {base_url}
API key: {key}{more}

Try it (Ctrl-C stops the service; data survives restarts):
  curl -i {base_url}/pets {header} -H 'Content-Type: application/json' -d '{body}'
  curl -i '{base_url}/pets?status=available&limit=5' {header}
  curl -i {base_url}/pets/1 {header}
"""


def _keep_reloaded(reload: Callable[[], None], template: Path, log: Path) -> None:
    """Load everything again whenever a file of a function, a layer or the template changes."""
    seen: dict[Path, int] = {}
    while True:
        with suppress(OSError):  # a file is being replaced
            files = [
                template,
                *template.parent.glob("functions/**/*.py"),
                *template.parent.glob("layers/**/*.py"),
            ]
            before, seen = seen, {file: file.stat().st_mtime_ns for file in files}
            try:
                if before not in ({}, seen):
                    reload()
                    _say("Reloaded.")
            except LocalError as error:
                _say(f"Not reloaded, the old handlers still answer: {error}; see {log}")
        time.sleep(_CHECK_S)


def reset() -> int:
    """Give the local store another name; the next start makes this machine's key known again."""
    folder = DataFolder()
    if not folder.store.exists():
        print(f"make reset: {folder.path} has no store, so there is nothing to empty.")
        return 1
    try:
        with folder.held_by_service():
            old = folder.store.rename(
                folder.path / f"store.{datetime.now(UTC):%Y%m%d-%H%M%S-%f}.old"
            )
    except (LocalError, OSError) as error:
        print(f"make reset: {error}")
        return 1
    print(f"{folder.path}: the store is now {old}; the next start has an empty one.")
    return 0
