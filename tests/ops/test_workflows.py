"""The workflows have the order, rights and conditions of workflows.yaml."""

from pathlib import Path
from typing import Any

import jmespath  # type: ignore[import-untyped]
import pytest
import yaml

from tools import ROOT


def read(file: Path) -> Any:
    """Read YAML whose scalars stay texts: `on` is no boolean."""
    return yaml.load(file.read_text("utf-8"), yaml.BaseLoader)  # noqa: S506


EXPECTED = read(Path(__file__).with_name("workflows.yaml"))


@pytest.mark.parametrize("workflow", EXPECTED)
def test_workflow_has_order_rights_and_conditions(workflow: str) -> None:
    jobs = read(ROOT / f".github/workflows/{workflow}.yml")
    expected = EXPECTED[workflow]
    assert {each: jmespath.search(each, jobs) for each in expected} == expected


def test_ci_asks_for_coverage() -> None:
    makefile = (ROOT / "Makefile").read_text()
    assert '-m "not slow" $(if $(CI),--cov)' in makefile
