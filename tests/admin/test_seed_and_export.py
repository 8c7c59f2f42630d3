"""The commands `seed` and `export`, against the service and against one that misbehaves."""

import csv
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from animal_store_client import Client
from werkzeug import Request, Response

from tests.clients.scripted_server import Script, error, reply, serve
from tests.processes import COMMAND, RunningService, environment, run_service
from tools import ROOT

STRANGE = ['=HYPERLINK("http://x")', "@SUM(1)", "-1+1", "\x1b[2J", 'a, "b"\r\n\u2028\u202e\x9b', "Zoë"]
PET = {"id": 1, "name": "\x1b]0;x\x07 \u009b2J", "categoryId": 1}


@pytest.fixture(scope="module")
def own_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service whose animals nobody else adds."""
    with run_service(tmp_path_factory.mktemp("seed") / "data") as service:
        yield service


def tool(data: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    env = environment(data, **variables)
    return subprocess.run([*COMMAND, *arguments], check=False, cwd=ROOT, env=env, capture_output=True, text=True)


def exported(data: Path, *arguments: str) -> list[dict[str, Any]]:
    done = tool(data, "export", *arguments)
    assert done.returncode == 0, done.stderr
    assert all(character.isprintable() or character == "\n" for character in done.stdout)
    return [json.loads(line) for line in done.stdout.removesuffix("\n").split("\n")]


def test_an_interrupted_run_is_continued(own_service: RunningService) -> None:
    first = tool(own_service.data, "seed", "--count", "130", "--seed", "7")
    again = tool(own_service.data, "seed", "--count", "150", "--seed", "7", "--concurrency", "20")

    assert "130 of 130 animals: 130 added, 0 already there" in first.stdout
    assert "150 of 150 animals: 20 added, 130 already there" in again.stdout
    assert len(exported(own_service.data)) == 150


def test_export_is_exact_and_neutral_in_csv(own_service: RunningService, tmp_path: Path) -> None:
    with Client(own_service.base_url, own_service.api_key) as client:
        made = [client.create(name, 2**63 - 1, "pending") for name in STRANGE]

    def rows(*arguments: str) -> list[str]:
        output = tmp_path / "pets.csv"
        done = tool(own_service.data, "export", "--format", "csv", "--output", str(output), *arguments)
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
        with output.open(newline="", encoding="utf-8") as file:
            read = list(csv.DictReader(file))[-len(made) :]
        assert [(row["id"], row["categoryId"], row["status"]) for row in read] == [
            (str(pet.id), str(2**63 - 1), "pending") for pet in made
        ]
        return [row["name"] for row in read]

    assert exported(own_service.data, "--status", "pending")[-len(made) :] == [pet.raw for pet in made]
    assert rows("--raw") == STRANGE
    assert rows() == [
        *("'" + name for name in STRANGE[:3]),
        *(r"\x1b[2J", r'a, "b"\r\n\u2028\u202e\x9b', "Zoë"),
    ]


def test_failures_that_may_pass_are_told_and_repeated(tmp_path: Path) -> None:
    def script(_: Request, number: int) -> Response:
        return error(503, "\x1b[2J", Retry_After="0") if number in {1, 3} else reply(PET, 201)

    with serve(script) as server:
        done = tool(
            tmp_path, "seed", "--count", "3", "--concurrency", "1", "--base-url", server.base_url, API_KEY="key"
        )

    assert "3 of 3 animals: 3 added" in done.stdout, done.stderr
    assert done.stderr.count("trying again in") == 2
    assert "\x1b[2J" not in done.stderr


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (lambda *_: error(401, "\x1b[2J"), r"401 \x1b[2J: Sorry."),
        (lambda *_: reply(b"\xff"), "something else than JSON"),
        (lambda *_: reply([PET], Link='<http://127.0.0.2:9/v1/pets>; rel="next"'), "another origin"),
    ],
    ids=["refused", "garbage", "other origin"],
)
def test_a_failure_ends_the_export_and_leaves_no_file(script: Script, message: str, tmp_path: Path) -> None:
    with serve(script) as server:
        done = tool(tmp_path, "export", "--output", f"{tmp_path}/out", BASE_URL=server.base_url, API_KEY="key")

    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert "\x1b" not in done.stderr
    assert not list(tmp_path.glob("*out*")), "half an export was left behind"


def test_the_key_of_the_environment_is_for_named_services(own_service: RunningService) -> None:
    assert tool(own_service.data, "seed", "--count", "1", API_KEY="of-a-stage").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["export"], "--base-url"),
        (["export", "--base-url", "http://127.0.0.1:9/v1"], "API_KEY"),
        (["export", "--base-url", "x"], "not a base URL"),
        (["export", "--format", "xml"], "scripts/animal-store export --help"),
        (["export", "--base-url", "http://127.0.0.1:9/v1", "--output", "none/pets.csv"], "none/"),
    ],
)
def test_a_wrong_call_says_what_to_do(arguments: list[str], message: str, tmp_path: Path) -> None:
    key = {} if arguments[-1].endswith("v1") else {"API_KEY": "key"}
    done = tool(tmp_path, *arguments, **key)

    assert done.returncode in {1, 2}
    assert message in done.stderr
    assert "Traceback" not in done.stderr
