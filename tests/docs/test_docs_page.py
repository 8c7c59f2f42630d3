"""The API page in a real browser, wide and narrow, light and dark."""

import json
import shutil
from pathlib import Path

import pytest

from tests.support.processes import RunningService, link_node_modules, run
from tools import ROOT


def test_the_first_request_needs_no_scrolling(
    service: RunningService, tmp_path: Path
) -> None:
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if not chromium:
        pytest.skip("Chromium is not installed")
    link_node_modules(tmp_path)
    shutil.copy(ROOT / "tests/docs/page.mjs", tmp_path)
    url = service.base_url.replace("/v1", "/docs")

    printed = run("node", "page.mjs", url, chromium, service.api_key, cwd=tmp_path)

    for page in json.loads(printed.splitlines()[-1]):
        assert page == {
            "screen": page["screen"],
            "firstInSight": True,
            "authorizeInSight": True,
            "keyInAddress": False,
            "executeInSight": True,
            "status": 200,
            "snippets": "curl,PowerShell,Python,JavaScript",
            "python": True,
            "faint": [],  # texts that cannot be read well
            "errors": 0,
            "fits": True,
            "colors": True,
            "operationsFirst": True,
        }
