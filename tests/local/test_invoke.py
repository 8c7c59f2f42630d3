"""`python -m tools invoke`: one handler, one event, in process."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from tests.example_key import EXAMPLE_KEY
from tests.in_process import own_layer
from tests.processes import RunningService
from tools import ROOT
from tools.cli import app
from tools.local.invoke import with_key


def invoke(event: Path, data: Path) -> Result:
    with own_layer(DATA=str(data)):
        return CliRunner().invoke(app, ["invoke", str(event)])


def answer(event: str, data: Path) -> dict[str, Any]:
    done = invoke(ROOT / f"events/{event}.json", data)
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_it_uses_the_store_of_the_running_service(service: RunningService) -> None:
    created = json.loads(answer("create-201", service.data)["body"])

    assert service.http.get(f"/pets/{created['id']}").json() == created


def test_without_a_service_it_uses_the_store_alone(tmp_path: Path) -> None:
    created = json.loads(answer("create-201", tmp_path)["body"])

    assert json.loads(answer("list-200", tmp_path)["body"]) == [created]
    assert answer("list-401", tmp_path)["statusCode"] == 401


def test_the_log_goes_to_stderr(tmp_path: Path) -> None:
    done = invoke(ROOT / "events/get-404.json", tmp_path)

    assert json.loads(done.stdout)["statusCode"] == 404
    assert '"Operation":"getPet"' in done.stderr


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"httpMethod": "GET", "path": "/v1/cats"}', "no function answers GET /v1/cats"),
        ("{", "Expecting property name"),
    ],
)
def test_what_is_not_an_event_is_refused_in_a_sentence(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "event.json").write_text(content)

    done = invoke(tmp_path / "event.json", tmp_path)

    assert done.exit_code == 1
    assert message in done.stderr


def test_only_what_has_the_form_of_a_key_is_replaced() -> None:
    def event(value: str) -> dict[str, Any]:
        return {"headers": {"authorization": value}, "multiValueHeaders": {"authorization": [value]}}

    assert with_key(event(f"Bearer {EXAMPLE_KEY}"), "mine") == event("Bearer mine")
    assert with_key(event("Bearer nonsense"), "mine") == event("Bearer nonsense")
    assert with_key({"headers": None}, "mine") == {"headers": {}, "multiValueHeaders": {}}
