"""`.ci/run`, with which workflows and people run the checks: its steps and exit status."""

import os
from pathlib import Path

import pytest

from tests.support.processes import run
from tools import ROOT

# Prints its name and arguments. Fails if these contain the text in the variable FAILING.
PROGRAM = """\
#!/bin/sh
line="$(basename "$0") $*"
echo "$line"
case "$line" in *"$FAILING"*) exit 1 ;; esac
"""


@pytest.fixture(autouse=True)
def put_fake_programs_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let .ci/run find stand-ins for programs."""
    for name in ("apt-get", "engine", "go", "make", "sha256sum"):
        (tmp_path / name).touch(0o755)
        (tmp_path / name).write_text(PROGRAM)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("LAMBDA_IMAGE_READY", f"{tmp_path}/engine")


def run_ci(*steps: str, failing: str = "nothing") -> str:
    return run("bash", ".ci/run", *steps, cwd=ROOT, FAILING=failing)


def test_later_steps_run_although_the_first_one_fails() -> None:
    with pytest.raises(AssertionError) as failure:
        run_ci(failing="make check")

    lines = str(failure.value).splitlines()
    folders = "tests/clients tests/unit tests/local tests/ops tests/packaging"
    assert [line for line in lines if line.startswith(("make", "engine", "fail"))] == [
        "make check",
        "make quick",
        "make test COVERAGE=1",
        "make -s test PYTEST_CMD=true",
        f"make -s test PYTEST_CMD=.venv/bin/python -m pytest {folders}",
        "engine ",
        "make test-slow",
        "make rehearse",
        "failed: check",
    ]


@pytest.mark.parametrize(
    ("step", "failing"),
    [
        ("artifact", "make"),
        ("check", "make"),
        ("elsewhere", "PYTEST_CMD=true"),
        ("elsewhere", "tests/ops"),
        ("engine", "engine"),
        ("page", "make"),
        ("quick", "make"),
        ("rehearse", "make"),
        ("test", "make"),
        ("test-slow", "make"),
        ("vulnerabilities", "go"),
        ("wheel", "make"),
    ],
)
def test_step_fails_if_its_program_fails(step: str, failing: str) -> None:
    with pytest.raises(AssertionError, match=f"failed: {step}"):
        run_ci(step, failing=failing)


def test_uv_lock_of_tools_is_scanned_for_vulnerabilities() -> None:
    assert "=tools/programs/uv.lock" in run_ci("vulnerabilities")


@pytest.mark.parametrize("folder", ["ops", "tools"])
def test_no_child_process_runs_with_check_false(folder: str) -> None:
    for file in (ROOT / folder).rglob("*.py"):
        assert "check=False" not in file.read_text(), file
