"""The API page in a real browser, wide and narrow, light and dark; and the copy to publish."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import COMMAND, RunningService, link_node_modules, run
from tools import ROOT


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("published")
    run(*COMMAND, "docs", folder, cwd=ROOT)
    return folder


def look(url: str, folder: Path, *api_key: str) -> dict[str, Any]:
    """What a browser shows, per screen and color scheme."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if not chromium:
        pytest.skip("Chromium is not installed")
    link_node_modules(folder)
    shutil.copy(ROOT / "tests/docs/page.mjs", folder)
    seen: dict[str, Any] = json.loads(
        run("node", "page.mjs", url, chromium, *api_key, cwd=folder).splitlines()[-1]
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


def test_the_published_copy_is_complete(published: Path, tmp_path: Path) -> None:
    for page in look((published / "index.html").as_uri(), tmp_path).values():
        assert page["inSight"] == [True, True]
        assert all(url.startswith("file:") for url in page["loaded"]), page["loaded"]


def test_the_published_copy_has_its_licenses_and_what_helps_when_a_request_fails(
    published: Path,
) -> None:
    above = (published / "index.html").read_text().partition('id="swagger-ui"')[0]

    for header in ("Idempotency-Key", "Retry-After", "x-amzn-RequestId"):
        assert header in above
    assert (published / "openapi.yaml").read_bytes() == (
        ROOT / "openapi.yaml"
    ).read_bytes()
    assert "Apache License" in (published / "swagger-ui.LICENSE.txt").read_text()
    assert "SmartBear" in (published / "swagger-ui.NOTICE.txt").read_text()
    assert "DOMPurify" in (published / "swagger-ui-bundle.js.LICENSE.txt").read_text()
    assert "MIT License" in (published / "LICENSE").read_text()
    assert 'PACKAGE_VERSION:"5.31.0"' in (published / "swagger-ui.js").read_text(), (
        "update swagger_ui_licenses"
    )
