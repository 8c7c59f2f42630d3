"""Hostile input: through the socket of a running service, and to the handlers as events."""

import json
import secrets
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support import handlers
from tests.support.fault_injection import FaultyStore
from tests.support.handlers import EVENTS, SUCCESSES
from tests.support.processes import RunningService

SECRET = f"sEcReT{secrets.token_hex(8)}"
TAILS = ["", "%0D%0AX-Injected:%201", "%1B[2J", "%E2%80%AE", "%22%7D%0A%7B", "%00"]


@pytest.mark.parametrize(
    "path", ["/pets/{}", "/{}", "/pets?limit={}", "/pets?cursor={}"]
)
@pytest.mark.parametrize("tail", TAILS)
def test_nothing_in_a_url_gets_into_the_log_or_steers_the_terminal(
    path: str, tail: str, service: RunningService
) -> None:
    response = service.http.get(path.format(SECRET + tail))

    assert 400 <= response.status_code < 500
    assert SECRET not in response.text
    assert "x-injected" not in response.headers
    assert SECRET not in (service.data / "functions.log").read_text()
    assert "\x1b[2J" not in service.console.read_text()


ODD = st.sampled_from(
    ["", " ", "0", "-1", "1e3", "9" * 400, str(2**63), "sold", "\ud800", "NaN"]
)
TEXT = ODD | st.text() | st.just("evil.example")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT, st.lists
)
HEADERS = [
    "Host",
    "X-Forwarded-Host",
    "X-Request-Id",
    "X-Forwarded-Port",
    "Content-Type",
]
MEMBERS = ["name", "categoryId", "status", "x"]


@settings(max_examples=500, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(SUCCESSES),
    headers=st.dictionaries(
        st.sampled_from(HEADERS), st.lists(TEXT, min_size=1, max_size=2)
    ),
    query=st.dictionaries(
        st.sampled_from(["limit", "status", "cursor"]), st.lists(TEXT)
    ),
    pet_id=TEXT,
    body=TEXT | st.dictionaries(st.sampled_from(MEMBERS), JSON).map(json.dumps),
)
def test_any_event_gets_a_response_of_the_interface(
    name: str, headers: Any, query: Any, *, pet_id: str, body: str, store: FaultyStore
) -> None:
    event = deepcopy(EVENTS[name])
    event["multiValueHeaders"] |= headers
    event |= {
        "multiValueQueryStringParameters": query,
        "pathParameters": {"petId": pet_id},
    }
    event["body"] = body if event["body"] else None
    store.sent.clear()

    response = handlers.invoke(event)

    assert response.status < 500
    assert handlers.problems(event, response) == []
    assert "evil.example" not in str(response.headers)
