"""A disk without room: what cannot be kept is refused, what is stored is still read."""

import resource

from tests.support.processes import RunningService


def test_writes_are_refused_and_reads_go_on(service: RunningService) -> None:
    pet = {"name": "Rex", "categoryId": 1}
    stored = service.http.post("/pets", json=pet).json()

    # From now on, no file of the service grows: neither the store nor the log.
    before = resource.prlimit(
        service.process.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY)
    )
    try:
        refused = service.http.post("/pets", json=pet)
        read = service.http.get(f"/pets/{stored['id']}")
    finally:
        resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, before)

    assert refused.status_code == 503
    assert refused.json()["code"] == "service_unavailable"
    assert read.json() == stored
    assert service.http.post("/pets", json=pet).status_code == 201
