"""Amazon's DynamoDB Local, on loopback and in memory; the contract suite runs on it, too.

It needs Java and npm.
"""

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.processes import install_npm_packages


@contextmanager
def serve() -> Iterator[str]:
    """Run DynamoDB Local until the end of the block; yield its URL, which may not answer yet."""
    modules = install_npm_packages("dynamodb-local", "java")
    folder = modules / "amplify-dynamodb-simulator/emulator"
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = [
        "-Xmx512m",
        "-XX:TieredStopAtLevel=1",
        f"-Dport={port}",
        "-Djava.library.path=DynamoDBLocal_lib",
        "-cp",
        "DynamoDBLocal.jar:DynamoDBLocal_lib/*",
    ]
    configuration = Path(__file__).with_name("dynamodb-local.xml")
    main = ["org.eclipse.jetty.xml.XmlConfiguration", str(configuration)]
    with subprocess.Popen(["java", *options, *main], cwd=folder) as process:
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()
