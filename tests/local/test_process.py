"""`animal-store` started by a shell, script or terminal that has set something for its process."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from unittest import mock

import httpx2
import pytest

from ops.__main__ import main
from tests.support.processes import environment
from tests.support.waiting import wait_for
from tools import ROOT


@contextmanager
def service(data: Path, script: str) -> Iterator[tuple[int, str]]:
    """Run a bash script that starts `$SERVICE`; yield the process group and the service's URL."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    python = Path(sys.executable)  # its path may have a space, its name has none
    variables = environment(
        PORT=str(port),
        DATA=str(data),
        SERVICE=f"{python.name} -m ops run",
        PATH=f"{python.parent}:{os.environ['PATH']}",
    )
    with subprocess.Popen(
        ["bash", "-c", script], cwd=ROOT, env=variables, start_new_session=True
    ) as process:
        try:
            wait_for(lambda: listens(port), 60)
            yield process.pid, f"http://127.0.0.1:{port}/v1/pets"
        finally:
            os.killpg(process.pid, signal.SIGTERM)


def listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


@pytest.mark.parametrize(
    "script",
    [
        "$SERVICE | head -1",
        pytest.param("$SERVICE >/dev/full 2>&1", marks=pytest.mark.slow),
        pytest.param("$SERVICE >&- 2>&-", marks=pytest.mark.slow),
    ],
)
def test_requests_are_answered_though_nobody_reads_the_output(
    tmp_path: Path, script: str
) -> None:
    with service(tmp_path, script) as (_, url):
        statuses = [httpx2.get(url, timeout=10).status_code for _ in range(3)]

    assert statuses == [401, 401, 401]


@pytest.mark.slow
def test_nohup_keeps_the_service_when_its_terminal_goes(tmp_path: Path) -> None:
    with service(tmp_path, "exec nohup $SERVICE") as (group, url):
        os.killpg(group, signal.SIGHUP)
        time.sleep(0.5)
        assert httpx2.get(url, timeout=10).status_code == 401


@pytest.fixture
def _signals() -> Iterator[None]:
    """Put back what `main` changes of this process's signals."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)
    handlers = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, handlers, strict=True):
        signal.signal(number, handler)


@pytest.mark.usefixtures("_signals")
def test_failed_program_is_noticed_where_sigchld_was_ignored() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)

    def app(**_: str) -> None:
        subprocess.run(["false"], check=True)

    with mock.patch("ops.cli.app", app), pytest.raises(SystemExit, match="false"):
        main()


@pytest.mark.usefixtures("_signals")
@pytest.mark.parametrize("name", ["PYTHONSAFEPATH", "PYTHONPATH", "PYTHONOPTIMIZE"])
def test_programs_do_not_inherit_settings_of_python(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "1")

    with mock.patch("ops.cli.app"):
        main()

    assert name not in os.environ
