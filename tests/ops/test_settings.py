"""Workflows and ops/bootstrap.yaml have the settings of settings.yaml."""

import subprocess
from pathlib import Path
from typing import Any

import jmespath  # type: ignore[import-untyped]
import pytest
import yaml

from tools import ROOT


def read(file: Path) -> Any:
    """Read YAML whose scalars stay texts: `on` is no boolean."""
    return yaml.load(file.read_text("utf-8"), yaml.BaseLoader)  # noqa: S506


SETTINGS = read(Path(__file__).with_name("settings.yaml"))


@pytest.mark.parametrize("file", SETTINGS)
def test_file_has_the_settings_listed_in_settings_yaml(file: str) -> None:
    document, expected = read(ROOT / file), SETTINGS[file]
    assert {each: jmespath.search(each, document) for each in expected} == expected


def test_weekly_vulnerability_scan_covers_every_lock_file() -> None:
    job = read(ROOT / ".github/workflows/weekly.yml")["jobs"]["vulnerabilities"]
    listing, _, _ = job["steps"][1]["run"].partition("| xargs")

    arguments = subprocess.check_output(["bash", "-c", listing], cwd=ROOT, text=True)

    locks = ROOT / "tools/locks"
    expected = {"--lockfile=uv.lock"}
    for file in locks.glob("*/package-lock.json"):
        expected.add(f"--lockfile={file.relative_to(ROOT)}")
    for file in locks.glob("*.txt"):
        expected.add(f"--lockfile=requirements.txt:{file.relative_to(ROOT)}")
    assert {*arguments.split()} == expected


def test_makefile_measures_coverage_in_ci() -> None:
    makefile = (ROOT / "Makefile").read_text()
    assert '-m "not slow" $(if $(CI),--cov)' in makefile
