"""What is measured: a function's answers to the events of `events/`."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from tests.support.handlers import Event, make_event


class Case(NamedTuple):
    """An event and its right answer; measured is the mean of `counted` invocations."""

    title: str
    event: Event
    status: int = 200
    ids: Sequence[int] = ()  # of the animals in the answer; if empty, any will do
    before: int = 20  # invocations, for caches to fill
    counted: int = 100  # spreads the collector's rare full passes over many
    reconnects: bool = False  # DynamoDB hangs up after each answer

    @property
    def last(self) -> int:
        """How often the function is invoked."""
        return self.before + self.counted

    def is_right(self, answer: dict[str, Any]) -> bool:
        """Tell whether a function answered with the status and the animals of store.py."""
        if answer.get("statusCode") != self.status:
            return False
        body = json.loads(answer["body"])
        pets = body if isinstance(body, list) else [body]
        right = [
            {
                "id": number,
                "name": f"Animal number {number}",
                "categoryId": 3,
                "status": "available",
            }
            for number in self.ids
        ]
        return not right or pets == right


_LIST, _GET = make_event("list-200"), make_event("get-200")
_LIST_100 = make_event(
    "list-200",
    queryStringParameters={"limit": "100"},
    multiValueQueryStringParameters={"limit": ["100"]},
)
CASES = (
    Case("cold start", _LIST, ids=range(1, 21), before=0, counted=1),
    Case("get, new connection", _GET, ids=[1], counted=40, reconnects=True),
    Case("list of 20", _LIST, ids=range(1, 21)),
    Case("list of 100", _LIST_100, ids=range(1, 101)),
    Case("create", make_event("create-201"), status=201),
    Case("get", _GET, ids=[1]),
)
