"""The ASGI application of `make run`: which hosts it answers, and its document."""

import socket

from tests.support.processes import RunningService
from tools.local.listener import listen


def test_only_host_names_of_this_machine_are_answered(service: RunningService) -> None:
    statuses = [
        service.http.get("/pets", headers={"Host": host}).status_code
        for host in ("localhost", "127.0.0.1.evil.example")
    ]

    assert statuses == [200, 400]


def test_the_document_names_this_server(service: RunningService) -> None:
    document = service.http.get(f"{service.origin}/openapi.yaml").text

    assert f"\nservers:\n- url: {service.base_url}\n" in document


def test_responses_do_not_wait_for_an_acknowledgement() -> None:
    with listen("127.0.0.1", 0) as listener:
        assert listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
