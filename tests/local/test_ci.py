"""`.ci/run`, which runs the checks of the workflows, too: its steps, and its exit status."""

import os
import shutil
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
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let .ci/run find programs that do nothing, first on PATH."""
    names = ("apt-get", "chromium", "curl", "go", "java", "make", "valgrind", "engine")
    scripts = dict.fromkeys(names, PROGRAM)
    real = shutil.which("git")
    scripts["git"] = (
        f'#!/bin/sh\nif [ $1 = clone ]; then mkdir "$4"; else {real} "$@"; fi\n'
    )
    for name, script in scripts.items():
        (tmp_path / name).touch(0o755)
        (tmp_path / name).write_text(script)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("LAMBDA_IMAGE_READY", f"{tmp_path}/engine")


def run_ci(*steps: str, failing: str = "nothing") -> str:
    return run("bash", ".ci/run", *steps, cwd=ROOT, FAILING=failing)


def test_all_steps_run_in_order_without_arguments() -> None:
    lines = run_ci().splitlines()

    folders = "tests/clients tests/unit tests/local tests/ops"
    assert [line for line in lines if not line.startswith("==")] == [
        "make check",
        "make quick",
        "make test COVERAGE=1",
        "make -s test PYTEST_CMD=true",
        f"make -s test PYTEST_CMD=.venv/bin/python -m pytest {folders}",
        "engine ",
        "make test-slow",
        "make rehearse",
    ]


@pytest.mark.parametrize(
    ("step", "failing"),
    [
        ("check", "make check"),
        ("quick", "make quick"),
        ("test", "make test "),
        ("elsewhere", "PYTEST_CMD=true"),
        ("elsewhere", "tests/ops"),
        ("engine", "engine"),
        ("test-slow", "make test-slow"),
        ("rehearse", "make rehearse"),
    ],
)
def test_failed_step_is_named_after_all_steps_ran(step: str, failing: str) -> None:
    with pytest.raises(AssertionError) as failure:
        run_ci(failing=failing)

    assert str(failure.value).endswith(f"s in all\nfailed: {step}\n")


@pytest.mark.parametrize(
    ("step", "failing"),
    [
        ("artifact", "make build"),
        ("page", "make .tools"),
        ("vulnerabilities", "go run"),
        ("wheel", "make .tools"),
    ],
)
def test_failed_step_of_a_workflow_fails(step: str, failing: str) -> None:
    with pytest.raises(AssertionError, match=f"failed: {step}"):
        run_ci(step, failing=failing)


def test_vulnerability_scan_covers_every_lock_file() -> None:
    output = run_ci("vulnerabilities")

    assert " scan source --lockfile=" in output
    scanned = {word for word in output.split() if word.startswith("--lockfile=")}
    locks = [*ROOT.glob("tools/locks/*/package-lock.json")]
    locks += [ROOT / "uv.lock", ROOT / "tools/programs/uv.lock"]
    expected = {f"--lockfile={file.relative_to(ROOT)}" for file in locks}
    expected.add("--lockfile=requirements.txt:tools/locks/uv.txt")
    assert scanned == expected


@pytest.mark.parametrize("folder", ["ops", "tools"])
def test_failure_of_a_child_process_is_never_ignored(folder: str) -> None:
    for file in (ROOT / folder).rglob("*.py"):
        assert "check=False" not in file.read_text(), file
