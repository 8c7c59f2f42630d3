"""A simulated AWS account (moto) that is prepared for a stage.

Methods of `Account` replace the programs that `ops` starts. tests/ops/test_programs.py,
tests/packaging/test_artifact.py and the rehearsal start the real programs.
"""

from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock, Mock

import boto3
import pytest

from ops import artifacts, programs
from ops.stage import Stage
from tools.local.template import load_template
from tools.packaging.artifact import zip_files

# Moto replaces boto3's default session for each test, and the new session would read the services'
# models again. So the tests share this session.
SESSION = boto3.Session(region_name="eu-central-1")
# These small templates replace ops/bootstrap.yaml and the template.yaml of an artifact.
BOOTSTRAP = Path(__file__).with_name("aws_account.yaml").read_text()
TEMPLATE = Path(__file__).with_name("aws_stage.yaml").read_bytes()
CONFIG = b"""
[production.deploy.parameters]
parameter_overrides = ["Stage=production", "MemorySize=1024"]
"""

# Maps an operation to the response that it gets instead of moto's, or to an exception to raise.
ANSWERS: dict[str, Any] = {}


def pack(commit: str) -> Path:
    """Write an artifact of a commit as `<commit>.zip`, always with the same bytes."""
    path = Path(f"{commit}.zip")
    path.write_bytes(
        zip_files(
            {
                "COMMIT": commit.encode(),
                "template.yaml": TEMPLATE,
                "samconfig.toml": CONFIG,
                "suite/pyproject.toml": b"",
            }
        )
    )
    return path


def limit_pages_to_one_item(params: dict[str, Any], **_: object) -> dict[str, Any]:
    """Limit each page of a scan to one item, and require that the scan reads consistently."""
    assert params["ConsistentRead"]
    return params | {"Limit": 1}


def answer(model: Any, **_: Any) -> Any:
    """Answer a call as the test has set; moto answers all others."""
    response = ANSWERS.get(model.name)
    if isinstance(response, Exception):
        raise response
    return None if response is None else (Mock(status_code=200), response)


@cache
def make_client(service: str) -> Any:
    """Make a client of a service, only once."""
    client: Any = SESSION.client(service)  # type: ignore[call-overload]
    client.meta.events.register(
        "provide-client-params.dynamodb.Scan", limit_pages_to_one_item
    )
    client.meta.events.register("before-call", answer)
    return client


class Account:
    """An account prepared for production, before its first deployment.

    Attributes:
        answers: ANSWERS, which is reset for each account.
        calls: Each run of sam and the suite, with its arguments.
        client: Makes a client of a service.
        failing: The commits that fail the contract suite.
        is_older: Replaces git's answer to whether one commit is older than another.
        process: The process of `sam`. The stack changes if its exit status is 0.
        run_suite: Replaces the program that runs the contract suite.
        sam: Replaces the program sam.
        stage: The stage `production`.
    """

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.capsys = capsys
        self.answers, self.client = ANSWERS, make_client
        self.answers.clear()
        self.answers["UpdateTerminationProtection"] = {}
        self.calls: list[list[str]] = []
        self.failing: set[str] = set()
        self.is_older = Mock(return_value=False)
        # The process has ended when `ops` first polls it.
        self.process = MagicMock(returncode=0, **{"poll.return_value": 0})
        self.process.__enter__.return_value = self.process
        self.stage = Stage("production", make_client)
        make_client("cloudformation").create_stack(
            StackName=f"{self.stage.stack}-bootstrap", TemplateBody=BOOTSTRAP
        )
        for name, table in load_template().tables.items():
            make_client("dynamodb").create_table(**table | {"TableName": name})
        self.sam = Mock(side_effect=self._sam)
        self.run_suite = Mock(side_effect=self._run_suite)
        for program in ("sam", "run_suite", "is_older"):
            monkeypatch.setattr(programs, program, getattr(self, program))

    def _sam(self, *arguments: str, folder: Path) -> MagicMock:
        """Create or update the stage's stack as `sam deploy` does; return a process."""
        self.calls.append(["sam", *arguments])
        if self.process.returncode == 0:
            cloudformation = make_client("cloudformation")
            change = cloudformation.update_stack
            if not self.stage.describe():
                change = cloudformation.create_stack
            template = (folder / "template.yaml").read_text()
            change(StackName=self.stage.stack, TemplateBody=template)
        return self.process

    def _run_suite(self, folder: Path, url: str, key: str, *arguments: str) -> int:
        """Return the exit status of the contract suite, 1 if the artifact's commit fails it."""
        assert url == "https://a/v1"
        assert key.startswith("animal_test_")
        commit = (folder / "COMMIT").read_text()
        self.calls.append(["suite", commit, *arguments])
        return int(commit in self.failing)

    def printed(self) -> str:
        """Return what was printed since the last call."""
        return self.capsys.readouterr().out

    def runs(self) -> tuple[str, str]:
        """Return the commit that the stage runs, and the last commit that passed the suite."""
        return self.stage.commit(), artifacts.last_good(self.stage)
