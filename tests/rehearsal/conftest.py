"""The stages with which the steps are taken, and where.

`make rehearse` and `make first-flight` ask for stages; without them nothing here is collected.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.rehearsal import emulator
from tests.rehearsal.places import Place, empty_account, emulated
from tools import ROOT
from tools.deployment.stage import Stage
from tools.packaging import artifact
from tools.packaging.targets import TARGETS

COST = """
First flight: about an hour, and a few dollars at list prices (most of it requests, a restore of a
small table, and hours of a firewall, of alarms and of logs). It has never flown. Everything that it
makes is removed at the end, also after a failure, but for the role and the account's setting by
which API Gateway writes logs.
"""


@dataclass
class Rehearsal:
    """A stage, and what one step leaves to the next."""

    stage: Stage
    place: Place
    folder: Path
    deployed_first: str = ""

    @property
    def base_url(self) -> str:
        """Where the stage is served."""
        return self.stage.outputs()["BaseUrl"]

    @property
    def build(self) -> Path:
        """What `make build` has built for the place."""
        return TARGETS[self.place.architecture].build_dir

    def pack(self, name: str, build: Path | None = None, **parameters: str) -> Path:
        """Pack a build as an artifact for the place, with other parameters of the stages."""
        config, packed = self.folder / f"{name}.toml", self.folder / f"{name}.zip"
        text = (ROOT / "samconfig.toml").read_text("utf-8")
        pairs = {"Architecture": self.place.architecture, **parameters}.items()
        added = "".join(f'    "{key}={value}",\n' for key, value in pairs)
        last = '    "LogRetentionDays='
        config.write_text(text.replace(last, f"{added}{last}"), "utf-8")
        artifact.pack(build or self.build, packed, config)
        return packed


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that ask for stages, and for a real account."""
    parser.addoption("--stage", action="append", default=[], dest="stages")
    parser.addoption("--aws", action="store_true")


def pytest_configure(config: pytest.Config) -> None:
    """Add the marks of steps."""
    config.addinivalue_line("markers", "administrator: not in the pipeline's role")
    config.addinivalue_line("markers", "only_aws(reason): the emulator cannot show it")
    config.addinivalue_line("markers", "in_full: only with the first stage")


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    """Collect nothing unless stages are asked for."""
    return None if config.getoption("stages", default=[]) else True


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Take every step with the first stage, and then with the next."""
    stages = metafunc.config.getoption("stages")
    metafunc.parametrize("rehearsal", stages, indirect=True, scope="session")


@pytest.fixture(scope="session")
def place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    """Give an empty account."""
    if request.config.getoption("aws"):
        with empty_account(Stage(request.config.getoption("stages")[0])) as account:
            yield account
    else:
        os.environ["ALARM_EMAIL"] = "alarms@example.com"
        with emulated(tmp_path_factory.mktemp("rehearsal") / "emulator") as account:
            yield account


@pytest.fixture(scope="session")
def rehearsal(
    request: pytest.FixtureRequest,
    place: Place,
    tmp_path_factory: pytest.TempPathFactory,
) -> Rehearsal:
    """Give the stage that the steps are taken with."""
    return Rehearsal(
        Stage(request.param), place, tmp_path_factory.mktemp(request.param)
    )


@pytest.fixture(autouse=True)
def role(rehearsal: Rehearsal, request: pytest.FixtureRequest) -> None:
    """Skip a step that is not for this place or stage; take others in the pipeline's role."""
    mark = request.node.get_closest_marker("only_aws")
    if mark and rehearsal.place.is_emulated:
        pytest.skip(mark.args[0])
    is_first = request.config.getoption("stages")[0] == rehearsal.stage.name
    if request.node.get_closest_marker("in_full") and not is_first:
        pytest.skip("taken with the first stage only")
    if request.node.get_closest_marker("administrator"):
        rehearsal.place.become_administrator()
    else:
        rehearsal.place.become_pipeline(rehearsal.stage)


def pytest_report_header(config: pytest.Config) -> str:
    """Say what a flight costs before it begins."""
    return COST if config.getoption("aws") else ""


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say what was not rehearsed."""
    if not config.getoption("aws"):
        terminalreporter.section("what the emulator lacks")
        terminalreporter.write(emulator.LIMITATIONS.read_text("utf-8"))
