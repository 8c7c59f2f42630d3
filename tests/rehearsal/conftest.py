"""The stage with which the steps are taken, and where; without a stage no step is collected."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.rehearsal.places import Place, empty_account, emulated
from tools import ROOT
from tools.deployment.stage import Stage
from tools.packaging import artifact
from tools.packaging.targets import TARGETS

STAGE = os.environ.get("REHEARSED_STAGE", "")
IS_ON_AWS = "FIRST_FLIGHT" in os.environ
BUILD = TARGETS["arm64" if IS_ON_AWS else "x86_64"].build_dir
# How the emulator's stages differ: it knows no reserved concurrency.
PARAMETERS = [] if IS_ON_AWS else ["Architecture=x86_64", "ReservedConcurrency=0"]
collect_ignore_glob = [] if STAGE else ["test_*"]


@dataclass
class Rehearsal:
    """A stage, and what one step leaves to the next."""

    place: Place
    folder: Path
    deployed_first: str = ""
    animals: int = 0

    @property
    def stage(self) -> Stage:
        """The stage, reached with the credentials of the moment."""
        return Stage(STAGE)

    @property
    def base_url(self) -> str:
        """Where the stage is served."""
        return self.stage.outputs()["BaseUrl"]

    def pack(self, name: str, build: Path = BUILD, *parameters: str) -> Path:
        """Pack a build as an artifact for the place, with other parameters of the stages."""
        config, packed = self.folder / f"{name}.toml", self.folder / f"{name}.zip"
        last = '    "LogRetentionDays='
        text = (ROOT / "samconfig.toml").read_text("utf-8")
        for parameter in (*PARAMETERS, *parameters):
            text = text.replace(last, f'    "{parameter}",\n{last}')
        config.write_text(text, "utf-8")
        artifact.pack(build, packed, config)
        return packed


@pytest.fixture(scope="session")
def rehearsal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    """Give the stage, in an empty account."""
    folder = tmp_path_factory.mktemp("rehearsal")
    with contextlib.ExitStack() as account:
        if IS_ON_AWS:
            if STAGE == "production":
                raise ValueError("the flight ends with the removal of everything")
            place = Place(dict(os.environ))
        else:
            place = account.enter_context(emulated(folder / "emulator"))
        account.enter_context(empty_account(place, STAGE))
        yield Rehearsal(place, folder)


@pytest.fixture(autouse=True)
def role(rehearsal: Rehearsal, request: pytest.FixtureRequest) -> None:
    """Take the steps in the role that deploys, unless they are marked."""
    marker = request.node.get_closest_marker("role")
    if request.node.get_closest_marker("administrator"):
        rehearsal.place.become_administrator()
    else:
        rehearsal.place.become(marker.args[0] if marker else "DeployRole", STAGE)
