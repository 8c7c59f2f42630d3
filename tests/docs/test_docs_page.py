"""The API page in a real browser, wide and narrow, light and dark."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import RunningService, link_node_modules, run
from tools import ROOT


def look(url: str, folder: Path, api_key: str) -> dict[str, Any]:
    """What a browser shows, per screen and color scheme."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if not chromium:
        pytest.skip("Chromium is not installed")
    link_node_modules(folder)
    shutil.copy(ROOT / "tests/docs/page.mjs", folder)
    seen: dict[str, Any] = json.loads(
        run("node", "page.mjs", url, chromium, api_key, cwd=folder).splitlines()[-1]
    )
    for screen, page in seen.items():  # faint: text that cannot be read well
        assert page == {
            **page,
            "operationsFirst": True,
            "errors": 0,
            "fits": True,
            "faint": [],
        }, screen
        assert ("dark" in screen) == (page["background"] == "rgb(28, 32, 34)"), screen
    return seen


def test_the_first_request_needs_no_scrolling(
    service: RunningService, tmp_path: Path
) -> None:
    for screen, page in look(
        service.base_url.removesuffix("/v1") + "/docs", tmp_path, service.api_key
    ).items():
        assert (page["inSight"], page["status"]) == ([True, True, True], 200), screen
