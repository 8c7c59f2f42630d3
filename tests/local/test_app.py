"""The ASGI application: who is answered, and where its document says that it is."""

import socket

import pytest

from tests.support.processes import RunningService
from tests.support.waiting import wait_for
from tools.local.listener import listen


def test_only_names_of_this_machine_are_answered(service: RunningService) -> None:
    other = {"Host": "127.0.0.1.evil.example"}

    assert service.http.get("/pets", headers={"Host": "localhost"}).is_success
    assert service.http.get("/pets", headers=other).status_code == 400


def test_the_document_names_this_server(service: RunningService) -> None:
    document = service.http.get(f"{service.origin}/openapi.yaml").text

    assert f"\nservers:\n- url: {service.base_url}\n" in document


def send(service: RunningService, target: str, host: str) -> bytes:
    """Send a GET with this request target; return the status and reason of the answer."""
    port = service.http.base_url.port
    lines = [
        f"GET {target.replace('PORT', str(port))} HTTP/1.1",
        f"Host: {host}",
        f"Authorization: Bearer {service.api_key}",
        "Connection: close",
    ]
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        return connection.makefile("rb").readline().removeprefix(b"HTTP/1.1 ").rstrip()


@pytest.mark.parametrize(
    "target",
    [
        "http://127.0.0.1:PORT/v1/pets",
        "HTTP://LOCALHOST:PORT/v1/pets?limit=1",
        "http://127.0.0.1:PORT/openapi.yaml",
        "http://127.0.0.1/v1/pets/",
    ],
)
def test_target_in_absolute_form_is_answered(
    service: RunningService, target: str
) -> None:
    """Its host counts, not the header's (RFC 9112, section 3.2.2)."""
    assert send(service, target, host="other.example") == b"200 OK"


def test_absolute_form_with_another_host_is_refused(service: RunningService) -> None:
    target = "http://other.example/v1/pets"

    assert send(service, target, host="127.0.0.1") == b"400 Bad Request"


def test_client_does_not_choose_its_address(service: RunningService) -> None:
    headers = {"X-Forwarded-For": "192.0.2.1", "X-Forwarded-Proto": "https"}

    service.http.get("/pets?limit=17", headers=headers)

    wait_for(lambda: "limit=17" in service.console.read_text())
    assert "192.0.2.1" not in service.console.read_text()


def test_answers_do_not_wait_for_an_acknowledgement() -> None:
    with listen("127.0.0.1", 0) as listener:
        assert listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
