"""What a change has to pass: locks that are used, steps whose failure counts, stages' values."""

import json
import os
import subprocess
import tomllib
from pathlib import Path

import pytest
import typer

from tests.support.stack import load, parameters
from tools import ROOT
from tools.planted_faults import faults


@pytest.mark.parametrize(
    ("target", "line"),
    [
        (
            ".tools/uv/bin/uv",
            (
                ".tools/uv/bin/python -m pip install --quiet --disable-pip-version-check "
                "--require-hashes -r locks/uv.txt || \\"
            ),
        ),
        (
            ".tools/sam/.installed",
            (
                ".tools/uv/bin/uv pip install --quiet --require-hashes "
                "--python .tools/sam/bin/python -r locks/sam.txt || \\"
            ),
        ),
        (
            ".tools/iam/.installed",
            (
                "npm ci --prefix .tools/iam --ignore-scripts --no-audit --no-fund "
                "--loglevel=error >/dev/null || \\"
            ),
        ),
        (
            "test",
            (
                'SECONDS=0; .venv/bin/python -m pytest -n auto -m "not slow" --cov; '
                'echo "make test: $SECONDS s"'
            ),
        ),
        (
            "test-slow",
            (
                "SECONDS=0; .venv/bin/python -m pytest -n 2 --dist loadfile -m slow; "
                '.venv/bin/animal-store faults --sample 12; echo "make test-slow: $SECONDS s"'
            ),
        ),
        ("check-python", ".venv/bin/ruff format --check ."),
        ("check-python", ".venv/bin/ruff check ."),
        ("check-python", ".venv/bin/mypy"),
        ("audit", ".venv/bin/animal-store audit"),
        ("faults", ".venv/bin/animal-store faults"),
    ],
)
def test_make_runs_this(target: str, line: str) -> None:
    printed = subprocess.check_output(["make", "-nB", target], cwd=ROOT, text=True)
    assert line in [each.strip() for each in printed.splitlines()]


def test_the_development_environment_is_what_the_lock_says() -> None:
    command = ["make", "-nB", ".venv/.installed", "SYNC=--no-install-package=x"]
    printed = subprocess.check_output(command, cwd=ROOT, text=True)
    sync = ".tools/uv/bin/uv sync --quiet --locked --no-install-package=x --python"
    assert sync in printed


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
    [
        ("check", 1),
        ("test", 1),
        ("test-slow", 1),
        ("rehearse", 1),
        ("sam-contract", 1),
        ("none", 0),
    ],
)
def test_ci_fails_if_one_step_does(failing: str, status: int, tmp_path: Path) -> None:
    stubs = {"make": f'[ "$1" != {failing} ]', "id": "echo 1000", "docker": "true"}
    for name, command in stubs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{command}\n")
        (tmp_path / name).chmod(0o755)
    variables = {"PATH": f"{tmp_path}:/usr/bin:/bin", "LAMBDA_IMAGE_READY": "none"}
    done = subprocess.run([ROOT / ".ci/run"], env=variables, check=False)
    assert done.returncode == status


FOUND = {
    "file": "Makefile",
    "text": "help: ## list the commands",
    "replacement": "help: nothing",
    "suite": "make help",
}
SURVIVING = FOUND | {"replacement": "help: ## list them"}
NOT_THERE = FOUND | {"text": "this text is not there"}
ALWAYS_FAILING = FOUND | {"suite": "make nothing"}


@pytest.mark.parametrize(
    ("planted", "status"),
    [
        ([FOUND], 0),
        ([FOUND, SURVIVING], 1),
        ([NOT_THERE], 1),
        ([ALWAYS_FAILING], 1),
        ([], 1),
    ],
)
def test_a_fault_that_survives_fails_the_run(
    planted: list[dict[str, str]], status: int, tmp_path: Path
) -> None:
    lines = ["fault = ["]
    for fault in planted:
        pairs = [f"{key} = {json.dumps(value)}" for key, value in fault.items()]
        lines.append("{name = 'a fault', " + ", ".join(pairs) + "},")
    source = tmp_path / "faults.toml"
    source.write_text("\n".join([*lines, "]"]))
    with pytest.raises(typer.Exit) as exited:
        faults(source=source)
    assert exited.value.exit_code == status


def test_the_stages_have_these_values() -> None:
    assert parameters("staging") == {
        "Stage": "staging",
        "Canary": "true",
        "DeploymentType": "AllAtOnce",
        "ReservedConcurrency": "0",
        "ThrottlingRate": "50",
        "ThrottlingBurst": "100",
        "Waf": "true",
        "LogRetentionDays": "14",
    }
    assert parameters("production") == {
        "Stage": "production",
        "Canary": "true",
        "DeploymentType": "Canary10Percent5Minutes",
        "ReservedConcurrency": "200",
        "ThrottlingRate": "500",
        "ThrottlingBurst": "1000",
        "Waf": "true",
        "LogRetentionDays": "90",
    }


def test_five_addresses_cannot_use_up_what_production_takes() -> None:
    template = load("template.yaml")["Parameters"]
    a_minute = 60 * int(parameters("production")["ThrottlingRate"])
    assert 5 * template["RequestsPerAddress"]["Default"] < a_minute


@pytest.mark.parametrize("stage", ["staging", "production"])
def test_sam_deploys_a_stage_with_these_settings(stage: str) -> None:
    config = tomllib.loads((ROOT / "samconfig.toml").read_text())
    settings = config[stage]["deploy"]["parameters"]
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
