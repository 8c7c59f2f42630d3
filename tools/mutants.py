"""Change the code by a program, one small change at a time; each must make a test fail."""

import json
import os
import re
import subprocess
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from difflib import ndiff
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from coverage import CoverageData

from tools import ROOT
from tools.planted_faults import Fault, check_intact, draw, judge

_ACCEPTED = ROOT / "tests/accepted_mutants.toml"
_REQUESTS = "tests/unit tests/reliability/test_faults.py tests/contract"
# After the tests, because linters take longer.
_LINT = " && make -s lint-templates"
_STACK = "tests/template tests/unit/test_roles.py tests/deployment/test_check_stage.py"
_RIGHTS = "tests/deployment/test_bootstrap.py tests/deployment/test_permissions.py"
# What may be changed, and the tests that must notice.
_SUITES = {
    "layers/common/animal_store/*.py": _REQUESTS,
    "functions/*/app.py": _REQUESTS,
    "clients/python/src/*/*.py": "tests/clients/test_client.py",
    "tools/deployment/*.py": "tests/deployment tests/reliability/test_repair.py",
    "tools/admin/*.py": "tests/admin",
    "tools/key_table.py": "tests/admin tests/deployment/test_commands.py",
    "template.yaml": _STACK + _LINT,
    "bootstrap.yaml": _RIGHTS + _LINT,
    ".github/workflows/*.yml": "tests/deployment/test_workflows.py && make -s check-workflows",
}
# Read by people alone.
_PROSE = {
    "AlarmDescription",
    "AssertDescription",
    "Description",
    "Label",
    "Sid",
    "comment",
    "description",
}
_OPPOSITES = {"true": "false", "false": "true", "Allow": "Deny", "Deny": "Allow"}


def mutants(
    only: Annotated[str, typer.Option(help="A file or folder; empty for all.")] = "",
    sample: Annotated[int, typer.Option(help="So many, drawn by SEED.")] = 0,
    seed: Annotated[int, typer.Option(help="Another draw.")] = 0,
) -> None:
    """Print each change that no test notices, and the score; exit with 1 if there is one."""
    listed = tomllib.loads(_ACCEPTED.read_text("utf-8"))["mutant"]
    accepted = [(each["file"], each["line"]) for each in listed]
    found: list[Fault] = []
    for pattern, suite in _SUITES.items():
        for path in sorted(ROOT.glob(pattern)):
            file = str(path.relative_to(ROOT))
            if file.startswith(only):
                make = python if file.endswith(".py") else settings
                found += make(file, suite)
    drawn = [
        mutant
        for mutant in draw(found, sample, str(seed))
        if (mutant.file, changed_line(mutant.name)) not in accepted
    ]
    if drawn or not found:
        judge(drawn)


def changed_line(name: str) -> str:
    """Return the last line that comes, or if none does, the last that goes."""
    lines = name.splitlines()[1:]
    added = [line for line in lines if line.startswith("+")]
    return (added or lines)[-1][2:].strip()


def python(file: str, suite: str) -> Iterator[Fault]:
    """Change what mutmut would, except a command's help, on lines that the suite runs."""
    text, tests = (ROOT / file).read_text("utf-8"), _tests_of_lines(suite)
    command = [".tools/mutmut/bin/python", "tools/mutations.py", file]
    printed = subprocess.check_output(command, cwd=ROOT, text=True)
    for line, changed in map(json.loads, printed.splitlines()):
        if tests[file, line] and without_help(changed) != without_help(text):
            yield Fault(diff(file, text, changed), tests[file, line], file, changed)


def without_help(text: str) -> str:
    """Return a module without the help texts of its commands' options."""
    return re.sub(r'\b(help|metavar)=("[^"]*"|None),?\s*', "", text)


@cache
def _tests_of_lines(suite: str) -> dict[tuple[str, int], str]:
    """Return the tests of a suite that run a line of a file.

    They are recorded once for a state of the tree, in `.tools`, in place of an older record.
    """
    index = os.environ | {"GIT_INDEX_FILE": ".tools/index"}
    command = ["sh", "-c", "git add --all && git write-tree"]
    state = subprocess.check_output(command, cwd=ROOT, env=index, text=True)
    name = re.sub(r"\W+", "-", f"coverage {suite}")
    record = ROOT / ".tools" / f"{name}.{state.strip()}"
    if not record.exists():
        for older in record.parent.glob(f"{name}.*"):
            older.unlink()
        coverage = "-n auto --cov=. --cov-context=test --cov-report= --cov-fail-under=0"
        check_intact(Fault("", f"{coverage} {suite}"), COVERAGE_FILE=f"{record}.new")
        Path(f"{record}.new").rename(record)
    data = CoverageData(str(record))
    data.read()
    found: dict[tuple[str, int], str] = defaultdict(str)
    for path in data.measured_files():
        file = path.partition("/tree/")[2]
        for line, contexts in data.contexts_by_lineno(path).items():
            # Without the cases, whose names may not be safe in a command.
            tests = sorted({re.split(r"\[|\|", context)[0] for context in contexts})
            # What runs when a module is imported may matter to each test.
            found[file, line] = " ".join(tests) if all(tests) else suite
    return found


def settings(file: str, suite: str) -> Iterator[Fault]:
    """Change each value of a YAML file that is not prose, and leave out each entry of a list."""
    unchanged, *mutants = values((ROOT / file).read_text("utf-8"))
    check_intact(Fault("", suite, file, unchanged))
    for text in mutants:
        yield Fault(diff(file, unchanged, text), suite, file, text)


def values(text: str) -> Iterator[str]:
    """Yield a YAML text as it is, and then with each change; without comments."""
    root: Any = yaml.compose(text, yaml.CSafeLoader)
    yield yaml.serialize(root, Dumper=yaml.CSafeDumper)
    nodes = [root]
    while nodes:
        node = nodes.pop()
        original = node.value
        if isinstance(node, yaml.MappingNode):
            nodes += [value for key, value in original if key.value not in _PROSE]
            continue
        if isinstance(node, yaml.SequenceNode):
            nodes += original
            changes = [original[:i] + original[i + 1 :] for i in range(len(original))]
        else:
            changes = [other(original)]
        for node.value in changes:
            yield yaml.serialize(root, Dumper=yaml.CSafeDumper)
        node.value = original


def other(value: str) -> str:
    """Return another value: ten times a number, the opposite, or a text with one more letter."""
    number = str(int(value) * 10 or 1) if value.isdecimal() else f"{value}x"
    return _OPPOSITES.get(value, number)


def diff(file: str, before: str, after: str) -> str:
    """Return a file's name, and the lines that go and come."""
    lines = ndiff(before.splitlines(), after.splitlines())
    return "\n".join([file, *(line for line in lines if line[0] in "-+")])
