"""What a change has to pass: locks that are used, steps whose failure counts, stages' values."""

import os
import subprocess
import tomllib
from pathlib import Path

import pytest
import typer

from tests.support.stack import load, parameters
from tools import ROOT
from tools.planted_faults import faults

SYNC = 'uv sync --quiet --locked --no-install-package=x --python "$python"'


@pytest.mark.parametrize(
    ("target", "command"),
    [
        (".tools/uv/bin/uv", "--require-hashes -r locks/uv.txt || \\"),
        (".venv/.installed", f"{SYNC} 2> >(tee .tools/sync.log >&2) || {{ \\"),
        (".tools/sam/.installed", "--require-hashes --python .tools/sam/bin/python"),
        (".tools/iam/.installed", "npm ci --prefix .tools/iam --ignore-scripts"),
        ("test", '-m pytest -n auto -m "not slow" --cov; echo'),
        ("test-slow", "-m pytest -n 2 --dist loadfile -m slow; .venv/bin/animal-store"),
        ("check-python", ".venv/bin/ruff format --check .\n"),
        ("check-python", ".venv/bin/ruff check .\n"),
        ("check-python", ".venv/bin/mypy\n"),
        ("audit", ".venv/bin/animal-store audit\n"),
        ("deploy", 'deploy "$STAGE" --artifact "$ARTIFACT" --x\n'),
        ("rollback", 'rollback "$STAGE" "$COMMIT" --x\n'),
    ],
)
def test_make_runs_this(target: str, command: str) -> None:
    given = "STAGE=staging ARTIFACT=x COMMIT=x ARGS=--x SYNC=--no-install-package=x"
    make = ["make", "-nB", target, *given.split()]
    assert command in subprocess.check_output(make, cwd=ROOT, text=True)


def test_no_interpreter_is_downloaded() -> None:
    variables = subprocess.check_output(
        ["make", "--eval=print: ; @env", "print"],
        cwd=ROOT,
        env=os.environ | {"UV_PYTHON_DOWNLOADS": "automatic"},
        text=True,
    )
    assert "UV_PYTHON_DOWNLOADS=never" in variables.splitlines()


@pytest.mark.parametrize("command", ["false; true", "false | true", "echo $$unset"])
def test_a_recipe_ends_with_the_first_command_that_fails(command: str) -> None:
    make = ["make", f"--eval=fail: ; @{command}", "fail"]
    assert subprocess.run(make, cwd=ROOT, check=False).returncode


def test_every_branch_of_what_ships_has_to_be_covered() -> None:
    coverage = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["coverage"]
    assert coverage["run"]["branch"] is True
    assert coverage["run"]["source"] == ["layers/common/animal_store", "functions"]
    assert coverage["report"]["fail_under"] == 100


@pytest.mark.parametrize(
    ("failing", "status"),
    [("check", 1), ("test", 1), ("test-slow", 1), ("rehearse", 1), ("none", 0)],
)
def test_ci_fails_if_one_step_does(failing: str, status: int, tmp_path: Path) -> None:
    stubs = {"make": f'[ "$1" != {failing} ]', "id": "echo 1000", "docker": "true"}
    for name, command in stubs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{command}\n")
        (tmp_path / name).chmod(0o755)
    variables = {"PATH": f"{tmp_path}:/usr/bin:/bin", "LAMBDA_IMAGE_READY": "none"}
    done = subprocess.run([ROOT / ".ci/run"], env=variables, check=False)
    assert done.returncode == status


FOUND = """
[[fault]]
name = "a fault"
file = "Makefile"
text = "help: ## list the commands"
replacement = "help: nothing"
suite = "make help"
"""
SURVIVING = FOUND.replace("help: nothing", "help: ## list them")


@pytest.mark.parametrize(
    ("planted", "status", "said"),
    [
        (FOUND, 0, "1 of 1 were found.\n"),
        (FOUND + SURVIVING, 1, "a fault\n1 of 2 were found.\n"),
        (FOUND.replace("make help", "make nothing"), 1, " fails without a fault.\n"),
        ("fault = []", 1, "0 of 0 were found.\n"),
    ],
)
def test_a_fault_that_survives_is_named_and_fails_the_run(
    planted: str,
    status: int,
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    source = tmp_path / "faults.toml"
    source.write_text(planted)
    with pytest.raises(typer.Exit) as exited:
        faults(source=source)
    assert exited.value.exit_code == status
    assert capsys.readouterr().out.endswith(said)


def test_production_has_a_firewall_and_keeps_its_log_for_long() -> None:
    values = parameters("production")
    assert values["LogRetentionDays"] == "90"
    assert values["Waf"] == "true"
    # Five addresses cannot use up what it takes in a minute.
    per_address = load("template.yaml")["Parameters"]["RequestsPerAddress"]["Default"]
    assert 5 * per_address < 60 * int(values["ThrottlingRate"])


@pytest.mark.parametrize("stage", ["staging", "production"])
def test_sam_deploys_a_stage_with_these_settings(stage: str) -> None:
    config = tomllib.loads((ROOT / "samconfig.toml").read_text())
    settings = config[stage]["deploy"]["parameters"]
    assert parameters(stage)["Stage"] == stage
    del settings["parameter_overrides"]
    assert settings == {
        "stack_name": f"animal-store-{stage}",
        "s3_prefix": f"animal-store-{stage}",
        "force_upload": True,
        "capabilities": "CAPABILITY_IAM",
        "confirm_changeset": False,
        "fail_on_empty_changeset": False,
        "tags": f"project=animal-store stage={stage}",
    }
