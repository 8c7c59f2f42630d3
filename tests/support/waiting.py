"""Wait for something that takes a moment."""

import time
from collections.abc import Callable


def wait_for(condition: Callable[[], bool], timeout_s: float = 10.0) -> None:
    """Wait until a condition holds; AssertionError if it does not in time."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
