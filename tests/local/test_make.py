"""The Makefile: which settings of the caller reach its recipes, and when it installs."""

import os
from pathlib import Path

import pytest

from tests.support.processes import run
from tools import ROOT

BLOCKED = {
    "GIT_DIR",
    "PIP_TARGET",
    "POSIXLY_CORRECT",
    "PYTEST_ADDOPTS",
    "PYTHONPATH",
    "PYTHONSAFEPATH",
    "SAM_TEMPLATE_FILE",
    "UV_PROJECT",
}
PASSED_ON = {
    "AWS_PROFILE",
    "CI",
    "GIT_AUTHOR_NAME",
    "HOME",
    "HTTPS_PROXY",
    "NODE_EXTRA_CA_CERTS",
    "PATH",
    "PIP_INDEX_URL",
    "PYTEST_XDIST_AUTO_NUM_WORKERS",
    "SSL_CERT_FILE",
    "UV_INDEX_INTERNAL_PASSWORD",
    "UV_INDEX_URL",
    "npm_config_registry",
}

COMMANDS = """\
.tools/sam/bin/python -m tools.packaging.translate >.tools/translated.yaml
.venv/bin/cfn-lint template.yaml ops/bootstrap.yaml
.venv/bin/cfn-lint --ignore-checks W2001 W3011 E4002 -- .tools/translated.yaml
.venv/bin/ruff format --check .
.venv/bin/ruff check .
.venv/bin/mypy
.tools/zizmor/bin/zizmor --offline --no-progress --quiet --strict-collection .github
.venv/bin/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
.venv/bin/check-jsonschema --quiet --builtin-schema vendor.dependabot .github/dependabot.yml
tools/lint-openapi
.venv/bin/python -m pytest -n auto --dist loadfile --max-worker-restart 0 -m "not slow" \\
  -o faulthandler_timeout=120 -o faulthandler_exit_on_timeout=true \\
  --cov --cov-branch --cov-fail-under=100
.venv/bin/python -m pytest -n 2 --dist loadfile -m slow
"""
"""The commands of CI's steps `check`, `test` and `test-slow`, except installers."""


def run_recipe(folder: Path, command: str, **variables: str) -> str:
    """Run a command as a recipe of the Makefile, and return its output."""
    (folder / "more.mk").write_text(f"more:\n\t@{command}\n")
    make = ("make", "-s", "-f", "Makefile", "-f", folder / "more.mk", "more")
    return run(*make, cwd=ROOT, timeout_s=60, **variables)


def test_recipe_gets_only_the_allowed_variables(tmp_path: Path) -> None:
    variables = {name: os.environ.get(name, "1") for name in BLOCKED | PASSED_ON}

    output = run_recipe(tmp_path, "env", **variables)

    names = {line.partition("=")[0] for line in output.splitlines()}
    assert names & variables.keys() == PASSED_ON


def test_recipe_ignores_bash_settings_of_the_caller(tmp_path: Path) -> None:
    (tmp_path / "more.sh").write_text("echo of a file\n")
    settings = {
        "BASH_ENV": f"{tmp_path}/more.sh",
        "BASH_FUNC_env%%": "() { echo of a function; }",
        "SHELLOPTS": "xtrace",
    }

    assert run_recipe(tmp_path, "env true", **settings) == ""


@pytest.mark.parametrize(
    "command", ["false; true", "false | true", "echo $$NAME; true"]
)
def test_recipe_fails_if_any_of_its_commands_fails(
    tmp_path: Path, command: str
) -> None:
    with pytest.raises(AssertionError, match="Error 1"):
        run_recipe(tmp_path, command)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with an installed environment, whose Python is a script."""
    for name in ("Makefile", "pyproject.toml", "tools", "uv.lock"):
        (tmp_path / name).symlink_to(ROOT / name)
    tools = ("clients-npm", "dynamodb-local", "iam", "sam", "spectral", "zizmor")
    installed = [f".tools/{tool}/.installed" for tool in tools]
    programs = [".tools/uv/bin/uv", ".venv/bin/python", ".venv/.installed"]
    for name in programs + installed:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch(0o755)
    (tmp_path / ".venv/bin/python").write_text(f"#!/bin/sh\necho {tmp_path}\n")
    return tmp_path


def test_installed_environment_is_not_installed_again(checkout: Path) -> None:
    run("make", "-q", "install", cwd=checkout)  # -q fails if make would do anything


def test_make_targets_of_ci_run_the_listed_commands(checkout: Path) -> None:
    targets = ("check", "test", "test-slow", "COVERAGE=1")

    output = run("make", "-ns", *targets, cwd=checkout)

    lines = {line for line in output.splitlines() if not line.startswith(("#", "make"))}
    assert lines == {*COMMANDS.splitlines()}


@pytest.mark.parametrize(
    ("installer", "options"),
    [
        ("pip download", ["--require-hashes", "--only-binary :all:"]),
        ("uv sync", ["--frozen"]),
        ("npm ci", ["--ignore-scripts"]),
    ],
)
def test_installers_accept_only_what_is_locked(
    checkout: Path, installer: str, options: list[str]
) -> None:
    tools = (".venv/.installed", ".tools/sam/.installed", ".tools/iam/.installed")

    output = run("make", "-nsB", *tools, cwd=checkout)

    commands = output.replace("\\\n", "").splitlines()
    calls = [command for command in commands if installer in command]
    assert calls
    assert all(option in call for call in calls for option in options)


@pytest.mark.parametrize("interpreter", ["sh", "python-that-was-removed"])
def test_copied_or_broken_virtual_environment_is_rebuilt(
    checkout: Path, interpreter: str
) -> None:
    program = checkout / ".venv/bin/python"
    program.write_text(f"#!/bin/{interpreter}\necho /another/folder\n")

    assert "rm -rf .tools/pip .venv .tools" in run(
        "make", "-n", "install", cwd=checkout
    )
