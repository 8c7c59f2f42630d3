"""`python -m tools invoke`: one handler, one event, in process."""

import json
import subprocess
from pathlib import Path
from typing import Any

import httpx

from tests.example_key import EXAMPLE_KEY
from tests.processes import COMMAND, RunningService, environment
from tools import ROOT
from tools.local.invoke import with_key


def invoke(event: Path, data: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, "invoke", str(event)],
        cwd=ROOT,
        env=environment(data),
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )


def answer(event: str, data: Path) -> dict[str, Any]:
    done = invoke(ROOT / "events" / f"{event}.json", data)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_it_uses_the_store_of_the_running_service(service: RunningService) -> None:
    created = json.loads(answer("create-201", service.data)["body"])

    headers = {"Authorization": f"Bearer {service.api_key}"}
    assert httpx.get(f"{service.base_url}/pets/{created['id']}", headers=headers).json() == created


def test_without_a_service_it_starts_the_store_and_keeps_its_state(tmp_path: Path) -> None:
    created = json.loads(answer("create-201", tmp_path)["body"])

    assert json.loads(answer("list-200", tmp_path)["body"]) == [created]
    assert answer("list-401", tmp_path)["statusCode"] == 401


def test_the_log_goes_to_stderr(tmp_path: Path) -> None:
    done = invoke(ROOT / "events/get-404.json", tmp_path)

    assert json.loads(done.stdout)["statusCode"] == 404
    assert '"Operation":"getPet"' in done.stderr


def test_what_is_no_event_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "event.json").write_text('{"httpMethod": "GET", "path": "/v1/cats"}')

    done = invoke(tmp_path / "event.json", tmp_path)

    assert done.returncode == 1
    assert "no function answers GET /v1/cats" in done.stderr
    assert "Traceback" not in done.stderr


def test_only_what_has_the_form_of_a_key_is_replaced() -> None:
    def event(value: str) -> dict[str, Any]:
        return {"headers": {"authorization": value}, "multiValueHeaders": {"authorization": [value]}}

    assert with_key(event(f"Bearer {EXAMPLE_KEY}"), "mine") == event("Bearer mine")
    assert with_key(event("Bearer nonsense"), "mine") == event("Bearer nonsense")
    assert with_key({"headers": None}, "mine") == {"headers": {}, "multiValueHeaders": {}}
