"""The README's example, typed into an empty folder."""

import os
import re
import runpy
import sys
from pathlib import Path
from unittest import mock

import pytest
from starlette.testclient import TestClient

README = Path(__file__).parents[1] / "README.md"


def test_example_works_as_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = re.findall(r"```\w+\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    (tmp_path / "notes").mkdir()
    for name, text in zip(
        ["template.yaml", "notes/app.py", "serve.py"], blocks, strict=True
    ):
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    with mock.patch.dict(os.environ):
        client = TestClient(runpy.run_path("serve.py")["app"])
        put = client.put("/notes/1", json={"text": "milk", "done": False})
        got = client.get("/notes/1")

    assert put.status_code == 204
    assert got.json() == {"id": "1", "text": "milk", "done": False}
