"""The version of Python that AWS runs, in each place that has it."""

import re

import pytest

from tools import ROOT

PLACES = [
    ("template.yaml", r"Runtime: python(.*)"),
    ("template.yaml", r"CompatibleRuntimes: \[python(.*)\]"),
    ("Makefile", r"--python-version (\S+) -c "),
    ("tools/find-python", r"# .* environments with: ([\d.]+) first"),
    ("tools/find-python", r"set -- python([\d.]+) "),
    ("tools/find-python", r"versions/([\d.]+)\.\*/bin/python[\d.]+"),
    ("tools/find-python", r"\(([\d.]+) is best: it is what AWS runs\)"),
    ("tools/local/sam.py", r"lambda/python:([\d.]+)-"),
    ("tools/packaging/bytecode.py", r"compiled by CPython (\d+\.\d+)\."),
    ("tools/packaging/bytecode.py", r"PYTHON=/path/to/python([\d.]+) build"),
    ("tools/packaging/targets.py", r"PYTHON = \((\d+, \d+)\)"),
    ("tests/benchmarks/test_benchmark.py", r"version_info\[:2\] != \((\d+, \d+)\)"),
    ("README.md", r"badge/python-([\d.]+)-"),
    ("README.md", r"CPython ([\d.]+) and the SAM CLI"),
    (".github/CONTRIBUTING.md", r"; ([\d.]+) to build for AWS"),
    ("tools/benchmarks/README.md", r"# on Linux with CPython ([\d.]+)"),
]


@pytest.mark.parametrize(("file", "pattern"), PLACES)
def test_place_has_the_version_of_dot_python_version(file: str, pattern: str) -> None:
    version = (ROOT / ".python-version").read_text().strip()

    found = re.findall(pattern, (ROOT / file).read_text())

    assert {each.replace(", ", ".") for each in found} == {version}
