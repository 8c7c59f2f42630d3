"""The cases that run against production leave an empty store empty."""

from pathlib import Path

import pytest

from tests.support.processes import run, run_service
from tools import ROOT


@pytest.mark.slow
def test_read_only_cases_add_nothing(tmp_path: Path) -> None:
    with run_service(tmp_path) as service:
        second = service.tool("keys", "issue", "--label", "second").strip()

        run(
            "make",
            "contract",
            cwd=ROOT,
            BASE_URL=service.base_url,
            API_KEY=service.api_key,
            SECOND_API_KEY=second,
            PYTEST="-m smoke_read_only",
        )

        assert service.http.get("/pets").json() == []
