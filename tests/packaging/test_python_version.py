"""Files name the same version of Python as .python-version."""

import re

import pytest

from tools import ROOT
from tools.packaging.targets import PYTHON

VERSION_PATTERNS = [
    ("template.yaml", r"Runtime: python(.*)"),
    ("template.yaml", r"CompatibleRuntimes: \[python(.*)\]"),
    ("tools/find-python", r"(?m)type -aP python(3[\d.]+)$"),
    (".github/CONTRIBUTING.md", r"([\d.]+) to build for AWS"),
]


@pytest.mark.parametrize(("file", "pattern"), VERSION_PATTERNS)
def test_each_file_names_the_same_python_version(file: str, pattern: str) -> None:
    versions = re.findall(pattern, (ROOT / file).read_text())

    assert set(versions) == {PYTHON}
