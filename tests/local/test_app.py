"""The ASGI application: who is answered, and where its document says that it is."""

import socket

import httpx2
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


@pytest.mark.parametrize("path", ["/v1/pets/?limit=1", "/openapi.yaml"])
def test_target_in_absolute_form_is_answered(
    service: RunningService, path: str
) -> None:
    """A client with a proxy sends it, such as `curl -x` (RFC 9112, section 3.2.2)."""
    url, headers = service.origin + path, service.http.headers

    assert httpx2.get(url, proxy=service.origin, headers=headers).status_code == 200


def test_absolute_form_with_another_host_is_refused(service: RunningService) -> None:
    """The host of the target counts, not the header's."""
    url, headers = "http://other.example/v1/pets", {"Host": "127.0.0.1"}

    response = httpx2.get(url, proxy=service.origin, headers=headers)

    assert response.status_code == 400


def test_client_does_not_choose_its_address(service: RunningService) -> None:
    headers = {"X-Forwarded-For": "192.0.2.1", "X-Forwarded-Proto": "https"}

    service.http.get("/pets?limit=17", headers=headers)

    wait_for(lambda: "limit=17" in service.console.read_text())
    assert "192.0.2.1" not in service.console.read_text()


def test_answers_do_not_wait_for_an_acknowledgement() -> None:
    with listen("127.0.0.1", 0) as listener:
        assert listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
