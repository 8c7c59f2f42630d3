"""An account on moto that is prepared for a stage; the programs are methods of `Account`.

The real ones are started in tests/ops/test_programs.py and in the rehearsal.
"""

import zipfile
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import boto3
import pytest

from ops import artifacts, programs
from ops.stage import Stage

# Moto makes the default one anew for each test, which would read the services' models again.
SESSION = boto3.Session(region_name="eu-central-1")
# They stand for the stack of ops/bootstrap.yaml, and for the template of an artifact.
BOOTSTRAP = Path(__file__).with_name("aws_account.yaml").read_text()
TEMPLATE = Path(__file__).with_name("aws_stage.yaml").read_text()
CONFIG = """
[production.deploy.parameters]
parameter_overrides = ["Stage=production", "MemorySize=1024"]
"""

# By operation, what AWS answers instead of moto; an exception is raised.
ANSWERS: dict[str, Any] = {}


def pack(commit: str) -> Path:
    """Write an artifact of a commit as `<commit>.zip`, each time the same bytes."""
    path = Path(f"{commit}.zip")
    files = {"COMMIT": commit, "template.yaml": TEMPLATE, "samconfig.toml": CONFIG}
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name), text)  # dated 1980
    return path


def read_one(params: dict[str, Any], **_: object) -> dict[str, Any]:
    """Give pages of one item; ask for the table as it is now."""
    assert params["ConsistentRead"]
    return params | {"Limit": 1}


def answer(model: Any, **_: Any) -> Any:
    """Answer a call in place of moto."""
    response = ANSWERS.get(model.name)
    if isinstance(response, Exception):
        raise response
    return None if response is None else (Mock(status_code=200), response)


@cache
def make_client(service: str) -> Any:
    """Make a client of a service once: it takes longer than most tests."""
    client: Any = SESSION.client(service)  # type: ignore[call-overload]
    client.meta.events.register("provide-client-params.dynamodb.Scan", read_one)
    client.meta.events.register("before-call", answer)
    return client


class Account:
    """An account that is prepared for production, which is not deployed yet.

    Attributes:
        answers: ANSWERS, which each account empties.
        calls: The programs that were started, in order, with their arguments.
        client: Makes a client of a service.
        failing: Commits that fail their contract suite.
        is_older: What git is asked about two commits.
        process: The process of `sam`, which changes the stack if its exit status is 0.
        stage: The stage.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answers, self.client = ANSWERS, make_client
        self.answers.clear()
        self.answers["UpdateTerminationProtection"] = {}
        self.calls: list[list[str]] = []
        self.failing: set[str] = set()
        self.is_older = Mock(return_value=False)
        # It ends before it is first asked; a loop that asks again fails instead of going on.
        self.process = Mock(**{"poll.side_effect": [0], "wait.return_value": 0})
        self.stage = Stage("production", make_client)
        make_client("cloudformation").create_stack(
            StackName=f"{self.stage.stack}-bootstrap", TemplateBody=BOOTSTRAP
        )
        monkeypatch.setattr(programs, "sam", self.sam)
        monkeypatch.setattr(programs, "run_suite", self.run_suite)
        monkeypatch.setattr(programs, "is_older", self.is_older)
        monkeypatch.setattr(programs, "require_sam", lambda: None)

    def sam(self, *arguments: str, folder: Path) -> Mock:
        """Create or update the stage's stack as `sam deploy` does; return a process."""
        self.calls.append(["sam", *arguments])
        if self.process.wait() == 0:
            cloudformation = make_client("cloudformation")
            change = cloudformation.update_stack
            if not self.stage.describe():
                change = cloudformation.create_stack
            template = (folder / "template.yaml").read_text()
            change(StackName=self.stage.stack, TemplateBody=template)
        return self.process

    def run_suite(self, folder: Path, url: str, key: str, *arguments: str) -> int:
        """Return 1 if the commit of an artifact fails."""
        assert url == "https://a/v1"
        assert key.startswith("animal_test_")
        commit = (folder / "COMMIT").read_text()
        self.calls.append(["suite", commit, *arguments])
        return int(commit in self.failing)

    def runs(self) -> tuple[str, str]:
        """Name the commit that the stage runs, and the last that passed its check."""
        return self.stage.commit(), artifacts.last_good(self.stage)
