"""The ASGI application: its pages, whom it answers, how long it waits, and what it logs."""

import asyncio
import logging
import socket
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import yaml

from tests.support.in_process import service_in_process
from tools import ROOT
from tools.local import app
from tools.local.output import Metrics, redirected


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with service_in_process(tmp_path_factory.mktemp("service")) as target:
        origin, headers = (
            "http://127.0.0.1:3000",
            {"Authorization": f"Bearer {target.api_key}"},
        )
        yield httpx.Client(base_url=origin, headers=headers, transport=target.transport)


@pytest.mark.parametrize(
    ("path", "content_type", "text"),
    [
        ("/docs", "text/html; charset=utf-8", "SwaggerUIBundle("),
        ("/docs/swagger-ui.css", "text/css; charset=utf-8", ".swagger-ui"),
        ("/openapi.yaml", "application/yaml", "openapi: 3.1"),
        ("/status", "text/html; charset=utf-8", "Status of the animal store"),
    ],
)
def test_pages(http: httpx.Client, path: str, content_type: str, text: str) -> None:
    response = http.get(path)

    assert response.status_code == 200
    assert response.headers["Content-Type"] == content_type
    assert text in response.text
    assert http.post(path).status_code == 404


def test_root_leads_to_the_documentation(http: httpx.Client) -> None:
    assert http.get("/").headers["Location"] == "/docs"


def test_document_is_the_projects_with_this_server_alone(http: httpx.Client) -> None:
    served = yaml.safe_load(
        http.get("/openapi.yaml", headers={"Host": "localhost:81"}).text
    )

    servers = served.pop("servers")
    assert servers == [{"url": "http://localhost:81/v1", "description": "this machine"}]
    document = yaml.safe_load((ROOT / "openapi.yaml").read_text())
    del document["servers"]
    assert served == document


@pytest.mark.parametrize(
    ("host", "status"), [("LOCALHOST:3000", 200), ("127.0.0.1.evil.example:3000", 400)]
)
def test_only_names_of_this_machine_are_answered(
    http: httpx.Client, host: str, status: int
) -> None:
    assert http.get("/v1/pets", headers={"Host": host}).status_code == status
    assert http.get("/docs", headers={"Host": host}).status_code == status


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET /v1/pets HTTP/1.1\r\nHost: localhost\r\n",
        b"POST /v1/pets HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{",
    ],
    ids=["idle", "slow headers", "slow body"],
)
def test_client_that_does_not_complete_a_request_is_disconnected(
    sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def wait_for_all(_: Any, receive: Any, __: Any) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    async def received() -> bytes:
        server = app.server(wait_for_all)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            serving = asyncio.create_task(server.serve(sockets=[listener]))
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            writer.write(sent)
            answer = await asyncio.wait_for(reader.read(), 10)
            writer.close()
            server.should_exit = True
            await serving
            return answer

    monkeypatch.setattr(app, "_RECEIVE_SECONDS", 0.1)

    assert asyncio.run(received()) == b""


def test_log_is_one_line_without_a_key(
    http: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "tools.local.app")
    key = http.headers["Authorization"].removeprefix("Bearer ")
    encoded = key.replace("_", "%255f")
    http.get(f"/v1/pets/%0a{key}?key={encoded}")
    http.get("/v1/pets?" + "x" * 300, headers={"Authorization": ""})

    masked, long = caplog.messages[-2:]
    assert r"404  GET /v1/pets/\x0aanimal_test_...?key=animal_test_...  " in masked
    assert len(long) < 300
    assert long.endswith("ms  (needs: Authorization: Bearer API_KEY)")


def test_status_is_made_of_the_metrics(http: httpx.Client) -> None:
    metrics = Metrics()
    with redirected(metrics):
        pet_id = http.post("/v1/pets", json={"name": "Rex", "categoryId": 1}).json()[
            "id"
        ]
        http.get(f"/v1/pets/{pet_id}")
        # API Gateway's own response: not in the functions' metrics.
        http.get("/v1/cats")
    status = metrics.summary("http://127.0.0.1/v1")

    assert status["counts"] == [
        {"Operation": "createPet", "Status": "201", "Requests": 1},
        {"Operation": "getPet", "Status": "200", "Requests": 1},
    ]
    read, created = status["last"]
    assert read["Operation"] == "getPet"
    assert created["StoreCalls"] == 2
    assert http.get("/status.json").json()["base_url"] == "http://127.0.0.1:3000/v1"


def test_log_that_cannot_be_written_loses_its_lines_alone() -> None:
    def full_disk(_: str) -> None:
        raise OSError(28, "No space left on device")

    lines: list[str] = []
    with redirected(full_disk, lines.append):
        sys.stdout.write("a line\n")

    assert lines == ["a line\n"]
