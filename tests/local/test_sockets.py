"""Whatever bytes arrive: an Error object, or a closed connection; never a 5xx, never words of a library."""

import asyncio
import contextlib
import json
import re
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.processes import RunningService
from tools import ROOT
from tools.local import template
from tools.local.docs import Docs
from tools.local.gateway import Gateway
from tools.local.output import OutputLines
from tools.local.server import GatewayServer

HOST = b"Host: localhost\r\n"
CODE_OF_STATUS = {
    400: "invalid_request",
    401: "unauthorized",
    404: "not_found",
    413: "payload_too_large",
    415: "unsupported_media_type",
}


def head(line: bytes, *fields: bytes) -> bytes:
    return b"".join(part + b"\r\n" for part in (line, *fields)) + b"\r\n"


def get(path: bytes, *fields: bytes) -> bytes:
    return head(b"GET " + path + b" HTTP/1.1", b"Host: localhost", *fields)


def post(*fields: bytes, body: bytes = b"") -> bytes:
    return head(b"POST /v1/pets HTTP/1.1", b"Host: localhost", *fields) + body


REFUSED = {
    "garbage": b"\x00\x01\x02 garbage\r\n\r\n",
    "TLS": bytes.fromhex("16030100a5010000a10303") + bytes(200),
    "HTTP/0.9": b"GET /v1/pets\r\n\r\n",
    "HTTP/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "no Host": b"GET /v1/pets HTTP/1.1\r\n\r\n",
    "two Hosts": get(b"/v1/pets", b"Host: other"),
    "Host that is none": b"GET /v1/pets HTTP/1.1\r\nHost: a>b\r\n\r\n",
    "long request line": get(b"/" + b"a" * 9000),
    "request line without end": b"GET /" + b"a" * 1_000_000,
    "long header": get(b"/", b"X: " + b"a" * 20_000),
    "many headers": get(b"/", *(b"X%d: a" % number for number in range(1000))),
    "unknown method characters": head(b"G@T / HTTP/1.1", b"Host: localhost"),
    "path without slash": get(b"v1/pets"),
    "absolute form, bad host": get(b"http://[::1/v1/pets"),
    "raw byte in the path": get(b"/v1/pets/\xff"),
    "raw UTF-8 in the path": get("/v1/pets/é".encode()),
    "raw byte in the query": get(b"/v1/pets?limit=\xff"),
    "NUL in the path": get(b"/v1/pets/\x00"),
    "NUL in a header": get(b"/v1/pets", b"X: a\x00b"),
    "folded header": get(b"/v1/pets", b"X: a", b" b"),
    "space before the colon": get(b"/v1/pets", b"X : a"),
    "line feeds alone": b"GET /v1/pets HTTP/1.1\nHost: localhost\n\n",
    "Content-Length no number": post(b"Content-Length: abc"),
    "Content-Length negative": post(b"Content-Length: -1"),
    "Content-Length twice": post(b"Content-Length: 1", b"Content-Length: 2", body=b"ab"),
    "Content-Length and chunked": post(b"Content-Length: 3", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n"),
    "Content-Length beyond all numbers": post(b"Content-Length: 99999999999999999999999"),
    "chunk that is none": post(b"Transfer-Encoding: chunked", body=b"ZZ\r\n"),
    "unknown transfer coding": post(b"Transfer-Encoding: gzip"),
    "second of two requests is garbage": get(b"/v1/nothing") + b"\x00\r\n\r\n",
}
ANSWERED = {
    "unknown path": (get(b"/"), 404),
    "OPTIONS *": (head(b"OPTIONS * HTTP/1.1", b"Host: localhost"), 404),
    "OPTIONS": (head(b"OPTIONS /v1/pets HTTP/1.1", b"Host: localhost"), 404),
    "TRACE": (head(b"TRACE /v1/pets HTTP/1.1", b"Host: localhost"), 404),
    "CONNECT": (head(b"CONNECT example.com:443 HTTP/1.1", b"Host: localhost"), 404),
    "absolute form": (get(b"http://localhost/v1/pets"), 401),
    "absolute form without a path": (get(b"http://localhost"), 404),
    "absolute form with a query alone": (get(b"http://localhost?a"), 404),
    "another scheme": (get(b"ftp://localhost/v1/pets"), 404),
    "double slash": (get(b"//v1/pets"), 404),
    "dot segments": (get(b"/v1/../v1/pets"), 404),
    "trailing slash": (get(b"/v1/pets/"), 404),
    "encoded slash": (get(b"/v1/pets/a%2Fb"), 401),
    "encoded NUL": (get(b"/v1/pets/%00"), 401),
    "encoded byte that is not UTF-8": (get(b"/v1/pets/%FF"), 401),
    "percent sign alone": (get(b"/v1/pets/%ZZ"), 401),
    "header that is not ASCII": (get(b"/v1/pets", b"Authorization: Bearer \xff\xfe"), 401),
    "upgrade to WebSocket": (get(b"/v1/pets", b"Connection: Upgrade", b"Upgrade: websocket"), 401),
    "upgrade to HTTP/2": (get(b"/v1/pets", b"Connection: Upgrade", b"Upgrade: h2c"), 401),
    "HTTP/1.0 without Host": (b"GET /v1/pets HTTP/1.0\r\n\r\n", 401),
    "larger than the gateway takes": (post(b"Content-Length: 10485761"), 413),
}


def address(service: RunningService) -> tuple[str, int]:
    url = httpx.URL(service.base_url)
    assert url.port is not None
    return url.host, url.port


def exchange(target: tuple[str, int], sent: bytes) -> bytes:
    """Send bytes; the first answer, up to the end that its Content-Length gives."""
    received = b""
    with socket.create_connection(target, timeout=20) as connection:
        with contextlib.suppress(OSError):  # refused before all was sent
            connection.sendall(sent)
        while not complete(received):
            try:
                received += (chunk := connection.recv(65536))
            except ConnectionError:
                break
            if not chunk:
                break
    return received


def complete(received: bytes) -> bool:
    head, end, body = received.partition(b"\r\n\r\n")
    lengths = [line.split(b":")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
    return bool(end) and bool(lengths) and len(body) >= int(lengths[0])


def assert_error(received: bytes, status: int) -> None:
    head, _, body = received.partition(b"\r\n\r\n")
    error = json.loads(body)
    assert error.keys() == {"code", "message", "status"}
    assert (int(head.split()[1]), error["status"], error["code"]) == (status, status, CODE_OF_STATUS[status])
    fields = {line.lower() for line in head.decode().split("\r\n")}
    assert {
        "content-type: application/json",
        "cache-control: no-store",
        "x-content-type-options: nosniff",
    } <= fields


@pytest.mark.parametrize("sent", REFUSED.values(), ids=REFUSED.keys())
def test_what_is_not_http_is_refused(service: RunningService, sent: bytes) -> None:
    assert_error(exchange(address(service), sent), 400)


@pytest.mark.parametrize(("sent", "status"), ANSWERED.values(), ids=ANSWERED.keys())
def test_what_is_unusual_is_answered(service: RunningService, sent: bytes, status: int) -> None:
    assert_error(exchange(address(service), sent), status)


@pytest.mark.parametrize("sent", [b"", post(b"Content-Length: 10", body=b"{}")], ids=["nothing", "half a body"])
def test_client_that_goes_away(service: RunningService, sent: bytes) -> None:
    with socket.create_connection(address(service), timeout=20) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)

        assert connection.recv(1) == b""


def test_head_has_the_headers_of_an_error_and_no_body(service: RunningService) -> None:
    answer = httpx.head(service.base_url + "/pets")

    assert (answer.status_code, answer.content) == (404, b"")
    assert int(answer.headers["Content-Length"]) > 0


def test_continue_is_said_before_the_body(service: RunningService) -> None:
    fields = [b"Expect: 100-continue", b"Content-Length: 2", b"Content-Type: application/json"]
    with socket.create_connection(address(service), timeout=20) as connection:
        connection.sendall(post(*fields))
        assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(b"{}")

        assert_error(connection.recv(65536), 401)


def test_body_too_large_is_refused_while_it_comes(service: RunningService) -> None:
    chunk = b"100000\r\n" + b"a" * 0x100000 + b"\r\n"

    assert_error(exchange(address(service), post(b"Transfer-Encoding: chunked", body=chunk * 11)), 413)


def test_body_of_ten_megabytes_is_taken(service: RunningService) -> None:
    body = b" " * 10 * 1024 * 1024

    assert httpx.post(service.base_url + "/pets", content=body, timeout=30).status_code == 401


def test_requests_of_one_connection_are_answered_in_order(service: RunningService) -> None:
    with socket.create_connection(address(service), timeout=20) as connection:
        connection.sendall(get(b"/v1/pets") + get(b"/v1/nothing", b"Connection: close"))
        received = b""
        while chunk := connection.recv(65536):
            received += chunk

    assert re.findall(rb"HTTP/1\.1 (\d+)", received) == [b"401", b"404"]


@pytest.fixture
def bare() -> Iterator[Gateway]:
    """A gateway without functions."""
    loaded = template.Template(
        "local", (), {}, template.load(ROOT / "template.yaml", {"Stage": "x"}).gateway_responses, {}
    )
    with ThreadPoolExecutor(1) as executor:
        yield Gateway(loaded, {}, OutputLines(), executor)


def test_body_that_does_not_come_is_not_waited_for(bare: Gateway) -> None:
    async def talk() -> bytes:
        server = GatewayServer(bare, Docs(Path("none"), "/v1"), lambda *_: None, body_timeout_s=0.2)
        listener = socket.create_server(("127.0.0.1", 0))
        async with server.listen(listener), asyncio.timeout(5):
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            writer.write(post(b"Content-Length: 10", body=b"{"))
            received = await reader.read()
            writer.close()
        return received

    assert asyncio.run(talk()) == b""
