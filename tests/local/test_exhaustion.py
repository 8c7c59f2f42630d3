"""What the machine has no more of: a request is refused, the console says why, and all goes on."""

import resource
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.support.processes import COMMAND, RunningService, environment, run, wait_for
from tools import ROOT

PET = {"name": "Rex", "categoryId": 1}


@contextmanager
def limited(service: RunningService, limit: int, most: int) -> Iterator[None]:
    """Let a service's process have no more than this of something."""
    process = service.process.pid
    old = resource.prlimit(process, limit)
    resource.prlimit(process, limit, (most, old[1]))
    try:
        yield
    finally:
        resource.prlimit(process, limit, old)


def test_full_disk(service: RunningService) -> None:
    service.http.post("/pets", json=PET)
    stored = service.http.get("/pets").json()

    # No file of the service grows: neither the store nor the log, nor the console.
    with limited(service, resource.RLIMIT_FSIZE, 0):
        assert service.http.post("/pets", json=PET).status_code == 503
        assert service.http.get("/pets").json() == stored

    assert service.http.post("/pets", json=PET).status_code == 201


def test_full_disk_stops_a_command_and_is_named(tmp_path: Path) -> None:
    (tmp_path / "old").touch()
    own = environment(tmp_path)
    message = "dynamodb.sqlite cannot be opened: .* The disk may be full, or the folder"

    with pytest.raises(AssertionError, match=message):
        run(
            "prlimit",
            "--fsize=0",
            *COMMAND,
            "keys",
            "list",
            cwd=ROOT,
            timeout_s=60,
            **own,
        )


def test_no_more_threads(service: RunningService) -> None:
    status = Path(f"/proc/{service.process.pid}/statm").read_text()
    used = int(status.split()[0]) * resource.getpagesize()

    # A thread needs 8 MB of addresses for its stack.
    with (
        limited(service, resource.RLIMIT_AS, used + 4_000_000),
        ThreadPoolExecutor(60) as pool,
    ):
        answers = [*pool.map(service.http.get, ["/pets"] * 60)]

    assert {answer.status_code for answer in answers} - {200} == {502}
    assert service.http.get("/pets").status_code == 200
    reason = "RuntimeError: can't start new thread"
    wait_for(lambda: reason in service.console.read_text())
    assert "Traceback" not in service.console.read_text()


def test_no_more_descriptors(service: RunningService) -> None:
    address = service.http.base_url.host, service.http.base_url.port
    begin = len(service.console.read_text())
    with ExitStack() as stack, limited(service, resource.RLIMIT_NOFILE, 64):
        for _ in range(80):
            stack.enter_context(socket.create_connection(address))
        time.sleep(2)
        lines = service.console.read_text()[begin:].splitlines()

    assert 1 <= len(lines) <= 8
    assert {line[:35] for line in lines} == {"New clients wait until others leave"}
    wait_for(lambda: service.http.get("/pets").status_code == 200)
