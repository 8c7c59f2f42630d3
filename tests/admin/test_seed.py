"""The command `seed`, against the service."""

from animal_store_client import Client
from typer.testing import CliRunner

from tests.support.processes import RunningService
from tools.cli import app


def seed(count: str, **environment: str | None) -> str:
    arguments = ["seed", "--count", count]
    return CliRunner().invoke(app, arguments, env=environment).stdout


def test_an_interrupted_run_is_continued(service: RunningService) -> None:
    first = seed("3", BASE_URL=None, DATA=str(service.data))
    assert first == "3 animals: 3 added, 0 already there\n"
    again = seed("8", BASE_URL=service.base_url, API_KEY=service.api_key)
    assert again == "8 animals: 5 added, 3 already there\n"

    with Client(service.base_url, service.api_key) as client:
        names = sorted(pet.name for pet in client.pets())
    assert [name for name in names if " the " in name] == [
        "Luna the Beagle",
        "Rex the Persian",
        "Zoë the Beagle",
        "Zoë the Gecko",
        "Πάρης the Beagle",
        "Πάρης the Beagle",
        "小白 the Gecko",
        "小白 the Persian",
    ]
