"""A disk without room: what cannot be kept is refused, what is stored is still read."""

import resource

from tests.support.processes import RunningService


def test_writes_are_refused_and_reads_go_on(service: RunningService) -> None:
    pet = {"name": "Rex", "categoryId": 1}
    stored = service.http.post("/pets", json=pet).json()

    # From now on, no file of the service grows: neither the store nor the log.
    process, size, most = (
        service.process.pid,
        resource.RLIMIT_FSIZE,
        resource.RLIM_INFINITY,
    )
    resource.prlimit(process, size, (0, most))
    refused = service.http.post("/pets", json=pet)
    read = service.http.get(f"/pets/{stored['id']}")
    resource.prlimit(process, size, (most, most))

    assert refused.status_code == 503
    assert read.json() == stored
    assert service.http.post("/pets", json=pet).status_code == 201
