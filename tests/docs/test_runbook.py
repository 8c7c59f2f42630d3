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

from tests.template.conftest import Template, parameters
from tools import ROOT
from tools.cli import app
from tools.packaging.translate import translate

OPERATIONS = ROOT / "docs/runbook.md"
DOCUMENTS = sorted({*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")})

# Names of AWS, not of this project, that look like logical ids.
AWS_WORDS = {
    "AccessDeniedException",
    "ConcurrentExecutions",
    "ConditionalCheckFailedException",
    "GetItem",
    "PutItem",
    "ResourceNotFoundException",
    "UpdateItem",
    "VpcConfig",
}


def without_comments(line: str) -> str:
    return re.split(r"\s#\s", line)[0]


def code(text: str) -> Iterator[str]:
    """Every piece of code in a Markdown text: lines of blocks (continued ones as one), and code inside of sentences."""
    block = r"^```\w*\n(.*?)^```|^ +```\w*\n(.*?)^ +```"
    for match in re.finditer(block, text, re.DOTALL | re.MULTILINE):
        lines = [without_comments(line) for line in (match[1] or match[2]).splitlines()]
        yield from re.sub(r"\\\n", " ", "\n".join(lines)).splitlines()
    rest = re.sub(block, "", text, flags=re.DOTALL | re.MULTILINE)
    yield from (without_comments(line) for line in re.findall(r"^ {4}(\S.*)$", rest, re.MULTILINE))
    yield from inline_code(text)


def inline_code(text: str) -> list[str]:
    return re.findall(r"(?<!`)`([^`\n]+)`(?!`)", text)


def section(heading: str) -> str:
    return re.split(r"^## ", OPERATIONS.read_text().split(f"\n## {heading}\n")[1], flags=re.MULTILINE)[0]


def names_of(stack: Template) -> set[str]:
    return {name for part in ("Parameters", "Resources", "Outputs") for name in stack[part]}


# -- names -------------------------------------------------------------------------------------------------------------


def test_every_alarm_has_its_section_and_points_to_it(stack: Template) -> None:
    alarms = {
        name: resource["Properties"]
        for name, resource in stack["Resources"].items()
        if resource["Type"] == "AWS::CloudWatch::Alarm"
    }
    headings = re.findall(r"^### (.*)$", section("Alarms"), re.MULTILINE)
    assert sorted(name for heading in headings for name in heading.split(", ")) == sorted(alarms)
    for name, properties in alarms.items():
        assert "docs/runbook.md" in properties["AlarmDescription"], name


def test_every_widget_of_the_dashboard_is_explained(stack: Template) -> None:
    body = stack["Resources"]["Dashboard"]["Properties"]["DashboardBody"]["Fn::Sub"]
    titles = re.findall(r'"title": "([^"]+)"', body)
    rows = re.findall(r"^\| ([^|]+?) \|", section("Dashboard"), re.MULTILINE)
    assert rows == ["Widget", *titles]


def test_every_name_is_one_of_the_template(stack: Template, log_fields: set[str]) -> None:
    text = OPERATIONS.read_text()
    ours = {word for word in inline_code(text) if re.fullmatch(r"(?:[A-Z][a-z]+){2,}", word)} - AWS_WORDS - log_fields
    ours |= set(re.findall(r"\b[A-Z]\w+(?:Alarm|Function|Table|TableName|Topic)\b", text))
    assert len(ours) > 20
    assert ours <= names_of(stack)


def test_every_value_of_a_parameter_is_allowed(stack: Template) -> None:
    pairs = [
        token.strip('"').split("=", 1)
        for token in inline_code(OPERATIONS.read_text())
        if re.fullmatch(r'"?[A-Z][a-z]\w*=\w+"?', token)
    ]
    assert len(pairs) >= 4
    for name, value in pairs:
        assert value in stack["Parameters"][name]["AllowedValues"]


# -- commands ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_make_target_exists(document: Path) -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    pattern = r"(?:^|[;&(]\s*)(?:[A-Z_]+=\S+ )*make (?:[A-Z_]+=\S+ )*([a-z][a-z-]*)"
    named = {target for line in code(document.read_text()) for target in re.findall(pattern, line)}
    assert named <= targets


def parse(command: Any, arguments: list[str]) -> None:
    """Have a command of the tools take its arguments, without running it."""
    if hasattr(command, "commands"):
        assert arguments
        assert arguments[0] in command.commands
        parse(command.commands[arguments[0]], arguments[1:])
    else:
        command.make_context("tools", arguments)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_command_of_the_tools_exists(document: Path) -> None:
    for line in code(document.read_text()):
        for module, rest in re.findall(r"python -m (\w+(?:\.\w+)*)([^;&|]*)", line):
            if module == "tools":
                parse(typer.main.get_command(app), shlex.split(rest))
            elif module.split(".")[0] in {"benchmarks", "tests", "tools"}:
                assert importlib.util.find_spec(module) is not None, module
        for arguments in re.findall(r'make keys ARGS="([^"]+)"', line):
            parse(typer.main.get_command(app), ["keys", *shlex.split(arguments)])


def test_the_administration_of_keys_is_among_them() -> None:
    commands = re.findall(r'make keys ARGS="(\w+) ', section("Keys"))
    assert commands == ["issue", "list", "revoke"]


def aws_commands() -> list[list[str]]:
    pattern = r"(?:^|\$\()(aws [a-z].*?)\)?$"
    lines = code(OPERATIONS.read_text())
    return [shlex.split(command) for line in lines for command in re.findall(pattern, line.strip())]


def test_every_aws_command_is_one_of_the_sdk() -> None:
    session = botocore.session.get_session()
    commands = aws_commands()
    assert len(commands) > 15
    for _, service, operation, *rest in commands:
        client = session.create_client({"deploy": "codedeploy"}.get(service, service), region_name="us-east-1")
        if operation == "wait":
            assert rest[0].replace("-", "_") in client.waiter_names
            continue
        method = client.meta.method_to_api_mapping[operation.replace("-", "_")]
        members = client.meta.service_model.operation_model(method).input_shape
        known = {xform_name(member, "-") for member in (members.members if members else ())}
        options = {word[2:] for word in rest if word.startswith("--")} - {"output", "query"}
        assert options <= known, (operation, options - known)


@pytest.mark.parametrize(
    "block", re.findall(r"^ *```sh\n(.*?)^ *```", OPERATIONS.read_text(), re.DOTALL | re.MULTILINE)
)
def test_every_block_is_a_shell_script(block: str) -> None:
    assert subprocess.run(["bash", "-n"], input=block, text=True, check=False, stderr=subprocess.PIPE).stderr == ""


@pytest.mark.parametrize("table", ["AnimalsTable", "ApiKeysTable"])
def test_the_edit_for_a_restored_table_names_it_everywhere(tmp_path: Path, table: str) -> None:
    for name in ("template.yaml", "samconfig.toml"):
        (tmp_path / name).write_text((ROOT / name).read_text())
    block = next(block for block in section("Restore a table").split("```") if "git switch -c" in block)
    script = re.search(r"^ +arn=.*?samconfig.toml$", block, re.DOTALL | re.MULTILINE)
    assert script
    environment = {"PATH": "/usr/bin:/bin", "table": table, "new": "restored"}
    subprocess.run(["bash", "-eu", "-c", script[0]], cwd=tmp_path, env=environment, check=True)

    stack = translate(parameters("production"), tmp_path / "template.yaml")
    assert table in stack["Resources"]  # the old one stays
    variable = {"AnimalsTable": "ANIMALS_TABLE", "ApiKeysTable": "API_KEYS_TABLE"}[table]
    functions = [r for r in stack["Resources"].values() if r["Type"] == "AWS::Lambda::Function"]
    assert {function["Properties"]["Environment"]["Variables"][variable] for function in functions} == {"restored"}
    assert stack["Outputs"][f"{table}Name"]["Value"] == "restored"
    everything = json.dumps(stack)
    assert f'"{table}"' not in everything.replace(f'"{table}": {{', "")  # no Ref and no GetAtt
    assert f"${{{table}" not in everything
    arn = "arn:${AWS::Partition}:dynamodb:${AWS::Region}:${AWS::AccountId}:table/restored"
    policies = json.dumps([r for r in stack["Resources"].values() if r["Type"] == "AWS::IAM::Role"])
    assert policies.count(f'"{arn}"') == 3  # one of each function's role
    assert policies.count(f'"{arn}/index/by-status"') == (table == "AnimalsTable")
    samconfig = (tmp_path / "samconfig.toml").read_text()
    assert "Canary" not in samconfig
    assert "PublishedVersions" not in samconfig


# -- logs --------------------------------------------------------------------------------------------------------------


def test_the_log_groups_are_those_of_the_stack(stack: Template) -> None:
    groups = {
        resource["Properties"]["LogGroupName"]["Fn::Sub"].replace("${AWS::StackName}", "$stack")
        for resource in stack["Resources"].values()
        if resource["Type"] == "AWS::Logs::LogGroup"
    }
    assert {token for token in inline_code(section("Logs")) if token.startswith("/aws/")} == groups


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
    assert {"request_id", "Latency", "exception", "xray_trace_id"} <= log_fields
    queries = re.findall(r"(?:^ {4}\S.*\n)+", section("Logs"), re.MULTILINE)
    assert len(queries) >= 7
    words = {"and", "as", "asc", "by", "desc", "fields", "filter", "in", "limit", "sort", "stats", "not"}
    for query in queries:
        plain = re.sub(r'"[^"]*"', "", query)
        aliases = set(re.findall(r"\bas (\w+)", plain))
        named = set(re.findall(r"(?<!@)\b[a-zA-Z_]\w*\b(?!\()", plain)) - words - aliases
        assert named
        assert named <= (set(access_log) if "gatewayError" in named else log_fields), query


@pytest.mark.parametrize("message", ["The operation failed.", "The store did not answer."])
def test_messages_are_those_of_the_layer(message: str) -> None:
    layer = ROOT / "layers/common/animal_store"
    assert any(f'"{message}"' in (layer / module).read_text() for module in ("operation.py", "telemetry.py"))
    assert message in section("Logs")


# -- links -------------------------------------------------------------------------------------------------------------


def anchors(path: Path) -> set[str]:
    """The anchors that GitHub gives a document's headings."""
    headings = re.findall(r"^#{1,6} (.+)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_relative_link_leads_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", document.read_text()):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = document.parent / name if name else document
        assert path.exists(), target
        if anchor:
            assert anchor in anchors(path), target
