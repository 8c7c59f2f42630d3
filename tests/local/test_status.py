"""`/status` of the local service: what it says of requests comes from the metrics that CloudWatch reads on AWS."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.processes import RunningService, run_service
from tools.local.metrics import Metrics


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A service that has answered these requests and no others."""
    with run_service(tmp_path_factory.mktemp("status") / "data") as service:
        send_requests(service)
        yield service.base_url.removesuffix("/v1")


def send_requests(service: RunningService) -> None:
    with httpx.Client(
        base_url=service.base_url, headers={"Authorization": f"Bearer {service.api_key}"}, timeout=30
    ) as client:
        for _ in range(3):
            assert client.post("/pets", json={"name": "Rex", "categoryId": 1}).status_code == 201
        assert client.post("/pets", json={"name": "Rex"}).status_code == 400
        assert client.get("/pets").status_code == 200
        assert client.get("/pets", headers={"Authorization": "Bearer nobody"}).status_code == 401
        for _ in range(2):
            assert client.get("/pets/1").status_code == 200
        assert client.get("/pets/999").status_code == 404
        assert client.get("/cats").status_code == 404  # of API Gateway's own: not in the functions' metrics


def summary(origin: str) -> dict[str, Any]:
    found: dict[str, Any] = httpx.get(f"{origin}/status.json").raise_for_status().json()
    return found


def test_requests_by_operation_and_status(origin: str) -> None:
    rows = {(row["operation"], row["status"]): row for row in summary(origin)["requests"]}

    assert {key: row["count"] for key, row in rows.items()} == {
        ("createPet", 201): 3,
        ("createPet", 400): 1,
        ("listPets", 200): 1,
        ("listPets", 401): 1,
        ("getPet", 200): 2,
        ("getPet", 404): 1,
    }
    assert all(0 < row["latency_ms"]["p50"] <= row["latency_ms"]["p95"] < 60_000 for row in rows.values())


def test_each_function_has_one_cold_start(origin: str) -> None:
    cold_starts: dict[str, int] = {}
    for row in summary(origin)["requests"]:
        cold_starts[row["operation"]] = cold_starts.get(row["operation"], 0) + row["cold_starts"]

    assert cold_starts == {"listPets": 1, "createPet": 1, "getPet": 1}


def test_errors_and_deprecated_calls(origin: str) -> None:
    found = summary(origin)

    assert found["errors"] == [
        {"operation": "createPet", "code": "invalid_request", "count": 1},
        {"operation": "getPet", "code": "not_found", "count": 1},
        {"operation": "listPets", "code": "unauthorized", "count": 1},
    ]
    assert found["deprecated_calls"] == [{"operation": "getPet", "key_label": "local", "count": 3}]
    assert found["invalid_metrics"] == 0


def test_the_page_shows_the_same(origin: str) -> None:
    page = httpx.get(f"{origin}/status").raise_for_status()

    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "9 requests reached a function." in page.text
    assert '<td>createPet</td><td class="number">201</td><td class="number">3</td>' in page.text


def line(value: object) -> str:
    directive = {"Namespace": "N", "Dimensions": [["Operation"]], "Metrics": [{"Name": "Latency"}]}
    return json.dumps({"_aws": {"CloudWatchMetrics": [directive]}, "Operation": "listPets", "Latency": value})


def test_percentiles_are_of_nearest_rank() -> None:
    metrics = Metrics()
    for value in range(1, 101):
        metrics("F", line([value]))

    ((key, latency),) = metrics.find("Latency", "Operation")

    assert key == ("listPets",)
    assert (latency.percentile(50), latency.percentile(95), latency.percentile(100)) == (50, 95, 100)


@pytest.mark.parametrize("wrong", ['{"_aws": 1}', '{"_aws"', line("fast"), line(None)])
def test_what_is_no_metric_is_counted_as_such(wrong: str) -> None:
    metrics = Metrics()
    metrics("F", "a line of text")
    metrics("F", wrong)

    assert metrics.invalid == 1
    assert metrics.find("Latency", "Operation") == []
