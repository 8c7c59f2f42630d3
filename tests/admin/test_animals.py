"""The commands `seed` and `export`, against the service and against one that misbehaves."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

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
NEUTRAL = [
    '\'=HYPERLINK("http://x")',
    "'@SUM(1)",
    "'-1+1",
    r"\x1b[2J",
    r'a, "b"\r\n\u2028\u202e\x9b',
    "Zoë",
]
PET = {"id": 1, "name": "\x1b]0;x\x07 \u009b2J", "categoryId": 1}

Tool = Callable[..., Result]


@pytest.fixture
def tool(tmp_path: Path) -> Tool:
    """Give what runs a command with an environment; without one it finds no service."""

    def run(*arguments: str, **variables: str) -> Result:
        environment = {
            "DATA": str(tmp_path),
            "BASE_URL": None,
            "API_KEY": None,
            **variables,
        }
        done = CliRunner().invoke(app, arguments, env=environment)
        assert "\x1b" not in done.output
        assert isinstance(done.exception, SystemExit | None), done.exception
        return done

    return run


def test_an_interrupted_run_is_continued(service: RunningService, tool: Tool) -> None:
    data = str(service.data)
    before = len(tool("export", DATA=data).stdout.splitlines())
    # The key of the environment is for named services.
    first = tool(
        "seed", "--count", "30", "--seed", "7", DATA=data, API_KEY="of-a-stage"
    )
    again = tool("seed", "--count", "40", "--seed", "7", DATA=data)
    assert "30 of 30 animals: 30 added, 0 already there" in first.stdout
    assert "40 of 40 animals: 10 added, 30 already there" in again.stdout
    assert len(tool("export", DATA=data).stdout.splitlines()) == before + 40


@pytest.fixture
def strange(service: RunningService) -> list[int]:
    """Create an animal of each strange name; return their ids."""
    with Client(service.base_url, service.api_key) as client:
        return [client.create(name, 2**63 - 1, "pending").id for name in STRANGE]


def test_json_lines_are_exact(
    service: RunningService, tool: Tool, strange: list[int]
) -> None:
    exported = tool("export", "--status", "pending", DATA=str(service.data)).stdout
    assert exported.isascii()
    expected = {
        "id": strange[0],
        "name": STRANGE[0],
        "categoryId": 2**63 - 1,
        "status": "pending",
    }
    assert json.loads(exported.splitlines()[-6]) == expected


@pytest.mark.parametrize(("options", "names"), [(["--raw"], STRANGE), ([], NEUTRAL)])
def test_csv_runs_no_formula_unless_it_is_raw(
    options: list[str],
    names: list[str],
    service: RunningService,
    tool: Tool,
    strange: list[int],
) -> None:
    output = service.data / "pets.csv"
    options = [*options, "--format", "csv", "--output", str(output)]
    assert tool("export", *options, DATA=str(service.data)).exit_code == 0
    with output.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert [row[1] for row in rows[-6:]] == names
    assert rows[-1] == [str(strange[-1]), "Zoë", str(2**63 - 1), "pending"]


def test_failures_that_may_pass_are_shown_and_repeated(tool: Tool) -> None:
    def script(request: Request, number: int) -> Response:
        if request.method == "GET":
            return reply([])
        failed = number in {2, 4}
        return error(503, "\x1b[2J", Retry_After="0") if failed else reply(PET, 201)

    with serve(script) as server:
        done = tool(
            "seed", "--count", "3", "--base-url", server.base_url, API_KEY="key"
        )
    assert "3 of 3 animals: 3 added" in done.stdout
    assert done.stderr.count(r"503 \x1b[2J: Sorry.; attempt 2 of 6 in 0.") == 2


@pytest.mark.parametrize(
    ("message", "script"),
    [
        (r"401 \x1b[2J: Sorry.", lambda *_: error(401, "\x1b[2J")),
        (
            "another origin",
            lambda *_: reply([PET], Link='<//127.0.0.2/?cursor=x>; rel="next"'),
        ),
    ],
)
def test_a_failure_ends_the_export_and_leaves_no_file(
    message: str, script: Script, tool: Tool, tmp_path: Path
) -> None:
    with serve(script) as server:
        done = tool(
            "export",
            "--output",
            f"{tmp_path}/out",
            BASE_URL=server.base_url,
            API_KEY="k",
        )
    assert done.exit_code == 1
    assert message in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("message", "variables"),
    [
        ("--base-url", {"API_KEY": "key"}),
        ("as API_KEY", {"BASE_URL": "http://127.0.0.1:9/v1"}),
        ("not a base URL", {"BASE_URL": "localhost:4200"}),
        ("got no response", {"BASE_URL": "http://127.0.0.1:9/v1", "API_KEY": "key"}),
    ],
)
def test_a_wrong_call_says_what_to_do(
    message: str, variables: dict[str, str], tool: Tool
) -> None:
    done = tool("seed", **variables)
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
