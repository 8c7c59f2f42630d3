"""The requests that are measured, as API Gateway hands them to a function, and right answers."""

import json
from dataclasses import dataclass, field
from typing import Any

from benchmarks.fake_dynamodb import NAME
from tools import ROOT


@dataclass(frozen=True)
class Operation:
    """One kind of request, made from an event in `events/`."""

    name: str  # its key in results.json
    title: str  # in the report
    function: str  # the folder of the function that answers it
    example: str  # the event
    status: int = 200
    count: int = 1  # of animals in a right answer
    query: dict[str, str] | None = None
    headers: dict[str, str] = field(default_factory=dict)
    # What DynamoDB charges for it, by the documented sizes of items:
    # https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html
    read_units: float = 1
    write_units: float = 0

    def event(self) -> dict[str, Any]:
        """Make the proxy event of one request."""
        event: dict[str, Any] = json.loads(
            (ROOT / "events" / f"{self.example}.json").read_text()
        )
        event["headers"] |= self.headers
        event["queryStringParameters"] = self.query
        event["multiValueQueryStringParameters"] = None
        for name, value in self.headers.items():
            event["multiValueHeaders"][name] = [value]
        if self.query:
            event["multiValueQueryStringParameters"] = {
                k: [v] for k, v in self.query.items()
            }
        return event

    def is_right(self, response: dict[str, Any]) -> bool:
        """Tell whether a function answered with the status and animals that were asked for."""
        if response.get("statusCode") != self.status or not self.count:
            return response.get("statusCode") == self.status
        body = json.loads(response["body"])
        pets = body if isinstance(body, list) else [body]
        if self.name == "create":
            names = [json.loads(self.event()["body"])["name"]]
        else:
            names = [NAME.format(pet["id"]) for pet in pets]
        statuses = {pet.get("status") for pet in pets}
        return (
            len(pets) == self.count
            and [pet["name"] for pet in pets] == names
            and (
                not self.query
                or "status" not in self.query
                or statuses == {self.query["status"]}
            )
        )


LIST_20 = Operation("list_20", "list of 20", "list_pets", "list-200", count=20)
CREATE = Operation(
    "create",
    "create",
    "create_pet",
    "create-201",
    status=201,
    read_units=0,
    write_units=3,
)
GET = Operation("get", "get", "get_pet", "get-200")
OPERATIONS = (
    LIST_20,
    Operation(
        "list_100",
        "list of 100",
        "list_pets",
        "list-200",
        count=100,
        query={"limit": "100"},
        read_units=3,
    ),
    Operation(
        "list_filtered",
        "filtered list of 20",
        "list_pets",
        "list-200",
        count=20,
        query={"status": "available"},
        read_units=0.5,
    ),
    CREATE,
    GET,
)
REFUSED = Operation(
    "refused",
    "wrong key",
    "list_pets",
    "list-200",
    status=401,
    count=0,
    headers={"Authorization": "Bearer wrong"},
)
API_KEY: str = LIST_20.event()["headers"]["Authorization"].removeprefix("Bearer ")
