"""`animal-store` with a closed pipe, and with variables and signals that its caller has set."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from unittest import mock

import httpx2
import pytest
from botocore.exceptions import NoRegionError

from ops.__main__ import main
from tests.support.processes import environment, run
from tools import ROOT


def test_service_survives_the_reader_of_its_output(
    tmp_path: Path,
) -> None:
    with subprocess.Popen(
        ["bash", "-c", '"$PYTHON" -m ops run | head -1'],
        cwd=ROOT,
        env=environment(PYTHON=sys.executable, PORT="0", DATA=str(tmp_path)),
        start_new_session=True,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout
            url = process.stdout.readline().removeprefix("Base URL: ").strip()
            statuses = [httpx2.get(f"{url}/pets").status_code for _ in range(3)]
        finally:
            os.killpg(process.pid, signal.SIGTERM)

    assert statuses == [401, 401, 401]


def test_callers_variables_and_signals_do_no_harm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def app(**_: str) -> None:
        assert "PYTHONSAFEPATH" not in os.environ
        assert os.environ["SAM_CLI_TELEMETRY"] == "0"
        subprocess.run(["false"], check=True)

    monkeypatch.setenv("PYTHONSAFEPATH", "1")
    monkeypatch.setenv("SAM_CLI_TELEMETRY", "1")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # as the caller may have set it

    with mock.patch("ops.cli.app", app), pytest.raises(SystemExit, match="false"):
        main()

    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # `main` has changed it


def test_missing_region_is_reported_without_a_traceback() -> None:
    with (
        mock.patch("ops.cli.app", side_effect=NoRegionError),
        mock.patch("signal.signal"),  # so that this process keeps its own handlers
        pytest.raises(SystemExit, match="must specify a region"),
    ):
        main()


@pytest.mark.slow
def test_command_needs_no_library_of_group_dev() -> None:
    """A job that deploys does not install this group."""
    uv = (".tools/uv/bin/uv", "run", "--isolated", "--locked", "--no-dev")
    assert "check-stage" in run(*uv, "animal-store", "--help", cwd=ROOT)
