"""The requests that are measured, as API Gateway hands them to a function, and what a right answer looks like."""

import json
from dataclasses import dataclass, field
from typing import Any

from benchmarks.fake_dynamodb import NAME
from tools import ROOT


@dataclass(frozen=True)
class Operation:
    """One kind of request, made from an event in `events/`, and what a right answer to it is."""

    name: str  # its key in results.json
    title: str  # in the report
    function: (
        str  # the folder of the function that answers it where each operation has one of its own
    )
    example: str  # the event
    status: int = 200
    count: int = 1  # of animals in a right answer
    query: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)

    def event(self, request_id: str = "") -> dict[str, Any]:
        """Make the proxy event of one request."""
        event: dict[str, Any] = json.loads((ROOT / "events" / f"{self.example}.json").read_text())
        event["requestContext"]["requestId"] = request_id
        event["headers"] |= self.headers
        event["multiValueHeaders"] |= {name: [value] for name, value in self.headers.items()}
        event["queryStringParameters"] = self.query or None
        event["multiValueQueryStringParameters"] = {
            name: [value] for name, value in self.query.items()
        } or None
        return event

    def is_right(self, response: dict[str, Any]) -> bool:
        """Tell whether a function has answered with the status and the animals that were asked for."""
        if response.get("statusCode") != self.status or not self.count:
            return response.get("statusCode") == self.status
        body, sent = json.loads(response["body"]), json.loads(self.event()["body"] or "{}")
        pets, status = body if isinstance(body, list) else [body], self.query.get("status")
        return len(pets) == self.count and all(
            pet["name"] == sent.get("name", NAME.format(pet["id"]))
            and status in (None, pet["status"])
            for pet in pets
        )


LIST_20 = Operation("list_20", "list of 20", "list_pets", "list-200", count=20)
LIST_100 = Operation(
    "list_100", "list of 100", "list_pets", "list-200", count=100, query={"limit": "100"}
)
LIST_FILTERED = Operation(
    "list_filtered",
    "filtered list of 20",
    "list_pets",
    "list-200",
    count=20,
    query={"status": "available"},
)
CREATE = Operation("create", "create", "create_pet", "create-201", status=201)
GET = Operation("get", "get", "get_pet", "get-200")
OPERATIONS = (LIST_20, LIST_100, LIST_FILTERED, CREATE, GET)

REFUSED = Operation(
    "refused",
    "wrong key",
    "list_pets",
    "list-200",
    401,
    0,
    headers={"Authorization": "Bearer wrong"},
)
API_KEY: str = LIST_20.event()["headers"]["Authorization"].removeprefix("Bearer ")
