"""A clock for all tests of the folder, none of which may open a socket."""

import pytest

from tests.support.clock import Clock, install_clock


@pytest.fixture(autouse=True)
def clock(socket_disabled: None, monkeypatch: pytest.MonkeyPatch) -> Clock:  # noqa: ARG001
    """Install a clock that only a test or a pause moves."""
    return install_clock(monkeypatch)
