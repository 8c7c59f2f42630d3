"""Whom the ASGI application answers."""

from tests.support.processes import RunningService


def test_only_names_of_this_machine_are_answered(service: RunningService) -> None:
    other = {"Host": "127.0.0.1.evil.example"}

    assert service.http.get("/pets", headers={"Host": "localhost"}).is_success
    assert service.http.get("/pets", headers=other).status_code == 400
