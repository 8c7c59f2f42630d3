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


def pack(commit: str, config: str = CONFIG) -> Path:
    """Write an artifact of a commit as `<commit>.zip`, each time the same bytes."""
    path = Path(f"{commit}.zip")
    files = {"COMMIT": commit, "template.yaml": TEMPLATE, "samconfig.toml": config}
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
        older: Commits that git calls older than others.
        sam_polls: What each question whether `sam` has ended gets: None while it runs.
        sam_succeeds: Whether `sam` changes the stack.
        stage: The stage.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answers, self.client = ANSWERS, make_client
        self.answers.clear()
        self.answers["UpdateTerminationProtection"] = {}
        self.calls: list[list[str]] = []
        self.failing: set[str] = set()
        self.older: set[str] = set()
        self.sam_polls: list[int | None] = [0]
        self.sam_succeeds = True
        self.stage = Stage("production", make_client)
        make_client("cloudformation").create_stack(
            StackName=f"{self.stage.stack}-bootstrap", TemplateBody=BOOTSTRAP
        )
        monkeypatch.setattr(programs, "sam", self.sam)
        monkeypatch.setattr(programs, "run_suite", self.run_suite)
        monkeypatch.setattr(programs, "is_ancestor", self.is_ancestor)
        monkeypatch.setattr(programs, "require_sam", lambda: None)

    def sam(self, *arguments: str, folder: Path) -> Mock:
        """Create or update the stage's stack as `sam deploy` does; return a process."""
        self.calls.append(["sam", *arguments])
        process = Mock()
        process.poll.side_effect = self.sam_polls
        process.wait.return_value = 1
        if self.sam_succeeds:
            cloudformation = make_client("cloudformation")
            change = cloudformation.update_stack
            if not self.stage.describe():
                change = cloudformation.create_stack
            template = (folder / "template.yaml").read_text()
            change(StackName=self.stage.stack, TemplateBody=template)
            process.wait.return_value = 0
        return process

    def run_suite(self, _: Stage, folder: Path, key: str, *arguments: str) -> int:
        """Return 1 if the suite fails: each commit promises what no other commit does."""
        assert key.startswith("animal_test_")
        commit = (folder / "COMMIT").read_text()
        self.calls.append(["suite", commit, *arguments])
        return int(commit != self.stage.commit() or commit in self.failing)

    def is_ancestor(self, commit: str, other: str) -> bool:
        """Compare commits as git does."""
        self.calls.append(["git", commit, other])
        return commit in self.older

    def runs(self) -> tuple[str, str]:
        """Name the commit that the stage runs, and the last that passed its check."""
        return self.stage.commit(), artifacts.last_good(self.stage)
