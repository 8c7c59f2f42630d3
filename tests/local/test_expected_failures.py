"""The lists of cases of the contract suite that are expected to fail somewhere."""

import sys

import yaml

from tests.support.processes import run
from tools import ROOT


def test_each_entry_matches_a_case_of_the_suite() -> None:
    pytest = (sys.executable, "-m", "pytest", "--collect-only", "-q")
    cases = run(*pytest, "tests/contract", cwd=ROOT)

    for file in ROOT.glob("tests/contract/expected_failures/*.yaml"):
        entries = yaml.safe_load(file.read_text())
        for entry in entries:
            assert entry in cases, file.name


def test_each_case_may_still_pass_on_aws() -> None:
    """Other reasons would stop a deployment, because the suite has never run on AWS."""
    file = ROOT / "tests/contract/expected_failures/aws.yaml"
    for reason in yaml.safe_load(file.read_text()).values():
        assert reason.startswith("not seen yet")
