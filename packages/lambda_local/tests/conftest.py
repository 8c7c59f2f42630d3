"""The marker of the one slow test, for a run without this checkout's configuration."""

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: needs much time")
