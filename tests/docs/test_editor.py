"""What editors and hooks are told agrees with the project."""

import json

import yaml

from tools import ROOT


def test_editors_and_hooks_are_told_what_the_project_has() -> None:
    launch = json.loads((ROOT / ".vscode/launch.json").read_text())
    container = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())

    assert launch["inputs"][0]["options"] == sorted(path.stem for path in (ROOT / "events").glob("*.json"))
    assert f"/python:{(ROOT / '.python-version').read_text().strip()}-" in container["image"]
    assert [hook["entry"] for repo in hooks["repos"] for hook in repo["hooks"]] == ["make check"]
