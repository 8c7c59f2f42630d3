"""The requests that are measured, as API Gateway hands them to a function, and right answers."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tools import ROOT

API_KEY = (
    "animal_test_AnExampleKeyThatOpensNothingHere0u1vgN"  # pragma: allowlist secret
)
"""The key of the events."""


@dataclass(frozen=True)
class Operation:
    """One kind of request, made from an event in `events/`."""

    name: str  # its key in results.json
    title: str  # in the report
    example: str  # the event
    status: int = 200
    # Of the animals in a right answer; if empty, only its status counts.
    ids: Sequence[int] = ()
    query: tuple[str, str] | None = None
    key: str = API_KEY

    def event(self) -> dict[str, Any]:
        """Make the proxy event of one request."""
        text = (ROOT / "events" / f"{self.example}.json").read_text()
        event: dict[str, Any] = json.loads(text.replace(API_KEY, self.key))
        if self.query:
            name, value = self.query
            event["queryStringParameters"] = {name: value}
            event["multiValueQueryStringParameters"] = {name: [value]}
        return event

    def is_right(self, response: dict[str, Any]) -> bool:
        """Tell whether a function answered with the status and animals that were asked for."""
        if response.get("statusCode") != self.status:
            return False
        if not self.ids:
            return True
        body = json.loads(response["body"])
        pets = body if isinstance(body, list) else [body]
        return [pet["id"] for pet in pets] == list(self.ids)


LIST_20 = Operation("list_20", "list of 20", "list-200", ids=range(1, 21))
LIST_100 = Operation(
    "list_100",
    "list of 100",
    "list-200",
    ids=range(1, 101),
    query=("limit", "100"),
)
CREATE = Operation("create", "create", "create-201", status=201)
GET = Operation("get", "get", "get-200", ids=[1])
OPERATIONS = (LIST_20, LIST_100, CREATE, GET)
REFUSED = Operation("refused", "wrong key", "list-200", status=401, key="wrong")
