"""The stage with which the steps are taken, and where; without a stage no step is collected."""

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.rehearsal.account import become, emulator, left, remove
from tools import ROOT
from tools.deployment.stage import Stage
from tools.packaging.artifact import commit

STAGE = os.environ.get("REHEARSED_STAGE", "")
IS_ON_AWS = "FIRST_FLIGHT" in os.environ
EVIDENCE = ROOT / f"docs/first-flight-{time.strftime('%Y-%m-%d')}.md"
HEAD = """\
# First flight

By `make first-flight`, of commit COMMIT, in an account of its own.

Cost (to be filled in a day later: Cost Explorer, by service): $...

| Step | Result | Seconds | Different from the emulator, or wrong |
|---|---|---|---|
"""
collect_ignore_glob = [] if STAGE else ["test_*"]


@pytest.fixture(scope="session")
def administrator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Give an empty account's administrator, and leave the account empty."""
    with ExitStack() as account:
        variables = dict(os.environ)
        if not IS_ON_AWS:
            folder = tmp_path_factory.mktemp("rehearsal") / "emulator"
            variables = account.enter_context(emulator(folder))
        become(variables, Stage(STAGE), "administrator")
        assert left() == [], "this account is not empty"
        yield variables
        become(variables, Stage(STAGE), "administrator")
        remove()
        assert left() == [], "this stays in the account"


@pytest.fixture(autouse=True)
def stage(administrator: dict[str, str], request: pytest.FixtureRequest) -> Stage:
    """Take a step in the role that it is marked with, or else in the one that deploys."""
    marker = request.node.get_closest_marker("role")
    become(administrator, Stage(STAGE), marker.args[0] if marker else "DeployRole")
    return Stage(STAGE)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note a step of a first flight in the file of evidence."""
    if not IS_ON_AWS or (report.when != "call" and report.passed):
        return
    lines = [line for line in report.capstdout.splitlines() if line.startswith("! ")]
    cells = report.nodeid, report.outcome, f"{report.duration:.0f}", "<br>".join(lines)
    if not EVIDENCE.exists():
        EVIDENCE.write_text(HEAD.replace("COMMIT", commit()), "utf-8")
    with EVIDENCE.open("a", encoding="utf-8") as evidence:
        print("", *cells, "", sep=" | ", file=evidence)
