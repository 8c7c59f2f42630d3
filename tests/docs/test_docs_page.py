"""The API page in a real browser."""

import shutil
from pathlib import Path

import pytest

from tests.support.processes import RunningService, link_node_modules, run


def test_the_page_works(service: RunningService, tmp_path: Path) -> None:
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if not chromium:
        pytest.skip("Chromium is not installed")
    link_node_modules(tmp_path)
    shutil.copy(Path(__file__).with_name("page.mjs"), tmp_path)
    url = service.base_url.replace("/v1", "/docs")
    run("node", "page.mjs", url, chromium, service.api_key, cwd=tmp_path)
