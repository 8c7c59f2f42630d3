"""The command `seed`, against the service and against wrong addresses."""

import pytest
from typer.testing import CliRunner, Result

from tests.support.processes import RunningService
from tools.cli import app


def seed(*arguments: str, **variables: str | None) -> Result:
    """Run the command with an environment that names no service, unless the variables do."""
    environment = {"BASE_URL": None, "API_KEY": None, **variables}
    return CliRunner().invoke(app, ["seed", *arguments], env=environment)


def test_an_interrupted_run_is_continued(service: RunningService) -> None:
    data = str(service.data)
    # The key of the environment is for named services.
    first = seed("--count", "3", "--seed", "7", DATA=data, API_KEY="of-a-stage")
    again = seed("--count", "5", "--seed", "7", DATA=data)

    assert first.stdout == "3 animals: 3 added, 0 already there\n"
    assert again.stdout == "5 animals: 2 added, 3 already there\n"


@pytest.mark.parametrize(
    ("message", "variables"),
    [
        ("No `make run` uses /nowhere", {"API_KEY": "key"}),
        ("API key is empty", {"BASE_URL": "http://127.0.0.1:9/v1"}),
        ("A base URL is https://", {"BASE_URL": "localhost:1", "API_KEY": "key"}),
    ],
)
def test_a_wrong_call_says_what_to_do(message: str, variables: dict[str, str]) -> None:
    done = seed(DATA="/nowhere", **variables)

    assert message in done.output
    assert "make seed BASE_URL=http://127.0.0.1:3000/v1 API_KEY=" in done.output
