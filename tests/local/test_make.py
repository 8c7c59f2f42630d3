"""The Makefile's recipes, whatever the shell that calls make has set."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.processes import environment, run
from tools import ROOT

MAKEFILE = ROOT / "Makefile"
TARGETS = re.findall("(?m)^([a-z-]+):", MAKEFILE.read_text())


def variables_of_recipes(folder: Path, **variables: str) -> set[str]:
    """Return the names of the variables that a recipe's commands get."""
    (folder / "more.mk").write_text("print:\n\t@env\n")
    command = ("make", "-s", "-f", MAKEFILE, "-f", folder / "more.mk", "print")
    output = run(*command, cwd=ROOT, timeout_s=60, **variables)
    return set(re.findall(r"(?m)^(\w+)=", output))


@pytest.mark.parametrize(
    "name",
    [
        "GIT_DIR",
        "PIP_TARGET",
        "POSIXLY_CORRECT",
        "PYTEST_ADDOPTS",
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONOPTIMIZE",
        "PYTHONPATH",
        "PYTHONSAFEPATH",
        "SAM_TEMPLATE_FILE",
        "UV_NO_EDITABLE",
        "UV_PROJECT",
    ],
)
def test_settings_of_programs_stay_out(tmp_path: Path, name: str) -> None:
    assert name not in variables_of_recipes(tmp_path, **{name: "1"})


def test_network_and_identity_arrive(tmp_path: Path) -> None:
    names = {
        "AWS_PROFILE",
        "CI",
        "GIT_AUTHOR_NAME",
        "HOME",
        "HTTPS_PROXY",
        "LANG",
        "NODE_EXTRA_CA_CERTS",
        "PATH",
        "PIP_CERT",
        "PIP_INDEX_URL",
        "SSL_CERT_FILE",
        "TMPDIR",
        "UV_INDEX_INTERNAL_PASSWORD",
        "UV_INDEX_URL",
        "npm_config_registry",
    }
    variables = {name: os.environ.get(name, "1") for name in names}

    assert names <= variables_of_recipes(tmp_path, **variables)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("BASH_ENV", "more.sh"),
        ("BASH_FUNC_env%%", "() { echo of a function; }"),
        ("SHELLOPTS", "xtrace"),
    ],
)
def test_settings_of_the_shell_stay_out(tmp_path: Path, name: str, value: str) -> None:
    (tmp_path / "more.sh").write_text("echo of a file\n")
    path = str(MAKEFILE).replace(" ", r"\ ")
    (tmp_path / "Makefile").write_text(f"include {path}\nsay:\n\t@env true\n")

    assert run("make", "-s", "say", cwd=tmp_path, timeout_s=60, **{name: value}) == ""


def checkout(folder: Path) -> Path:
    """Make a folder that has the Makefile and what it lists as prerequisites."""
    for name in ("layers", "tools/locks", "tools/packaging"):
        shutil.copytree(ROOT / name, folder / name)
    for name in (
        "Makefile",
        "pyproject.toml",
        "samconfig.toml",
        "uv.lock",
        "tools/find-python",
    ):
        shutil.copy(ROOT / name, folder / name)
    for name in ("tools/lint-openapi", "tools/lint-workflows"):
        (folder / name).write_text("#!/bin/sh\ntouch done\n")
        (folder / name).chmod(0o755)
    return folder


@pytest.mark.parametrize("option", ["-n", "-q"])
def test_dry_run_does_nothing(tmp_path: Path, option: str) -> None:
    folder = checkout(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    values = ("STAGE=staging", "COMMIT=c", "COPY=c", "REPOSITORY=o/r", "ALARM_EMAIL=a")

    for target in TARGETS:
        command = ["make", option, target, *values, "NAME=n", "DEST=d", "ARTIFACT=a"]
        status = subprocess.call(
            command, cwd=folder, stdout=subprocess.DEVNULL, timeout=30
        )
        assert status < 2, target

    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A checkout whose environments are installed; uv and Python are scripts."""
    folder = checkout(tmp_path)
    for name, text in (
        (".tools/uv/bin/uv", "mkdir -p .venv"),
        (".venv/bin/python", f"echo {folder}"),
    ):
        program = folder / name
        program.parent.mkdir(parents=True)
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
    (folder / ".venv/.installed").touch()
    return folder


def test_installed_environment_is_used_as_it_is(installed: Path) -> None:
    run("make", "-q", "install", cwd=installed)  # fails if there is something to do


@pytest.mark.parametrize("python", ["echo /of/another/folder", "exit 1", None])
def test_environment_of_another_folder_is_installed_again(
    installed: Path, python: str | None
) -> None:
    program = installed / ".venv/bin/python"
    if python:
        program.write_text(f"#!/bin/sh\n{python}\n")
    else:
        program.unlink()  # the interpreter was removed

    steps = run("make", "-n", "install", cwd=installed)

    assert "rm -rf .tools/uv .venv" in steps


def test_installation_speaks_on_stderr_alone(installed: Path) -> None:
    (installed / ".venv/.installed").unlink()

    done = subprocess.run(
        ["make", "-s", "install"],
        cwd=installed,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == ""
    assert done.stderr == "installing the development environment into .venv\n"
