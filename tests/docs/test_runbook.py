"""What the documents tell people to type, look at and follow exists; what editors are told too."""

import importlib.util
import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import botocore.session
import pytest
import typer
import yaml
from botocore import xform_name

from tests.support import openapi
from tests.support.stack import of_type, parameters
from tools import ROOT
from tools.cli import app
from tools.deployment.__main__ import app as deployment
from tools.packaging.translate import translate

RUNBOOK = (ROOT / "docs/runbook.md").read_text()
DOCUMENTS = sorted({*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")})
COMMANDS = {
    name: typer.main.get_command(each)
    for name, each in {"tools": app, "tools.deployment": deployment}.items()
}
AWS_WORDS = {
    "AccessDeniedException",
    "ConcurrentExecutions",
    "ResourceNotFoundException",
    "VpcConfig",
}
OPERATION, TELEMETRY = (
    (ROOT / f"layers/common/animal_store/{name}.py").read_text()
    for name in ("operation", "telemetry")
)
# What Powertools writes with an exception, and what a request's line adds.
LOG_FIELDS = {"level", "message", "exception", "exception_name", "xray_trace_id"}
LOG_FIELDS |= set(re.findall(r'"(\w+)"', TELEMETRY.split("\ndef write(")[1].split("\ndef ")[0]))


def code(text: str) -> Iterator[str]:
    """Every piece of code in a Markdown text: lines of blocks (continued ones as one), and code inside of sentences."""
    block = r"^ *```\w*\n(.*?)^ *```"
    lines = re.sub(
        r"\\\n", " ", "".join(re.findall(block, text, re.DOTALL | re.MULTILINE))
    ).splitlines()
    rest = re.sub(block, "", text, flags=re.DOTALL | re.MULTILINE)
    yield from (
        re.split(r"\s#\s", line)[0]
        for line in lines + re.findall(r"^ {4}(\S.*)$", rest, re.MULTILINE)
    )
    yield from re.findall(r"(?<!`)`([^`\n]+)`(?!`)", rest)


def section(heading: str) -> str:
    return re.split(r"^## ", RUNBOOK.split(f"\n## {heading}\n")[1], flags=re.MULTILINE)[0]


def test_alarms_widgets_names_values_and_fields_of_logs_are_those_of_the_service() -> None:
    stack = translate(parameters("production"))
    alarms = of_type(stack, "AWS::CloudWatch::Alarm")
    headings = re.findall(r"^### (.*)$", section("Alarms"), re.MULTILINE)
    assert sorted(name for heading in headings for name in heading.split(", ")) == sorted(alarms)
    assert all(
        "docs/runbook.md" in properties["AlarmDescription"] for properties in alarms.values()
    )
    titles = re.findall(
        r'"title": "([^"]+)"',
        stack["Resources"]["Dashboard"]["Properties"]["DashboardBody"]["Fn::Sub"],
    )
    assert re.findall(r"^\| ([^|]+?) \|", section("Dashboard"), re.MULTILINE) == ["Widget", *titles]
    names = (
        {name for part in ("Parameters", "Resources", "Outputs") for name in stack[part]}
        | AWS_WORDS
        | LOG_FIELDS
    )
    names |= set(re.findall(r"^  (\w+):", (ROOT / "bootstrap.yaml").read_text(), re.MULTILINE))
    words = {word for word in code(RUNBOOK) if re.fullmatch(r"(?:[A-Z][a-z]+){2,}", word)}
    assert len(words) > 20
    assert words <= names
    for name, value in re.findall(
        r"^([A-Z][a-z]\w*)=(\w+)$", "\n".join(code(RUNBOOK)), re.MULTILINE
    ):
        assert value in stack["Parameters"][name]["AllowedValues"]
    access_log = json.loads(
        stack["Resources"]["ApiStage"]["Properties"]["AccessLogSetting"]["Format"]
    )
    queries = re.findall(
        r"(?:^ {4}(?:fields|filter|stats) .*\n(?: {4}\|.*\n)*)", RUNBOOK, re.MULTILINE
    )
    assert len(queries) >= 6
    words = {
        "and",
        "as",
        "asc",
        "by",
        "desc",
        "fields",
        "filter",
        "in",
        "limit",
        "sort",
        "stats",
        "not",
    }
    for query in queries:
        plain = re.sub(r'"[^"]*"', "", query)
        named = (
            set(re.findall(r"(?<!@)\b[a-zA-Z_]\w*\b(?!\()", plain))
            - words
            - set(re.findall(r"\bas (\w+)", plain))
        )
        assert set() < named <= (set(access_log) if "gatewayError" in named else LOG_FIELDS), query
    for message in ("The operation failed.", "The store did not answer."):
        assert all(message in text for text in (section("Logs"), OPERATION + TELEMETRY))


def parse(command: Any, arguments: list[str]) -> None:  # without running it
    while hasattr(command, "commands"):
        command, arguments = command.commands[arguments[0]], arguments[1:]
    command.make_context("tools", arguments)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_command_exists(document: Path) -> None:
    makefile = (ROOT / "Makefile").read_text()
    for line in code(document.read_text()):
        for call in re.findall(
            r"(?:^|[;&(]\s*)(?:[A-Z_]+=\S+ )*make ((?:\"[^\"]*\"|[^;&|#])*)", line
        ):
            words = shlex.split(call)
            targets = [word for word in words if re.fullmatch(r"[a-z][a-z-]*", word)][:1]
            assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets), (
                words
            )
            assert all(
                re.search(rf"\b{name}\b", makefile) for name in re.findall(r"\b([A-Z_]+)=", call)
            ), words
        for module, rest in re.findall(r"python -m (\w+(?:\.\w+)*)([^;&|]*)", line):
            if module in COMMANDS:
                parse(
                    COMMANDS[module], [re.sub("^NUMBER$", "1", word) for word in shlex.split(rest)]
                )
            elif module.split(".")[0] in {"benchmarks", "tests", "tools"}:
                assert importlib.util.find_spec(module) is not None, module
        for arguments in re.findall(r'make keys ARGS="([^"]+)"', line):
            parse(COMMANDS["tools"], ["keys", *shlex.split(arguments)])


def test_every_aws_command_is_one_of_the_sdk() -> None:
    commands = re.findall(
        r"\baws ([a-z0-9]+) ([a-z-]+)((?:(?!\baws ).)*)", "\n".join(code(RUNBOOK))
    )
    for service, operation, rest in commands:
        client: Any = botocore.session.get_session().create_client(service, region_name="us-east-1")
        if operation == "wait":
            assert rest.split()[0].replace("-", "_") in client.waiter_names
        else:
            method = client.meta.method_to_api_mapping[operation.replace("-", "_")]
            shape = client.meta.service_model.operation_model(method).input_shape
            known = {xform_name(member, "-") for member in shape.members} | {"output", "query"}
            options = {option.removeprefix("no-") for option in re.findall(r"--([a-z-]+)", rest)}
            assert options <= known, (operation, options - known)


def test_every_block_is_a_shell_script_and_says_whether_it_was_run() -> None:
    for block in re.findall(r"^```sh\n(.*?)^```", RUNBOOK, re.DOTALL | re.MULTILINE)[1:]:
        subprocess.run(["bash", "-n"], input=block, text=True, check=True)
        for line in re.sub(r"\\\n", " ", block).splitlines():
            assert not re.match(r"\s*(make|aws) ", line) or re.search(
                r"\((rehearsed|AWS)\b", line
            ), line


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_relative_link_leads_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", document.read_text()):
        name, _, anchor = target.partition("#")
        path = document.parent / name if name else document
        assert re.match(r"[a-z]+:", target) or path.exists(), target
        if anchor and path.exists():
            headings = re.findall(r"^#{1,6} (.+)$", path.read_text().lower(), re.MULTILINE)
            assert anchor in {
                re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in headings
            }, target


def test_readme_lists_every_operation() -> None:
    for operation in openapi.operations():
        assert f"`{operation.method} /v1{operation.path}" in (ROOT / "README.md").read_text(), (
            operation.id
        )


def test_editors_and_hooks_are_told_what_the_project_has() -> None:
    container = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())

    assert f"/python:{(ROOT / '.python-version').read_text().strip()}-" in container["image"]
    assert [hook["entry"] for repo in hooks["repos"] for hook in repo["hooks"]] == ["make check"]
