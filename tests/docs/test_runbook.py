"""What the documents tell people to type, look at and follow exists: commands, options, names, log fields, links."""

import ast
import importlib.util
import io
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
from botocore import xform_name

from tests.template.conftest import Template, of_type, parameters
from tools import ROOT
from tools.cli import app
from tools.deployment.__main__ import app as deployment
from tools.packaging.translate import translate

RUNBOOK = ROOT / "docs/runbook.md"
DOCUMENTS = sorted({*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")})
COMMANDS = {"tools": app, "tools.deployment": deployment}

# Names of AWS and GitHub, not of this project, that look like logical ids.
AWS_WORDS = {"AccessDeniedException", "ConcurrentExecutions", "ResourceNotFoundException", "VpcConfig"}


@pytest.fixture(scope="module")
def stack() -> Template:
    return translate(parameters("production"))


def code(text: str) -> Iterator[str]:
    """Every piece of code in a Markdown text: lines of blocks (continued ones as one), and code inside of sentences."""
    block = r"^ *```\w*\n(.*?)^ *```"
    for found in re.findall(block, text, re.DOTALL | re.MULTILINE):
        lines = [re.split(r"\s#\s", line)[0] for line in found.splitlines()]
        yield from re.sub(r"\\\n", " ", "\n".join(lines)).splitlines()
    rest = re.sub(block, "", text, flags=re.DOTALL | re.MULTILINE)
    yield from (re.split(r"\s#\s", line)[0] for line in re.findall(r"^ {4}(\S.*)$", rest, re.MULTILINE))
    yield from re.findall(r"(?<!`)`([^`\n]+)`(?!`)", text)


def section(heading: str) -> str:
    return re.split(r"^## ", RUNBOOK.read_text().split(f"\n## {heading}\n")[1], flags=re.MULTILINE)[0]


def test_every_alarm_has_its_section_and_points_to_it(stack: Template) -> None:
    alarms = of_type(stack, "AWS::CloudWatch::Alarm")
    headings = re.findall(r"^### (.*)$", section("Alarms"), re.MULTILINE)
    assert sorted(name for heading in headings for name in heading.split(", ")) == sorted(alarms)
    assert all("docs/runbook.md" in properties["AlarmDescription"] for properties in alarms.values())


def test_every_widget_of_the_dashboard_is_explained(stack: Template) -> None:
    body = stack["Resources"]["Dashboard"]["Properties"]["DashboardBody"]["Fn::Sub"]
    titles = re.findall(r'"title": "([^"]+)"', body)
    assert re.findall(r"^\| ([^|]+?) \|", section("Dashboard"), re.MULTILINE) == ["Widget", *titles]


def test_every_name_is_one_of_the_templates(stack: Template, log_fields: set[str]) -> None:
    names = {name for part in ("Parameters", "Resources", "Outputs") for name in stack[part]}
    bootstrap = (ROOT / "bootstrap.yaml").read_text()
    words = {word for word in code(RUNBOOK.read_text()) if re.fullmatch(r"(?:[A-Z][a-z]+){2,}", word)}
    assert len(words) > 20
    unknown = words - AWS_WORDS - log_fields - names
    assert {word for word in unknown if f"\n  {word}:" not in bootstrap} == set()


def test_every_value_of_a_parameter_is_allowed(stack: Template) -> None:
    pairs = [word.split("=") for word in code(RUNBOOK.read_text()) if re.fullmatch(r"[A-Z][a-z]\w*=\w+", word)]
    assert pairs
    for name, value in pairs:
        assert value in stack["Parameters"][name]["AllowedValues"]


def make_calls(text: str) -> Iterator[list[str]]:
    """The words that follow each `make`."""
    for line in code(text):
        for call in re.findall(r"(?:^|[;&(]\s*)(?:[A-Z_]+=\S+ )*make ((?:\"[^\"]*\"|[^;&|#])*)", line):
            yield shlex.split(call)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_make_target_and_its_variables_exist(document: Path) -> None:
    makefile = (ROOT / "Makefile").read_text()
    for words in make_calls(document.read_text()):
        variables = [word.split("=")[0] for word in words if re.match(r"[A-Z_]+=", word)]
        targets = [word for word in words if re.fullmatch(r"[a-z][a-z-]*", word)][:1]
        assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets), words
        assert all(re.search(rf"\b{name}\b", makefile) for name in variables), words


def parse(command: Any, arguments: list[str]) -> None:
    """Have a command of the tools take its arguments, without running it."""
    if hasattr(command, "commands"):
        parse(command.commands[arguments[0]], arguments[1:])
    else:
        command.make_context("tools", arguments)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_command_of_the_tools_exists(document: Path) -> None:
    for line in code(document.read_text()):
        for module, rest in re.findall(r"python -m (\w+(?:\.\w+)*)([^;&|]*)", line):
            if module in COMMANDS:
                words = [re.sub("^NUMBER$", "1", word) for word in shlex.split(rest)]
                parse(typer.main.get_command(COMMANDS[module]), words)
            elif module.split(".")[0] in {"benchmarks", "tests", "tools"}:
                assert importlib.util.find_spec(module) is not None, module
        for arguments in re.findall(r'make keys ARGS="([^"]+)"', line):
            parse(typer.main.get_command(app), ["keys", *shlex.split(arguments)])


def test_every_aws_command_is_one_of_the_sdk() -> None:
    session = botocore.session.get_session()
    commands = re.findall(r"\baws ([a-z0-9]+) ([a-z-]+)((?:(?!\baws ).)*)", "\n".join(code(RUNBOOK.read_text())))
    assert len(commands) > 8
    for service, operation, rest in commands:
        client = session.create_client(service, region_name="us-east-1")
        if operation == "wait":
            assert rest.split()[0].replace("-", "_") in client.waiter_names
            continue
        method = client.meta.method_to_api_mapping[operation.replace("-", "_")]
        members = client.meta.service_model.operation_model(method).input_shape
        known = {xform_name(member, "-") for member in (members.members if members else ())} | {"output", "query"}
        options = {option.removeprefix("no-") for option in re.findall(r"--([a-z-]+)", rest)}
        assert options <= known, (operation, options - known)


def test_every_block_is_a_shell_script_and_says_whether_it_was_run() -> None:
    blocks = re.findall(r"^```sh\n(.*?)^```", RUNBOOK.read_text(), re.DOTALL | re.MULTILINE)
    for block in blocks[1:]:
        assert subprocess.run(["bash", "-n"], input=block, text=True, check=False).returncode == 0
        for line in re.sub(r"\\\n", " ", block).splitlines():
            if re.match(r"\s*(make|aws) ", line):
                assert re.search(r"\((rehearsed|AWS)\b", line), line


@pytest.fixture(scope="module")
def log_fields() -> set[str]:
    """The fields of our log lines: what Powertools writes with an exception, and what a request's line adds."""
    stream = io.StringIO()
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("_X_AMZN_TRACE_ID", "Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1")
        # Late: clients of the SDK that are made after this import name Powertools as their sender.
        from aws_lambda_powertools import Logger

        Logger(service=__name__, stream=stream).error("An error.", exc_info=LookupError())
    source: Any = ast.parse((ROOT / "layers/common/animal_store/telemetry.py").read_text())
    write = next(node for node in source.body if isinstance(node, ast.FunctionDef) and node.name == "write")
    fields = {node.value for node in ast.walk(write) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return fields | set(json.loads(stream.getvalue()))


def test_queries_ask_for_fields_that_there_are(stack: Template, log_fields: set[str]) -> None:
    access_log = json.loads(stack["Resources"]["ApiStage"]["Properties"]["AccessLogSetting"]["Format"])
    queries = re.findall(r"(?:^ {4}\S.*\n)+", section("Logs"), re.MULTILINE)
    assert len(queries) >= 5
    words = {"and", "as", "asc", "by", "desc", "fields", "filter", "in", "limit", "sort", "stats", "not"}
    for query in queries:
        plain = re.sub(r'"[^"]*"', "", query)
        named = set(re.findall(r"(?<!@)\b[a-zA-Z_]\w*\b(?!\()", plain)) - words - set(re.findall(r"\bas (\w+)", plain))
        assert named
        assert named <= (set(access_log) if "gatewayError" in named else log_fields), query


@pytest.mark.parametrize("message", ["The operation failed.", "The store did not answer."])
def test_messages_are_those_of_the_layer(message: str) -> None:
    layer = ROOT / "layers/common/animal_store"
    assert any(f'"{message}"' in (layer / module).read_text() for module in ("operation.py", "telemetry.py"))
    assert message in section("Logs")


def anchors(path: Path) -> set[str]:
    """The anchors that GitHub gives a document's headings."""
    headings = re.findall(r"^#{1,6} (.+)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_relative_link_leads_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", document.read_text()):
        name, _, anchor = target.partition("#")
        path = document.parent / name if name else document
        assert re.match(r"[a-z]+:", target) or (path.exists() and (not anchor or anchor in anchors(path))), target
