"""Run a function under Lambda's own runtime client, and measure what its process uses.

Runtime API: https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html
"""

import json
import os
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import trustme

from tests.support.handlers import DATABASE, TEMPLATE, Event

AUTHORITY = trustme.CA(key_type=trustme.KeyType.RSA)
"""What every measured function trusts, besides Amazon's roots."""

_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
AUTHORITY.issue_cert("127.0.0.1", key_type=trustme.KeyType.RSA).configure_cert(_TLS)

# Addresses are not randomised: the counts would differ.
_COUNT = ["setarch", "-R", "valgrind", "--tool=cachegrind", "--cache-sim=no"]
_COUNT += ["--cachegrind-out-file=/dev/null"]

# As Lambda sets them: https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html
_VARIABLES = {
    "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "AWS_SESSION_TOKEN": "benchmark" * 40,  # as long as one of Lambda's
    "AWS_DEFAULT_REGION": "eu-central-1",
    "AWS_LAMBDA_LOG_FORMAT": "JSON",
    "PATH": os.defpath,
    # Not Lambda's: there packages are read-only, and the order of sets differs from run to run.
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
}
_INVOCATION = {
    "Content-Type": "application/json",
    "Lambda-Runtime-Aws-Request-Id": "8476a536-e9f4-11e8-9739-2dfe598c3fcd",
    "Lambda-Runtime-Deadline-Ms": "4102444800000",  # as far ahead as a slow simulator needs
}

Response = tuple[int, dict[str, str], bytes]
"""A status, headers and a body."""


def count(task: Path, libraries: str, event: Event, invocations: int) -> int:
    """Start a function, invoke it as often as asked, check its answers, and end it.

    Args:
        task: The folder of its `app.py`; the folder above has the authorities that it trusts.
        libraries: Where Python looks for modules: folders, separated by colons.
        event: What it is invoked with.
        invocations: How often.

    Returns:
        The instructions outside the kernel of its process, from its start on.
    """
    answers = []

    def runtime_api(path: str, _: Message, body: bytes) -> Response:
        if not path.endswith("/next"):
            answers.append(json.loads(body))
            return 202, {}, b""
        if len(answers) < invocations:
            return 200, _INVOCATION, json.dumps(event).encode()
        process.terminate()
        return 410, {}, b""

    # Without this interpreter's own libraries.
    command = [
        os.path.realpath(sys.executable),
        "-S",
        "-m",
        "awslambdaric",
        "app.handler",
    ]
    variables = {
        "AWS_CA_BUNDLE": f"{task}/../authorities.pem",
        "AWS_ENDPOINT_URL_DYNAMODB": f"https://127.0.0.1:{_serve(_dynamodb, _TLS)}",
        "AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{_serve(runtime_api)}",
        "LAMBDA_TASK_ROOT": str(task),
        "PYTHONPATH": libraries,
    }
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            _COUNT + command,
            cwd=task,
            env=TEMPLATE.environment | _VARIABLES | variables,
            stdout=log,
            stderr=log,
        )
        process.wait()
        log.seek(0)
        text = log.read()
    right = [answer for answer in answers if answer.get("statusCode") in {200, 201}]
    if len(right) < invocations:
        raise SystemExit(
            f"{task} does not answer as it should: {answers[:1]}\n{text[-3000:]}"
        )
    return int(text.rpartition(" refs:")[2].split()[0].replace(",", ""))


def _dynamodb(_: str, headers: Message, body: bytes) -> Response:
    request: Any = SimpleNamespace(url="", body=body)
    answer = DATABASE.answer(headers["X-Amz-Target"], request)
    sent = {"Content-Type": "application/x-amz-json-1.0", **answer.headers}
    return answer.status_code, sent, answer.content


def _serve(
    respond: Callable[[str, Message, bytes], Response],
    tls: ssl.SSLContext | None = None,
) -> int:
    """Answer requests by path, headers and body until the program ends; return the port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # one packet for headers and body

        def handle(self) -> None:
            with suppress(OSError):  # the client was terminated
                super().handle()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, headers, answer = respond(self.path, self.headers, body)
            self.send_response_only(status)
            for name, value in (headers | {"Content-Length": str(len(answer))}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls:
        server.socket = tls.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port
