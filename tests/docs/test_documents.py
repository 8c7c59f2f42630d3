"""Commands and links of the documents exist."""

import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
import typer
from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.support import openapi
from tools import ROOT
from tools.cli import app

DOCUMENTS = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("[!.]*/*.md"), *ROOT.glob("[cp]*/*/*.md")]
)
COMMANDS = typer.main.get_group(app).commands
MAKEFILE = (ROOT / "Makefile").read_text()


def tokens(document: Path) -> Iterator[Token]:
    for token in MarkdownIt().enable("table").parse(document.read_text()):
        yield from (token, *(token.children or ()))


def anchors(document: Path) -> list[str]:
    """Name a document's headings as GitHub does in links to them."""
    lines = document.read_text().splitlines()
    headings = [
        line.lstrip("#").strip().lower() for line in lines if line.startswith("#")
    ]
    return [
        "".join(c for c in text if c.isalnum() or c in " -_").replace(" ", "-")
        for text in headings
    ]


def commands(document: Path) -> Iterator[list[str]]:
    """Split what people are to type at a shell into words: one list for each command."""
    for token in tokens(document):
        if token.type in {"code_inline", "code_block", "fence"}:
            for line in token.content.replace("\\\n", " ").splitlines():
                if "make " in line or "animal-store " in line:
                    yield shlex.split(line.removeprefix("$ "), comments=True)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_to_files_and_headings(document: Path) -> None:
    for token in tokens(document):
        link = token.attrGet("href") or token.attrGet("src")
        if link and "://" not in str(link):
            file, _, anchor = str(link).partition("#")
            target = document.parent / file if file else document
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_commands_exist(document: Path) -> None:
    for words in commands(document):
        for program, argument in pairwise(words):
            if program == "make" and argument.replace("-", "").isalpha():
                assert f"\n{argument}:" in MAKEFILE, words
            if program.endswith("animal-store") and not argument.startswith("-"):
                assert argument in COMMANDS, words


@pytest.mark.parametrize(
    "operation", openapi.operations(), ids=lambda operation: operation.id
)
def test_documents_name_every_operation(operation: openapi.Operation) -> None:
    row = f"| `{operation.method} /v1{operation.path}"
    assert row in (ROOT / "README.md").read_text(), (
        f"README.md, API at a glance: add a row for {operation.id}."
    )
    assert f"`{operation.id}`" in (ROOT / "SECURITY.md").read_text(), (
        f"SECURITY.md, A stolen key: say that it reaches {operation.id}."
    )
