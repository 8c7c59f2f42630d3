"""listPets: parameters, their limits and what a page holds."""

import pytest

from tests.contract.client import Client, assert_error
from tests.contract.seeded_pets import LARGEST, filters
from tests.support.openapi import LIMIT, STATUSES

FIRST, *_, LAST = STATUSES

# Percent-encoded.
REFUSED = f"""
limit=0 limit=-1 limit={LARGEST + 1} limit= limit=abc limit=1.0 limit=1_0
limit=%2531 limit=%2B5 limit=%205 limit=5%0A limit=%D9%A5 limit=%FF
limit=5&status={FIRST}&limit=5 limit=&limit=5
status=unknown status={FIRST.upper()} status= status={FIRST},{LAST} status={FIRST}%0A
status=%25{ord(FIRST[0]):x}{FIRST[1:]} status=%FF status={FIRST}&status={LAST}
cursor= cursor=1 cursor=%FF cursor={"A" * 24} cursor={"x" * 4000}
""".split()
NAMED = [
    *((query, query.partition("=")[0]) for query in REFUSED),
    # Parameters that the interface does not have; case counts.
    (f"stauts={FIRST}", "stauts"),
    ("page=2&limit=5", "page"),
    ("Limit=5", "Limit"),
    ("limit%5B%5D=5", "limit[]"),
    ("%6Cimit=5&c%6Flour=red", "colour"),
    ("x" * 4000, "xxx"),
]


@pytest.mark.smoke_read_only
@pytest.mark.parametrize(("query", "name"), NAMED)
def test_parameter_refused(client: Client, query: str, name: str) -> None:
    """An unknown parameter, a value that is not allowed, or a second one is refused, by name."""
    assert_error(client.list(query), "invalid_request", naming=name)


@pytest.mark.smoke_read_only
@filters
def test_page(client: Client, status: str | None) -> None:
    """A page has animals by ascending id, all with the status that was asked for."""
    pets = client.list(f"status={status}" if status else "").json()
    ids = [pet["id"] for pet in pets]
    assert len(ids) <= LIMIT["default"]
    assert ids == sorted(set(ids))
    assert status is None or {pet["status"] for pet in pets} <= {status}
