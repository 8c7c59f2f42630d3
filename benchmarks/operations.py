"""The requests that are measured, as API Gateway hands them to a function, and what a right answer looks like."""

import json
from dataclasses import dataclass, field
from typing import Any

from benchmarks.fake_dynamodb import name_of
from tools import ROOT


@dataclass(frozen=True)
class Operation:
    """One kind of request, made from an event in `events/`, and what a right answer to it is."""

    name: str  # its key in results.json
    title: str  # in the report
    function: str  # the folder of the function that answers it where each operation has one of its own
    example: str  # the event
    status: int = 200
    count: int | None = None  # of animals in the answer; None for a single one that is not a list
    query: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def request(self) -> dict[str, Any]:
        """The event that this one is made from."""
        event: dict[str, Any] = json.loads((ROOT / "events" / f"{self.example}.json").read_text())
        return event

    def event(self, request_id: str) -> bytes:
        """Write the proxy event of one request."""
        event = self.request
        event["requestContext"]["requestId"] = request_id
        event["headers"] |= self.headers
        event["multiValueHeaders"] |= {name: [value] for name, value in self.headers.items()}
        event["queryStringParameters"] = self.query or None
        event["multiValueQueryStringParameters"] = {name: [value] for name, value in self.query.items()} or None
        return json.dumps(event).encode()

    def mistake(self, answer: bytes) -> str | None:
        """Say what is wrong with an answer of the function; None if nothing is."""
        try:
            response = json.loads(answer)
            body = json.loads(response["body"])
            right = response["statusCode"] == self.status
            if self.status < 400:  # noqa: PLR2004 - an error is right by its status
                pets = [body] if self.count is None else body
                sent = self.request["body"]
                names = [json.loads(sent)["name"]] if sent else [name_of(pet["id"]) for pet in pets]
                right = right and len(pets) == (self.count or 1) and [pet["name"] for pet in pets] == names
                right = right and all(pet["status"] == self.query.get("status", pet["status"]) for pet in pets)
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            return f"{error!r} in {answer[:300]!r}"
        return None if right else f"not what was asked for: {answer[:300]!r}"


LIST_20 = Operation("list_20", "list of 20", "list_pets", "list-200", count=20)
LIST_100 = Operation("list_100", "list of 100", "list_pets", "list-200", count=100, query={"limit": "100"})
FILTERED = {"status": "available"}
LIST_FILTERED = Operation("list_filtered", "filtered list of 20", "list_pets", "list-200", count=20, query=FILTERED)
CREATE = Operation("create", "create", "create_pet", "create-201", status=201)
GET = Operation("get", "get", "get_pet", "get-200")
OPERATIONS = (LIST_20, LIST_100, LIST_FILTERED, CREATE, GET)

REFUSED = Operation("refused", "wrong key", "list_pets", "list-200", 401, headers={"Authorization": "Bearer wrong"})
API_KEY: str = LIST_20.request["headers"]["Authorization"].removeprefix("Bearer ")
