"""CONTRIBUTING's worked examples: green as they are, and red without any part of them."""

import subprocess
import sys
from pathlib import Path

import pytest

from tools import ROOT

BIN = Path(sys.executable).parent
SPECTRAL = ROOT / ".tools/spectral/node_modules/.bin/spectral"
# What `make check` and `make test` run, but for the lint of templates, and for tests that need a
# checkout (admin, local, starter) or compare figures that a new operation changes.
SUITES = "tests/unit tests/contract tests/reliability tests/template tests/docs tests/clients"
CHECKS = [
    f"{BIN}/ruff format --check .",
    f"{BIN}/ruff check .",
    f"{BIN}/mypy",
    f"{SPECTRAL} lint --quiet --fail-severity=hint openapi.yaml",
    f"{BIN}/python -m pytest -q -n 2 --cov -m 'not slow' {SUITES}",
]
CLIENT = "clients/python/src/animal_store_client"
LEFT_OUT = [  # of an example, what may be forgotten; which quick tests find it, and what they name
    ("delete-pet", "openapi.yaml", "event", "openapi.yaml"),
    (
        "delete-pet",
        "functions/delete_pet/app.py",
        "event",
        "functions/delete_pet/app.py",
    ),
    ("delete-pet", "layers/common/animal_store/catalogue.py", "event", "Collection"),
    ("delete-pet", "template.yaml", "event", "template.yaml"),
    ("delete-pet", "README.md", "readme", "README.md"),
    ("delete-pet", f"{CLIENT}/client.py", "clients", "clients/python"),
    ("delete-pet", "events/*", "event", "events/"),
    ("color", "openapi.yaml", "schema", "openapi.yaml"),
    ("color", "layers/common/animal_store/models.py", "schema", "models.py"),
    ("color", "template.yaml", "roles", "template.yaml"),
    ("color", f"{CLIENT}/pet.py", "its_pet", "clients/python"),
]


def run_with(
    command: str, folder: Path, example: str, left_out: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a command in a copy of the tree to which an example is applied."""
    checkout = ["git", "checkout-index", "--all", f"--prefix={folder}/"]
    subprocess.run(checkout, cwd=ROOT, check=True)
    patch = ROOT / f"docs/examples/{example}.patch"
    subprocess.run(
        ["git", "apply", f"--exclude={left_out}", patch], cwd=folder, check=True
    )
    (folder / ".tools").symlink_to(ROOT / ".tools")
    packages = f"{folder}/clients/python/src"
    return subprocess.run(
        ["bash", "-euc", command],
        cwd=folder,
        env={"PATH": f"{BIN}:/usr/bin:/bin", "PYTHONPATH": f"{folder}:{packages}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        text=True,
    )


@pytest.mark.parametrize("example", ["delete-pet", "color"])
def test_example_is_complete(tmp_path: Path, example: str) -> None:
    checks = [check for check in CHECKS if Path(check.split()[0]).exists()]

    done = run_with("\n".join(checks), tmp_path, example)

    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(("example", "left_out", "tests", "named"), LEFT_OUT)
def test_part_that_is_left_out_is_named(
    tmp_path: Path, example: str, left_out: str, tests: str, named: str
) -> None:
    quick = f"python -m pytest -q -k '{tests}' @tests/quick.txt"

    done = run_with(quick, tmp_path, example, left_out)

    assert done.returncode != 0
    assert named in done.stdout
