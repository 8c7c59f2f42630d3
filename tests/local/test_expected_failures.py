"""The lists of cases of the contract suite that are expected to fail somewhere."""

import sys

import yaml

from tests.support.processes import run
from tools import ROOT


def test_each_expected_failure_matches_a_contract_case() -> None:
    pytest = (sys.executable, "-m", "pytest", "--collect-only", "-q")
    cases = run(*pytest, "tests/contract", cwd=ROOT)

    for file in ROOT.glob("tests/contract/expected_failures/*.yaml"):
        entries = yaml.safe_load(file.read_text())
        for entry in entries:
            assert entry in cases, file.name
