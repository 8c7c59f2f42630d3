"""What the documents name exists: files, headings and commands."""

import re
from pathlib import Path

import pytest
import typer
from botocore import xform_name
from botocore.session import get_session

from tests.support import openapi
from tools import ROOT
from tools.cli import app

FILES = [
    *sorted(ROOT.glob("*.md")),
    *sorted(ROOT.glob("[!.]*/*.md")),
    *(ROOT / name for name in ("clients/python/README.md", "openapi.yaml")),
]
COMMANDS = {
    "make": re.findall("^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE),
    "animal-store": typer.main.get_group(app).commands,
}
each_file = pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)


@each_file
def test_commands_and_links_lead_somewhere(file: Path) -> None:
    # In code: after a backtick, or at the beginning of a line.
    text = file.read_text()
    named = r"(?:`|^ *)(?:\S*/)?(make|animal-store) ([a-z][a-z-]+)"
    for program, command in re.findall(named, text, re.MULTILINE):
        assert command in COMMANDS[program]
    for name, heading in re.findall(r"\]\(([\w./-]*)#?([\w-]*)\)", text):
        target = file.parent / name if name else file
        assert target.exists()
        if heading:  # as GitHub writes it
            words = re.sub(r"[^\w\n -]", "", target.read_text().lower())
            assert f"\n {heading}\n" in words.replace(" ", "-").replace("\n-", "\n ")


@pytest.mark.parametrize("name", ["runbook", "deployment"])
def test_aws_has_each_command(name: str) -> None:
    text = (ROOT / f"docs/{name}.md").read_text()
    for service, command in re.findall(r"\baws ([a-z0-9-]+) ([a-z-]+)", text):
        operations = get_session().get_service_model(service).operation_names
        assert command in ["wait", *(xform_name(each, "-") for each in operations)]


@openapi.each_operation
def test_readme_has_a_row_for_each_operation(operation: openapi.Operation) -> None:
    row = f"| `{operation.method} /v1{operation.path}"
    assert row in (ROOT / "README.md").read_text(), "README.md: API at a glance"
