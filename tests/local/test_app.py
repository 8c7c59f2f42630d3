"""The ASGI application: its pages, whom it answers, and what it logs."""

import logging
from collections.abc import Iterator

import httpx
import pytest
import yaml

from tests.support.in_process import service_in_process
from tools import ROOT
from tools.local.output import Metrics, redirected


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with service_in_process(tmp_path_factory.mktemp("service")) as target:
        headers = {"Authorization": f"Bearer {target.api_key}"}
        yield httpx.Client(
            base_url="http://127.0.0.1:3000", headers=headers, transport=target.transport
        )


def test_pages(http: httpx.Client) -> None:
    for path, content_type, text in (
        ("/docs", "text/html", "SwaggerUIBundle("),
        ("/docs/swagger-ui.js", "text/javascript", "SwaggerUIBundle"),
        ("/docs/swagger-ui.css", "text/css", ".swagger-ui"),
        ("/openapi.yaml", "application/yaml", "openapi: 3.1"),
        ("/status", "text/html", "Status of the animal store"),
    ):
        response = http.get(path)
        assert (response.status_code, response.headers["Content-Type"].partition(";")[0]) == (
            200,
            content_type,
        )
        assert text in response.text
        assert (http.head(path).status_code, http.post(path).status_code) == (200, 404)
    assert http.get("/").headers["Location"] == "/docs"
    served = http.get("/openapi.json", headers={"Host": "localhost:81"}).json()
    assert [server["url"] for server in served["servers"]] == [
        "http://localhost:81/v1"
    ]  # this one alone
    assert served | {"servers": 0} == yaml.safe_load((ROOT / "openapi.yaml").read_text()) | {
        "servers": 0
    }


@pytest.mark.parametrize("path", ["/v1/pets", "/docs", "/status.json"])
@pytest.mark.parametrize(
    ("host", "status"), [("LOCALHOST:3000", 200), ("127.0.0.1.evil.example:3000", 400)]
)
def test_only_names_of_this_machine_are_answered(
    http: httpx.Client, path: str, host: str, status: int
) -> None:
    response = http.get(path, headers={"Host": host, "Origin": f"http://{host}"})

    assert response.status_code == status
    assert not [name for name in response.headers if name.startswith("access-control")]


def test_log_is_one_line_without_a_key(
    http: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "tools")
    key = http.headers["Authorization"].removeprefix("Bearer ")
    for form in (key, "".join(f"%25{ord(character):02x}" for character in key)):
        http.get(f"/v1/pets/%0a{form}?key={form}")
    http.get("/v1/pets?" + "x" * 300, headers={"Authorization": ""})

    *lines, long = [
        record.getMessage() for record in caplog.records if record.name == "tools.local.app"
    ]
    masked = r"/v1/pets/\x0aanimal_test_...?key=animal_test_..."
    assert [line.split()[1:4] for line in lines] == [["404", "GET", masked]] * 2
    assert len(long) < 300
    assert long.endswith("ms  (needs: Authorization: Bearer API_KEY)")


def test_status_is_made_of_the_metrics(http: httpx.Client) -> None:
    metrics = Metrics()
    with redirected(metrics):
        pet_id = http.post("/v1/pets", json={"name": "Rex", "categoryId": 1}).json()["id"]
        http.post("/v1/pets", json={"name": "Rex"})
        http.get(f"/v1/pets/{pet_id}")
        http.get("/v1/cats")  # API Gateway's own response: not in the functions' metrics
        print('{"_aws": {}}')
    status = metrics.summary("http://127.0.0.1/v1")

    counts = {(row["Operation"], row["Status"]): row["Requests"] for row in status["counts"]}
    assert counts == {("createPet", "201"): 1, ("createPet", "400"): 1, ("getPet", "200"): 1}
    assert [request["Operation"] for request in status["last"]] == [
        "getPet",
        "createPet",
        "createPet",
    ]
    assert (status["last"][1]["Code"], status["last"][2]["StoreCalls"]) == ("invalid_request", 2)
    assert (
        http.get("/status.json").json()["base_url"]
        == http.get("/openapi.json").json()["servers"][0]["url"]
    )
