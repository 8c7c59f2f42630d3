"""Files have the settings that settings.yaml lists."""

from pathlib import Path
from typing import Any

import jmespath  # type: ignore[import-untyped]
import pytest
import yaml

from tools import ROOT


def read(file: Path) -> Any:
    """Read YAML whose scalars stay texts: `on` is no boolean."""
    return yaml.load(file.read_text("utf-8"), yaml.BaseLoader)  # noqa: S506


SETTINGS = read(Path(__file__).with_name("settings.yaml"))
OF_EACH_WORKFLOW = SETTINGS.pop("each workflow")
WORKFLOWS = [str(file.relative_to(ROOT)) for file in ROOT.glob(".github/workflows/*")]


@pytest.mark.parametrize("file", sorted(SETTINGS.keys() | {*WORKFLOWS}))
def test_file_has_the_settings_listed_in_settings_yaml(file: str) -> None:
    expected = SETTINGS[file]
    if file in WORKFLOWS:
        expected = expected | OF_EACH_WORKFLOW

    document = read(ROOT / file)

    assert {each: jmespath.search(each, document) for each in expected} == expected
