"""Whom the ASGI application answers, and where its document says that it is."""

from tests.support.processes import RunningService


def test_only_names_of_this_machine_are_answered(service: RunningService) -> None:
    other = {"Host": "127.0.0.1.evil.example"}

    assert service.http.get("/pets", headers={"Host": "localhost"}).is_success
    assert service.http.get("/pets", headers=other).status_code == 400


def test_the_document_names_this_server(service: RunningService) -> None:
    document = service.http.get(f"{service.origin}/openapi.yaml").text

    assert f"\nservers:\n- url: {service.base_url}\n" in document
