"""What the documents name exists: files, headings, commands, alarms, the texts of faults."""

import re
from itertools import chain
from pathlib import Path

import pytest
import typer
from botocore import xform_name
from botocore.session import get_session
from markdown_it import MarkdownIt

from tests.support import openapi
from tests.support.stack import block_of
from tools import ROOT
from tools.cli import app

DOCUMENTS = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("[!.]*/*.md"), *ROOT.glob("[cp]*/*/*.md")]
)
TARGETS = re.findall("^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
COMMANDS = {"make": TARGETS, "animal-store": typer.main.get_group(app).commands}
RUNBOOK = (ROOT / "docs/runbook.md").read_text()
OPERATING = RUNBOOK + (ROOT / "docs/deployment.md").read_text()
AWS_COMMANDS = sorted(set(re.findall(r"\baws ([a-z0-9-]+) ([a-z-]+)", OPERATING)))
TEMPLATE = (ROOT / "template.yaml").read_text()
BLOCKS = "|".join(block_of(operation.id) for operation in openapi.operations())
ALARMS = {*re.findall(rf"^  (?:{BLOCKS})?(\w+Alarm):", TEMPLATE, re.MULTILINE)}


def anchors(document: Path) -> list[str]:
    """Name a document's headings as GitHub does in links to them."""
    headings = re.findall("^#+ (.+)", document.read_text(), re.MULTILINE)
    return [re.sub(r"[^\w -]", "", text).lower().replace(" ", "-") for text in headings]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_links_lead_somewhere_and_commands_exist(document: Path) -> None:
    blocks = MarkdownIt().enable("table").parse(document.read_text())
    for token in chain(blocks, *(block.children or () for block in blocks)):
        link = str(token.attrGet("href") or token.attrGet("src") or "")
        if "://" not in link:
            file, _, anchor = link.partition("#")
            target = document.parent / file if file else document
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), link
        if token.tag == "code":
            named = re.findall(r"\b(make|animal-store) ([a-z][a-z-]+)", token.content)
            for program, command in named:
                assert command in COMMANDS[program], f"{program} {command}"


@pytest.mark.parametrize(("service", "command"), AWS_COMMANDS)
def test_aws_has_each_command(service: str, command: str) -> None:
    operations = get_session().get_service_model(service).operation_names
    assert command in ["wait", *(xform_name(name, "-") for name in operations)]


@pytest.mark.parametrize("alarm", sorted(ALARMS))
def test_runbook_has_a_section_for_each_alarm(alarm: str) -> None:
    headings = [line for line in RUNBOOK.splitlines() if line.startswith("### ")]
    assert alarm in " ".join(headings)


# What may name operations and their events; CONTRIBUTING's examples add and remove one.
NAMING = [
    *(document for document in DOCUMENTS if document.name != "CHANGELOG.md"),
    *(ROOT / name for name in ("template.yaml", "openapi.yaml", "Makefile")),
    *(ROOT / name for name in (".vscode/launch.json", "docs/architecture.dot")),
]
EXAMPLES = {"CONTRIBUTING.md": {"deletepet", "getpet"}}


@pytest.mark.parametrize("file", NAMING, ids=lambda file: file.name)
def test_operations_and_events_that_are_named_exist(file: Path) -> None:
    text = file.read_text()
    verbs = "list|create|get|change|replace|update|delete"
    known = {each.id.lower() for each in openapi.operations()}
    known |= EXAMPLES.get(file.name, set())
    for name in re.findall(rf"\b(?:{verbs})_?[Pp]ets?\b", text):
        assert name.replace("_", "").lower() in known, name
    for event in re.findall(r"\bevents/[\w-]+\.json", text):
        assert (ROOT / event).exists(), event
    for method, path in re.findall(r"`([A-Z]+) (?:/v1)?(/pets/?[^\s`?]*)", text):
        assert openapi.find(method, path) or method == "OPTIONS", f"{method} {path}"


@openapi.each_operation
def test_readme_has_a_row_for_each_operation(operation: openapi.Operation) -> None:
    row = f"| `{operation.method} /v1{operation.path}"
    assert row in (ROOT / "README.md").read_text(), "README.md: API at a glance"
