"""`make run`: the whole service on this machine, until Ctrl-C.

In this order, so that what can fail early does: the port, the data folder, the store (a child process, which starts
while the handlers are imported), the handlers, the tables, the key; then it serves.
"""

import asyncio
import errno
import os
import re
import signal
import socket
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tools import ROOT
from tools.local.store import (
    ENDPOINT_VARIABLE,
    DataFolder,
    LocalStore,
    RunningService,
    StoreError,
    client,
    create_tables,
    use_external_environment,
    use_local_environment,
    write_secret,
)

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

    from tools.local.gateway import Gateway
    from tools.local.output import OutputLines
    from tools.local.server import GatewayServer
    from tools.local.template import Template

HOST = "127.0.0.1"
STAGE = "local"
KEY_LABEL = "local"
KEY_TABLE = "ApiKeysTable"
_PARENT_CHECK_S = 0.5
_LONGEST_TARGET = 200
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class Settings:
    """What `make run` can be told, all of it through the environment.

    Args:
        port: To listen on; 0 takes a free one.
        data: The folder of its state.
        template: The SAM template to serve.
        reload: Whether handlers are loaded anew when a file changes.
        endpoint: Another DynamoDB than the child process.
        parent: A process with which this one ends, because it would not pass a signal on.
    """

    port: int = 3000
    data: Path = Path(".local")
    template: Path = ROOT / "template.yaml"
    reload: bool = False
    endpoint: str | None = None
    parent: int | None = None

    @classmethod
    def from_environment(cls) -> "Settings":
        """Read the variables.

        Raises:
            StoreError: PORT is no port.
        """
        port = os.environ.get("PORT") or "3000"
        if not (port.isascii() and port.isdigit() and int(port) < 1 << 16):
            raise StoreError(f"PORT={port} is no port: give a number from 0 (any free one) to 65535")
        return cls(
            port=int(port),
            data=Path(os.environ.get("DATA") or ".local"),
            template=Path(os.environ.get("TEMPLATE") or ROOT / "template.yaml"),
            reload=os.environ.get("RELOAD", "") not in {"", "0"},
            endpoint=os.environ.get(ENDPOINT_VARIABLE) or None,
            # `make` that is killed outright leaves its recipes running.
            parent=os.getppid() if os.environ.get("MAKELEVEL") else None,
        )


class Interrupted(BaseException):
    """A signal asks to end before the service serves."""


def main() -> int:
    """Serve until a signal ends it.

    Returns:
        The exit status: 0 after a signal, 1 after a failure that has been explained.
    """
    for number in _SIGNALS:
        signal.signal(number, _interrupt)
    try:
        with ExitStack() as stack:
            return _run(Settings.from_environment(), stack)
    except Interrupted:
        return 0
    except (StoreError, OSError) as error:  # OSError: a full disk, a file of its folder that cannot be written
        say(f"make run: {error}")
        return 1


def _interrupt(*_: object) -> None:
    raise Interrupted


def say(text: str) -> None:
    """Print a line for the person at the terminal at once; a terminal that is gone is no reason to fail."""
    with suppress(OSError):
        print(text, flush=True)


def _run(settings: Settings, stack: ExitStack) -> int:
    listener = stack.enter_context(_bind(settings.port))
    folder = DataFolder(settings.data)
    lock = stack.enter_context(folder.locked())
    folder.withdraw()  # what a killed one left
    store = start_store(settings, folder, lock, stack)

    # Late, while the store starts: these take longer to import than it takes to start.
    say("Loading the functions ...")
    from tools.local.functions import LoadError
    from tools.local.output import LogFile, OutputLines
    from tools.local.template import TemplateError

    output = OutputLines(LogFile(folder.path / "functions.log"))
    output.install()
    try:
        gateway = _load(settings, output)
    except (LoadError, TemplateError) as error:
        raise StoreError(str(error)) from error
    if store:
        store.wait_until_ready()
    key = prepare(gateway.template, folder)
    status = asyncio.run(_Service(settings, folder, store, gateway, key).serve(listener))
    if store and not store.ended():
        store.stop()
        store.check_written()
    return status


