"""The commands `seed` and `export`, against the service and against one that misbehaves."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from animal_store_client import Client
from typer.testing import CliRunner, Result
from werkzeug import Request, Response

from tests.support.processes import RunningService
from tests.support.scripted_server import Script, error, reply, serve
from tools.cli import app

STRANGE = [
    '=HYPERLINK("http://x")',
    "@SUM(1)",
    "-1+1",
    "\x1b[2J",
    'a, "b"\r\n\u2028\u202e\x9b',
    "Zoë",
]
PET = {"id": 1, "name": "\x1b]0;x\x07 \u009b2J", "categoryId": 1}

Tool = Callable[..., Result]


@pytest.fixture
def tool(tmp_path: Path) -> Tool:
    """Give what runs a command with an environment; without one it finds no service."""

    def run(*arguments: str, **variables: str) -> Result:
        done = CliRunner().invoke(
            app,
            arguments,
            env={"DATA": str(tmp_path), "BASE_URL": None, "API_KEY": None, **variables},
        )
        assert "\x1b" not in done.output
        assert isinstance(done.exception, SystemExit | None), done.exception
        return done

    return run


def test_an_interrupted_run_is_continued(service: RunningService, tool: Tool) -> None:
    data = str(service.data)
    before = len(tool("export", DATA=data).stdout.splitlines())
    # The key of the environment is for named services.
    first = tool("seed", "--count", "30", "--seed", "7", DATA=data, API_KEY="of-a-stage")
    again = tool("seed", "--count", "40", "--seed", "7", DATA=data)
    assert "30 of 30 animals: 30 added, 0 already there" in first.stdout, first.output
    assert "40 of 40 animals: 10 added, 30 already there" in again.stdout
    assert len(tool("export", DATA=data).stdout.splitlines()) == before + 40


def test_export_is_exact_and_neutral_in_csv(
    service: RunningService, tool: Tool, tmp_path: Path
) -> None:
    with Client(service.base_url, service.api_key) as client:
        made = [client.create(name, 2**63 - 1, "pending") for name in STRANGE]

    def rows(*arguments: str) -> list[str]:
        output = tmp_path / "pets.csv"
        done = tool(
            "export", "--format", "csv", "--output", str(output), *arguments, DATA=str(service.data)
        )
        assert (done.exit_code, done.stdout) == (0, "")
        with output.open(newline="", encoding="utf-8") as file:
            read = list(csv.DictReader(file))[-len(made) :]
        assert [int(row["id"]) for row in read] == [pet.id for pet in made]
        assert {(row["categoryId"], row["status"]) for row in read} == {(str(2**63 - 1), "pending")}
        return [row["name"] for row in read]

    exported = tool("export", "--status", "pending", DATA=str(service.data)).stdout
    pets: list[dict[str, Any]] = [json.loads(line) for line in exported.splitlines()]
    assert exported.replace("\n", "").isprintable()
    assert pets[-len(made) :] == [pet.raw for pet in made]
    assert {pet["status"] for pet in pets} == {"pending"}
    assert rows("--raw") == STRANGE
    assert rows() == [
        *("'" + name for name in STRANGE[:3]),
        r"\x1b[2J",
        r'a, "b"\r\n\u2028\u202e\x9b',
        "Zoë",
    ]


def test_failures_that_may_pass_are_told_and_repeated(tool: Tool) -> None:
    def script(_: Request, number: int) -> Response:
        return error(503, "\x1b[2J", Retry_After="0") if number in {1, 3} else reply(PET, 201)

    with serve(script) as server:
        done = tool("seed", "--count", "3", "--base-url", server.base_url, API_KEY="key")
    assert "3 of 3 animals: 3 added" in done.stdout, done.stderr
    assert done.stderr.count("trying again in") == 2


def test_a_failure_ends_the_export_and_leaves_no_file(tool: Tool, tmp_path: Path) -> None:
    scripts: dict[str, Script] = {
        r"401 \x1b[2J: Sorry.": lambda *_: error(401, "\x1b[2J"),
        "another origin": lambda *_: reply([PET], Link='<http://127.0.0.2:9/v1/pets>; rel="next"'),
    }
    for message, script in scripts.items():
        with serve(script) as server:
            done = tool(
                "export", "--output", f"{tmp_path}/out", BASE_URL=server.base_url, API_KEY="key"
            )
        assert done.exit_code == 1
        assert message in done.stderr
        assert not list(tmp_path.glob("*out*")), "half an export was left behind"


def test_a_wrong_call_says_what_to_do(tool: Tool) -> None:
    url = "http://127.0.0.1:9/v1"
    assert "--base-url" in tool("export", API_KEY="key").stderr
    assert "as API_KEY" in tool("export", "--base-url", url).stderr
    assert "not a base URL" in tool("export", "--base-url", "x", API_KEY="key").stderr
    assert (
        "none/"
        in tool("export", "--base-url", url, "--output", "none/pets.csv", API_KEY="key").stderr
    )
