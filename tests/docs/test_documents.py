"""Linked files and commands exist; README shows the real code and output."""

import re
import subprocess
from pathlib import Path

import pytest
import typer
from botocore import xform_name
from botocore.session import Session

from ops.cli import app
from tests.support.processes import require, run_service
from tools import ROOT

README = (ROOT / "README.md").read_text()

FILES = [
    ROOT / "openapi.yaml",
    *ROOT.glob("*.md"),
    *ROOT.glob(".github/*.md"),
    *ROOT.glob("[!.]*/*.md"),
    *ROOT.glob("[!.]*/*/*.md"),
]
COMMANDS = {
    "make": re.findall("(?m)^([a-z-]+):", (ROOT / "Makefile").read_text()),
    "animal-store": typer.main.get_group(app).commands,
}
BOTOCORE_SESSION = Session()


@pytest.mark.parametrize("file", sorted(FILES), ids=lambda file: file.name)
def test_commands_and_linked_files_in_a_document_exist(file: Path) -> None:
    text = file.read_text()
    # Match behind a backtick or at a line's start; elsewhere, "make" is an English word.
    pattern = r"(?:`|^ *)(?:\S*/)?(make|animal-store) ([a-z][a-z-]+)"
    for program, command in re.findall(pattern, text, re.MULTILINE):
        assert command in COMMANDS[program]
    # `aws configure` is a command of the AWS CLI itself, not of a service.
    for service, command in re.findall(
        r"\baws (?!configure )([a-z0-9-]+) ([a-z-]+)", text
    ):
        operations = BOTOCORE_SESSION.get_service_model(service).operation_names
        assert command in ["wait", *(xform_name(name, "-") for name in operations)]
    for name in re.findall(r"\]\(([\w./-]+)[#)]", text):
        assert (file.parent / name).exists()


def test_readme_shows_the_handler_of_list_pets() -> None:
    (shown,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)

    handler = (ROOT / "functions/list_pets/app.py").read_text()
    code = handler[handler.index("from animal_store") :]
    # `make starter` sorts the imports by their new names, but not those in README.md.
    assert sorted(shown.splitlines()) == sorted(code.splitlines())
    assert code.endswith(shown.partition("\n\n")[2])


def test_commands_and_responses_in_the_readme_match_make_run(tmp_path: Path) -> None:
    require("curl")
    with run_service(tmp_path) as service:
        readme = README.replace("http://127.0.0.1:3000", service.origin)
        readme = readme.replace("animal_test_...", service.api_key).replace("\\\n", "")
        shown = re.findall(r"\$ (curl .*)\n(?:.*\n)+?    ([{[].*)", readme)

        printed_commands = re.findall(r"(?m)^  (curl .*)", service.console.read_text())
        assert [" ".join(command.split()) for command, _ in shown] == printed_commands
        for command, response in shown:
            assert subprocess.getoutput(command).splitlines()[-1] == response