def _bind(port: int) -> socket.socket:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise StoreError(
                f"port {port} is taken. Take another (make run PORT=8080), or any free one (PORT=0)"
            ) from error
        raise StoreError(f"cannot listen on port {port}: {error.strerror}") from error
    return listener


def start_store(settings: Settings, folder: DataFolder, lock: int, stack: ExitStack) -> LocalStore | None:
    """Start the local store, stopped with the stack, or use the one that AWS_ENDPOINT_URL_DYNAMODB names.

    Returns:
        The local store, when there is one.
    """
    if settings.endpoint:
        say(f"Using the DynamoDB at {settings.endpoint}")
        use_external_environment(settings.endpoint)
        return None
    say("Starting the local store ...")
    store = LocalStore(folder, lock)
    stack.callback(store.stop)
    use_local_environment(store.endpoint)
    return store


def _load(settings: Settings, output: "OutputLines") -> "Gateway":
    from tools.local import template
    from tools.local.gateway import Gateway

    return Gateway.of(template.load(settings.template, {"Stage": STAGE}), output)


def prepare(template: "Template", folder: DataFolder) -> str:
    """Create the tables, and the key of this machine.

    Returns:
        The key.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    dynamodb = client()
    try:
        create_tables(dynamodb, template.tables.values())
        return _key(dynamodb, template, folder.path / "api-key")
    except (BotoCoreError, ClientError) as error:
        raise StoreError(
            f"the store at {os.environ[ENDPOINT_VARIABLE]} does not answer as it should: {error}"
        ) from error


def _key(dynamodb: "DynamoDBClient", template: "Template", path: Path) -> str:
    """Find or make the key that is shown at the start; one that an emptied store does not know is made known again."""
    from animal_store import api_key

    from tools.admin.key_table import KeyRecord, KeyTable

    if KEY_TABLE not in template.tables:
        return ""
    keys = KeyTable(dynamodb, template.tables[KEY_TABLE].name)
    key = path.read_text("utf-8", "replace").strip() if path.exists() else ""
    if api_key.is_well_formed(key):
        path.chmod(0o600)
        record = keys.get(api_key.digest(key))
        if record is None:
            keys.put(KeyRecord(api_key.digest(key), KEY_LABEL, int(time.time())))
            return key
        if record.state(time.time()) == "active":
            return key
    key, _ = keys.issue(KEY_LABEL, "test", shared_label=True)
    write_secret(path, key + "\n")
    return key


class _Service:
    """The service while it serves."""

    def __init__(
        self, settings: Settings, folder: DataFolder, store: LocalStore | None, gateway: "Gateway", key: str
    ) -> None:
        self._settings = settings
        self._folder = folder
        self._store = store
        self._gateway = gateway
        self._key = key
        self._stopping = asyncio.Event()
        self._status = 0

    async def serve(self, listener: socket.socket) -> int:
        """Serve until a signal, or until the store ends by itself.

        Returns:
            The exit status.
        """
        from tools.local.docs import Docs
        from tools.local.metrics import Metrics
        from tools.local.pages import Pages
        from tools.local.server import GatewayServer
        from tools.local.status import StatusPage

        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._stopping.set)
        base_path = self._gateway.template.base_path
        metrics = Metrics()
        self._gateway.output.sinks.append(metrics)
        pages = Pages(Docs(ROOT / "openapi.yaml", base_path), StatusPage(metrics))
        server = GatewayServer(self._gateway, pages, _log_request)
        async with server.listen(listener), asyncio.TaskGroup() as tasks:
            tasks.create_task(self._watch_processes())
            if self._settings.reload:
                tasks.create_task(self._reload(server, self._gateway.template))
                tasks.create_task(self._reload_template(server))
                await asyncio.sleep(0)  # both watch from here on, so that no change after the announcement is missed
            self._announce(f"http://{HOST}:{listener.getsockname()[1]}", base_path)
            await self._stopping.wait()
            self._folder.withdraw()
        for number in _SIGNALS:  # it is ending already, and the store is to write its state
            loop.remove_signal_handler(number)  # the loop would otherwise put Python's own back
            signal.signal(number, signal.SIG_IGN)
        return self._status

    def _announce(self, origin: str, base_path: str) -> None:
        base_url = origin + base_path
        tables = {name: table.name for name, table in self._gateway.template.tables.items()}
        say(f"Base URL: {base_url}")
        say(f"API key: {self._key}")
        say(f"Docs: {origin}/docs")
        say(f"Status: {origin}/status")
        header = f'-H "Authorization: Bearer {self._key}"'
        body = '{"name": "Rex", "categoryId": 1, "status": "available"}'
        say("\nTry it (Ctrl-C stops the service, what it stores stays):")
        say(f"  curl -i {base_url}/pets {header} -H 'Content-Type: application/json' -d '{body}'")
        say(f"  curl -i '{base_url}/pets?status=available&limit=5' {header}")
        say(f"  curl -i {base_url}/pets/1 {header}\n")
        endpoint = os.environ[ENDPOINT_VARIABLE]
        self._folder.announce(RunningService(os.getpid(), base_url, endpoint, self._store is not None, tables))

    async def _watch_processes(self) -> None:
        """Stop with the parent, and with the store."""
        while not self._stopping.is_set():
            if self._store and self._store.ended():
                say(f"make run: the local store ended; see {self._folder.path / 'store.log'}")
                self._status = 1
                self._stopping.set()
            if self._settings.parent not in {None, os.getppid()}:
                self._stopping.set()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), _PARENT_CHECK_S)

    async def _reload(self, server: "GatewayServer", template: "Template") -> None:
        """Load the handlers anew when a file of theirs or of a layer changes."""
        from watchfiles import awatch

        folders = {folder for function in template.functions.values() for folder in (function.code, *function.layers)}
        async for _ in awatch(*folders, stop_event=self._stopping):
            await self._exchange(server)

    async def _reload_template(self, server: "GatewayServer") -> None:
        """Load everything anew when the template changes; its folder is watched, because editors replace the file."""
        from watchfiles import awatch

        template = self._settings.template.resolve()
        async for changes in awatch(template.parent, stop_event=self._stopping, recursive=False):
            if any(Path(path) == template for _, path in changes):
                await self._exchange(server)

    async def _exchange(self, server: "GatewayServer") -> None:
        from tools.local.functions import LoadError
        from tools.local.template import TemplateError

        old = server.gateway
        try:
            new = await asyncio.to_thread(_load, self._settings, old.output)
            await asyncio.to_thread(prepare, new.template, self._folder)
        except (LoadError, TemplateError, StoreError) as error:
            say(f"Not reloaded, the handlers from before stay: {error}")
            return
        server.gateway = new
        say("Reloaded.")


def _log_request(method: str, target: str, status: int, seconds: float) -> None:
    target = re.sub(r"(animal_(?:live|test)_)[0-9A-Za-z]+", r"\1...", target)  # a key in the query string
    shown = "".join(character if character.isprintable() else f"\\x{ord(character):02x}" for character in target)
    if len(shown) > _LONGEST_TARGET:
        shown = shown[:_LONGEST_TARGET] + "..."
    say(f"{time.strftime('%H:%M:%S')}  {status}  {method} {shown}  {seconds * 1000:.0f} ms")


def reset() -> int:
    """Empty the local store; the key of this machine is made known to it again at the next start.

    Returns:
        The exit status.
    """
    try:
        folder = DataFolder(Settings.from_environment().data)
        with folder.locked():
            folder.empty()
    except (StoreError, OSError) as error:
        say(f"make reset: {error}")
        return 1
    say(f"The local store in {folder.path} is empty.")
    return 0
