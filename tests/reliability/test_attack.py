"""Hostile input to the handlers, as events; what a client can send at all is in the contract."""

import json
from contextlib import closing
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import handlers, openapi
from tests.support.fault_injection import FaultyStore
from tests.support.handlers import EVENTS, SUCCESSES

ODD = st.sampled_from(
    ["", " ", "0", "-1", "1e3", "9" * 400, str(2**63), "sold", "\ud800", "NaN"]
)
TEXT = ODD | st.text() | st.just("evil.example")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT, st.lists
)
HEADERS = st.sampled_from(
    ["Host", "X-Forwarded-Host", "X-Request-Id", "X-Forwarded-Port", "Content-Type"]
)
PARAMETERS = st.sampled_from(["limit", "status", "cursor"])
MEMBERS = st.sampled_from(["name", "categoryId", "status", "x"])


@settings(max_examples=250, deadline=None)
@given(
    name=st.sampled_from(SUCCESSES),
    headers=st.dictionaries(HEADERS, st.lists(TEXT, min_size=1, max_size=2)),
    query=st.dictionaries(PARAMETERS, st.lists(TEXT)),
    pet_id=TEXT,
    body=TEXT | st.dictionaries(MEMBERS, JSON).map(json.dumps),
)
def test_any_event_gets_a_response_of_the_interface(
    name: str, headers: Any, query: Any, pet_id: str, body: str
) -> None:
    event = handlers.make_event(
        name,
        headers,
        multiValueQueryStringParameters=query,
        pathParameters={"petId": pet_id},
        body=body if EVENTS[name]["body"] else None,
    )

    with closing(FaultyStore()):
        response = handlers.invoke(event)

    assert response.status < 500
    operation = handlers.operation_of(event)
    assert openapi.problems(operation, *response, in_process=True) == []
    assert "evil.example" not in str(response.headers)
