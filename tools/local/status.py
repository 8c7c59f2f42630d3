"""`/status`: what the service has done since it started, from the lines of which CloudWatch makes metrics on AWS."""

import json
import threading
from collections import Counter, deque
from contextlib import suppress
from pathlib import Path
from typing import Any

PAGE = Path(__file__).with_name("status.html")
_SHOWN = ("timestamp", "Operation", "Status", "Code", "Latency", "StoreCalls", "ColdStart", "KeyLabel")


class Metrics:
    """A sink of the functions' output that counts the requests in it, and keeps the last ones."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str]] = Counter()
        self._last: deque[dict[str, Any]] = deque(maxlen=20)

    def __call__(self, line: str) -> None:
        """Take one line of output."""
        if '"_aws"' in line:
            with self._lock, suppress(LookupError, TypeError, ValueError):  # a line of another kind
                request = json.loads(line)
                self._counts[request["Operation"], request["Status"]] += 1
                self._last.appendleft({name: request[name] for name in _SHOWN if name in request})

    def summary(self, base_url: str) -> dict[str, Any]:
        """Return how many requests had which status, and the last requests, the latest first."""
        with self._lock:
            counts = [{"Operation": o, "Status": s, "Requests": n} for (o, s), n in sorted(self._counts.items())]
            return {"base_url": base_url, "counts": counts, "last": [*self._last]}
