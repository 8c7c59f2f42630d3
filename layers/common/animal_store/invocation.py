"""Holds the invocation that runs in this thread: its deadline, and facts for its log line.

`operation` creates the invocation; `operation` and `dynamodb` add facts, which `telemetry` logs.
"""

import time
from contextvars import ContextVar


class Invocation:
    """One run of a function.

    Args:
        deadline: When Lambda stops the run, as a value of `time.monotonic()` in seconds.
    """

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self.store_calls = 0
        """The attempts to call DynamoDB so far, as `dynamodb._decide_on_retry` counts them."""
        self.key_id: str | None = None
        """The id of the request's API key, valid or not; None until the key has been looked up."""
        self.key_label: str | None = None
        """The label that the operator gave the key; None until the key is known to be valid."""

    def has_time_for(self, seconds: float) -> bool:
        """Return whether at least this many seconds are left."""
        return time.monotonic() + seconds <= self.deadline


current: ContextVar[Invocation] = ContextVar("invocation")
"""The invocation that runs in this thread; `operation` sets it."""
