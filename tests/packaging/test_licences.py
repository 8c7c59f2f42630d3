"""The layer brings the licence texts of its libraries."""

import shutil
from importlib.metadata import distribution
from pathlib import Path

import pytest

from tools.packaging import layer, sbom


def test_layer_has_a_text_of_each_library(tmp_path: Path) -> None:
    python = tmp_path / "python"
    components = sbom.locked()["components"]
    for component in components:
        records = distribution(component["name"])._path  # type: ignore[attr-defined]
        shutil.copytree(records, python / records.name)

    layer.keep_licences(python, tmp_path / "licences")

    folders = list((tmp_path / "licences").iterdir())
    assert len(folders) == len(components)
    for folder in folders:
        assert any("copyright" in text.read_text("utf-8").lower() for text in folder.iterdir()), folder.name


def test_library_without_a_text_is_told(tmp_path: Path) -> None:
    (tmp_path / "other-1.0.dist-info").mkdir()

    with pytest.raises(SystemExit, match=r"other-1\.0 brings no licence text"):
        layer.keep_licences(tmp_path, tmp_path / "licences")
