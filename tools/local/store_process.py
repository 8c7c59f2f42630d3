"""The local store's process: ministack, limited to DynamoDB, on a free loopback port.

Run by the interpreter of ministack's own environment, never imported: `python store_process.py STATE_DIRECTORY`. It
writes its port as the first line of its stdout, and stops, its state written, when its stdin ends: so it goes with its
parent however that dies, on Linux and macOS alike. SIGTERM and SIGINT stop it in the same way.
"""

import asyncio
import os
import signal
import socket
import sys
import threading
import time

_CHECK_S = 0.05
_LAST_RESORT_S = 30  # for writing the state; after that the process ends whatever it is doing


def main() -> None:
    """Serve until stdin ends."""
    parent_gone = threading.Event()
    threading.Thread(target=_watch, args=[parent_gone], daemon=True).start()
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    os.environ.update(
        {
            "GATEWAY_PORT": str(port),
            "SERVICES": "dynamodb",
            "PERSIST_STATE": "1",
            "STATE_DIR": sys.argv[1],
            "LOG_LEVEL": "WARNING",
            # What else ministack would start or look for: a file server, a message broker, containers to clean up.
            "SFTP_ENABLED": "0",
            "IOT_MTLS_ENABLED": "0",
            "DOCKER_HOST": "unix:///nonexistent",
        }
    )
    print(port, flush=True)

    # Late, because ministack reads the variables above while it is imported.
    from hypercorn.asyncio import serve  # type: ignore[import-not-found]
    from hypercorn.config import Config  # type: ignore[import-not-found]
    from ministack.app import app  # type: ignore[import-not-found]

    config = Config()
    config.bind = [f"fd://{listener.fileno()}"]
    config.loglevel = "WARNING"
    config.keep_alive_timeout = 75
    config.graceful_timeout = 0.2  # only the parent's idle connections are left by then

    async def stopped() -> None:
        # Looked at, because a thread and a signal handler set it, and either may come before this loop runs.
        while not parent_gone.is_set():  # noqa: ASYNC110
            await asyncio.sleep(_CHECK_S)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: parent_gone.set())
    asyncio.run(serve(app, config, shutdown_trigger=stopped))


def _watch(parent_gone: threading.Event) -> None:
    while os.read(0, 1024):
        pass
    parent_gone.set()
    time.sleep(_LAST_RESORT_S)
    os._exit(1)


if __name__ == "__main__":
    main()
