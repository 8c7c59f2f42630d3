"""`animal-store` with variables and signals that its caller has set."""

import os
import signal
import subprocess
from unittest import mock

import pytest
from botocore.exceptions import MissingDependencyException, NoRegionError

from ops.__main__ import main


def test_pythonsafepath_and_ignored_sigchld_have_no_effect(
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


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (NoRegionError(), "You must specify a region."),
        (MissingDependencyException(msg="crt"), "export-credentials"),
    ],
)
def test_error_of_the_sdk_is_explained_without_a_traceback(
    error: Exception, message: str
) -> None:
    with (
        mock.patch("ops.cli.app", side_effect=error),
        mock.patch("signal.signal"),  # so that this process keeps its own handlers
        pytest.raises(SystemExit, match=message),
    ):
        main()
