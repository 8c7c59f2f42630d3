"""What the documents name exists: files and commands."""

import re
from pathlib import Path

import pytest
import typer
from botocore import xform_name
from botocore.session import Session

from ops.cli import app
from tools import ROOT

FILES = [
    ROOT / "openapi.yaml",
    *ROOT.glob("*.md"),
    *ROOT.glob(".github/*.md"),
    *ROOT.glob("[!.]*/**/*.md"),
]
COMMANDS = {
    "make": re.findall("(?m)^([a-z-]+):", (ROOT / "Makefile").read_text()),
    "animal-store": typer.main.get_group(app).commands,
}
AWS = Session()


@pytest.mark.parametrize("file", sorted(FILES), ids=lambda file: file.name)
def test_commands_and_links_lead_somewhere(file: Path) -> None:
    text = file.read_text()
    # In code: after a backtick, or at the beginning of a line.
    named = r"(?:`|^ *)(?:\S*/)?(make|animal-store) ([a-z][a-z-]+)"
    for program, command in re.findall(named, text, re.MULTILINE):
        assert command in COMMANDS[program]
    for service, command in re.findall(r"\baws ([a-z0-9-]+) ([a-z-]+)", text):
        operations = AWS.get_service_model(service).operation_names
        assert command in ["wait", *(xform_name(each, "-") for each in operations)]
    for name in re.findall(r"\]\(([\w./-]+)[#)]", text):
        assert (file.parent / name).exists()
