"""The invocation that runs in this thread: how long it may take, and what its log line will say.

`operation` begins it, `auth` and `dynamodb` read and complete it.
"""

import time
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(slots=True)
class Invocation:
    """One run of a function.

    Args:
        deadline: When Lambda ends it, in seconds of `time.monotonic()`.
        store_calls: Calls to DynamoDB so far, the SDK's own retries included.
        key_id: The id of the key that was sent, valid or not; None unless it is well formed.
        key_label: The name that the operator gave the key; None until it is known to be valid.
    """

    deadline: float
    store_calls: int = 0
    key_id: str | None = None
    key_label: str | None = None

    def has_left(self, seconds: float) -> bool:
        """Tell whether that many seconds are left."""
        return time.monotonic() + seconds <= self.deadline


_current: ContextVar[Invocation] = ContextVar("invocation")


def begin(deadline: float) -> Invocation:
    """Begin an invocation in this thread.

    Args:
        deadline: When Lambda ends it, in seconds of `time.monotonic()`.
    """
    invocation = Invocation(deadline)
    _current.set(invocation)
    return invocation


def current() -> Invocation:
    """Return the invocation that runs in this thread.

    Raises:
        LookupError: None has begun.
    """
    return _current.get()
