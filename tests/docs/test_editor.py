"""What editors and hooks are told agrees with the project."""

import json

import yaml

from tools import ROOT


def test_every_event_can_be_debugged() -> None:
    launch = json.loads((ROOT / ".vscode/launch.json").read_text())

    (events,) = launch["inputs"]

    assert events["options"] == sorted(path.stem for path in (ROOT / "events").glob("*.json"))


def test_the_dev_container_has_the_python_of_the_functions() -> None:
    container = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())

    assert f"/python:{(ROOT / '.python-version').read_text().strip()}-" in container["image"]


def test_the_hook_runs_what_ci_runs() -> None:
    configuration = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())

    assert [hook["entry"] for repo in configuration["repos"] for hook in repo["hooks"]] == ["make check"]
