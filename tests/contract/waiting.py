"""Wait until a condition holds."""

import time
from collections.abc import Callable


def wait_for(condition: Callable[[], bool], timeout_s: float = 10.0) -> None:
    """Wait until a condition holds; raise AssertionError after the time limit."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "the condition did not hold in time"
        time.sleep(0.02)
