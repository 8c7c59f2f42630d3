"""Starts Amazon's DynamoDB Local for a test: on loopback, in memory, and stopped at the end."""

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.processes import installed, wait_for

_CONFIGURATION = Path(__file__).with_name("dynamodb-local.xml")


@contextmanager
def dynamodb_local() -> Iterator[str]:
    """Give its URL, or skip the test where Java or npm is missing."""
    if not (shutil.which("java") and shutil.which("npm")):
        pytest.skip("DynamoDB Local needs Java 17 and npm")
    folder = (
        installed("dynamodb-local") / "node_modules/amplify-dynamodb-simulator/emulator"
    )
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [
        "java",
        "-Xmx512m",
        "-XX:TieredStopAtLevel=1",
        f"-Dport={port}",
        "-Djava.library.path=DynamoDBLocal_lib",
    ]
    command += [
        "-cp",
        "DynamoDBLocal.jar:DynamoDBLocal_lib/*",
        "org.eclipse.jetty.xml.XmlConfiguration",
    ]
    with subprocess.Popen([*command, str(_CONFIGURATION)], cwd=folder) as process:
        try:
            wait_for(lambda: process.poll() is not None or _is_open(port), 60)
            assert process.poll() is None, (
                "DynamoDB Local did not start; what it printed says why"
            )
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


def _is_open(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
