"""The command `seed`, against the service."""

from typer.testing import CliRunner

from tests.support.processes import RunningService
from tools.cli import app


def test_an_interrupted_run_is_continued(service: RunningService) -> None:
    def seed(count: str) -> str:
        environment = {"BASE_URL": None, "DATA": str(service.data)}
        arguments = ["seed", "--count", count]
        return CliRunner().invoke(app, arguments, env=environment).stdout

    assert seed("3") == "3 animals: 3 added, 0 already there\n"
    assert seed("5") == "5 animals: 2 added, 3 already there\n"
