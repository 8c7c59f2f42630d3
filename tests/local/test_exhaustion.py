"""What the machine has no more of: a request is refused, the console says why, and all goes on."""

import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.support.processes import RunningService, run_service, wait_for

PET = {"name": "Rex", "categoryId": 1}


@contextmanager
def limited(process: int, limit: int, most: int) -> Iterator[None]:
    """Let a process have no more than this of something."""
    own = resource.prlimit(process, limit)
    resource.prlimit(process, limit, (most, own[1]))
    try:
        yield
    finally:
        resource.prlimit(process, limit, own)


def test_full_disk(service: RunningService) -> None:
    service.http.post("/pets", json=PET)
    stored = service.http.get("/pets").json()

    # No file of the service grows: neither the store nor the log, nor the console.
    with limited(service.process.pid, resource.RLIMIT_FSIZE, 0):
        assert service.http.post("/pets", json=PET).status_code == 503
        assert service.http.get("/pets").json() == stored

    assert service.http.post("/pets", json=PET).status_code == 201


def test_full_disk_is_named(tmp_path: Path) -> None:
    code = f"""
from pathlib import Path
from lambda_local.dynamodb import Database
Database(Path("{tmp_path}/store"))
"""
    # No file of the process grows.
    limited_python = ["sh", "-c", 'ulimit -f 0; "$0" -c "$1"', sys.executable, code]

    done = subprocess.run(limited_python, check=False, stderr=subprocess.PIPE)

    assert b"store cannot be opened: " in done.stderr
    assert b"The disk may be full, or the folder" in done.stderr


def test_no_more_threads(tmp_path: Path) -> None:
    with run_service(tmp_path) as service:  # its threads are started by its requests
        process = service.process.pid
        pages, *_ = Path(f"/proc/{process}/statm").read_text().split()
        # A thread needs 8 MB of addresses for its stack.
        most = int(pages) * resource.getpagesize() + 4_000_000

        with limited(process, resource.RLIMIT_AS, most):
            assert service.http.get("/pets").status_code == 502

        assert service.http.get("/pets").status_code == 200
        reason = "RuntimeError: can't start new thread"
        wait_for(lambda: reason in service.console.read_text())
        assert "Traceback" not in service.console.read_text()


def test_no_more_descriptors(service: RunningService) -> None:
    address = service.http.base_url.host, service.http.base_url.port
    begin = len(service.console.read_text())
    process = service.process.pid
    with ExitStack() as stack, limited(process, resource.RLIMIT_NOFILE, 64):
        for _ in range(80):
            stack.enter_context(socket.create_connection(address))
        time.sleep(2)
        printed = service.console.read_text()[begin:]

    # asyncio tries 65 times a second
    assert 1 <= printed.count("New clients wait until others leave") <= 30
    assert "Traceback" not in printed
    wait_for(lambda: service.http.get("/pets").status_code == 200)
