"""What the machine has no more of: a request is refused, the console says why, and all goes on."""

import resource
import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2

from tests.support.processes import (
    COMMAND,
    RunningService,
    environment,
    run_service,
    wait_for,
)
from tools import ROOT
from tools.local.folder import DataFolder

PET = {"name": "Rex", "categoryId": 1}


@contextmanager
def limited(service: RunningService, limit: int, most: int) -> Iterator[None]:
    """Let a service's process have no more than this of something."""
    process, (old, hard) = service.process.pid, resource.getrlimit(limit)
    resource.prlimit(process, limit, (most, hard))
    try:
        yield
    finally:
        resource.prlimit(process, limit, (old, hard))


def test_full_disk(service: RunningService) -> None:
    service.http.post("/pets", json=PET)
    stored = service.http.get("/pets").json()

    # No file of the service grows: neither the store nor the log, nor the console.
    with limited(service, resource.RLIMIT_FSIZE, 0):
        refused = service.http.post("/pets", json=PET)
        read = service.http.get("/pets")

    assert refused.status_code == 503
    assert read.json() == stored
    assert service.http.post("/pets", json=PET).status_code == 201


def test_full_disk_stops_a_command_and_is_named(tmp_path: Path) -> None:
    (tmp_path / "old").touch()
    command = ["prlimit", "--fsize=0", *COMMAND, "keys", "list"]
    own = environment(tmp_path)

    done = subprocess.run(
        command, check=False, cwd=ROOT, env=own, stderr=subprocess.PIPE, text=True
    )

    assert done.returncode == 1
    store = DataFolder(tmp_path).database
    assert done.stderr.startswith(f"{store} cannot be opened: ")
    assert done.stderr.endswith("The disk may be full, or the folder read-only.\n")


def test_no_more_threads(tmp_path: Path) -> None:
    with run_service(tmp_path) as service, ThreadPoolExecutor(20) as pool:
        status = Path(f"/proc/{service.process.pid}/statm").read_text()
        used = int(status.split()[0]) * resource.getpagesize()

        # A thread needs 8 MB of addresses for its stack.
        with limited(service, resource.RLIMIT_AS, used + 4_000_000):
            answers = [*pool.map(service.http.get, ["/pets"] * 60)]

        refused = [answer for answer in answers if answer.status_code != 200]
        assert {answer.status_code for answer in refused} == {502}
        assert service.http.get("/pets").status_code == 200
        reason = "RuntimeError: can't start new thread"
        wait_for(lambda: reason in service.console.read_text())
    assert "Traceback" not in service.console.read_text()


def test_no_more_descriptors(service: RunningService) -> None:
    url = httpx2.URL(service.base_url)
    begin = len(service.console.read_text())
    with ExitStack() as stack, limited(service, resource.RLIMIT_NOFILE, 64):
        for _ in range(80):
            stack.enter_context(socket.create_connection((url.host, url.port)))
        time.sleep(2)
        lines = service.console.read_text()[begin:].splitlines()

    assert 1 <= len(lines) <= 8
    for line in lines:
        assert line.startswith("New clients wait until others leave: [Errno 24] Too")
    wait_for(lambda: service.http.get("/pets").status_code == 200)
