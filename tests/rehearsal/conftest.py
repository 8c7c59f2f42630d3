"""The account in which the stages are deployed, and who deploys them.

`make rehearse` asks for stages; without them nothing here is collected.
"""

import base64
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.rehearsal import emulator
from tools import ROOT
from tools.deployment.stage import Stage, client
from tools.packaging import artifact
from tools.packaging.targets import TARGETS

BUILD = TARGETS["x86_64"].build_dir


@dataclass
class Rehearsal:
    """A stage in the emulated account, and what one step leaves to the next."""

    stage: Stage
    endpoint: str
    folder: Path
    keys: list[str] = field(default_factory=list)
    deployed_first: str = ""

    @property
    def base_url(self) -> str:
        """Where the stage is served."""
        return self.stage.outputs()["BaseUrl"]

    def become_administrator(self) -> None:
        """Act as the account's root user."""
        emulator.use(self.endpoint)

    def become_pipeline(self, subject: str) -> None:
        """Act in the role that deploys, as a job whose token has this subject."""
        emulator.use(self.endpoint)
        issuer = {"iss": "https://token.actions.githubusercontent.com", "aud": "sts.amazonaws.com"}
        parts = ({"alg": "none"}, issuer | {"sub": f"repo:{subject}"}, 0)
        encoded = (base64.urlsafe_b64encode(json.dumps(part).encode()) for part in parts)
        answer = client("sts").assume_role_with_web_identity(
            RoleArn=self.stage.account()["DeployRoleArn"],
            RoleSessionName="job",
            WebIdentityToken=b".".join(encoded).decode(),
        )
        emulator.use(self.endpoint, answer["Credentials"])

    def pack(self, name: str, build: Path = BUILD, **parameters: str) -> Path:
        """Pack a build as an artifact for the emulator, with other parameters of the stages."""
        config, packed = self.folder / f"{name}.toml", self.folder / f"{name}.zip"
        text = (ROOT / "samconfig.toml").read_text("utf-8")
        pairs = {"Architecture": "x86_64", **parameters}.items()
        added = "".join(f'    "{key}={value}",\n' for key, value in pairs)
        config.write_text(text.replace('    "Canary=', f'{added}    "Canary='), "utf-8")
        artifact.pack(build, packed, config)
        return packed


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that asks for stages."""
    parser.addoption("--stage", action="append", default=[], dest="stages")


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    """Collect nothing unless stages are asked for."""
    return None if config.getoption("stages", default=[]) else True


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Take every step with the first stage, and then with the next."""
    if "rehearsal" in metafunc.fixturenames:
        stages = metafunc.config.getoption("stages")
        metafunc.parametrize("rehearsal", stages, indirect=True, scope="session")


@pytest.fixture(scope="session")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run an empty account that enforces its permissions."""
    os.environ["ALARM_EMAIL"] = "alarms@example.com"
    folder = tmp_path_factory.mktemp("rehearsal") / "emulator"
    with emulator.running(folder, settings={"AUTH": "true"}) as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def rehearsal(
    request: pytest.FixtureRequest, endpoint: str, tmp_path_factory: pytest.TempPathFactory
) -> Rehearsal:
    """Give the stage that the steps are taken with."""
    return Rehearsal(Stage(request.param), endpoint, tmp_path_factory.mktemp(request.param))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say what was not rehearsed."""
    terminalreporter.section("what the emulator lacks")
    terminalreporter.write(emulator.LIMITATIONS.read_text("utf-8"))
